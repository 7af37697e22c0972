/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../detector/size.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (MIB * KIB)

static void
test_format(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {512, "512 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {10 * KIB - 1, "10 KiB"},
        {10 * KIB, "10 KiB"},
        {MIB - 1, "1.0 MiB"},
        {1023 * KIB, "1023 KiB"},
        {4 * MIB, "4.0 MiB"},
        {16 * MIB, "16 MiB"},
        {5 * GIB + 100 * MIB, "5.1 GiB"},
        {2048 * GIB, "2.0 TiB"},
        {UINT64_MAX, "16777216 TiB"},
    };
    char text[CM_SIZE_TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cm_size_format(cases[i].bytes, text);
        assert_string_equal(text, cases[i].text);
    }
    cm_size_format_short(MIB, text);
    assert_string_equal(text, "1 MiB");
    cm_size_format_short(MIB + MIB / 2, text);
    assert_string_equal(text, "1.5 MiB");
    cm_size_format_short(0, text);
    assert_string_equal(text, "0 B");
}

static void
test_format_of(void **state)
{
    char text[CM_SIZE_TEXT_BYTES];

    (void)state;
    cm_size_format_of(5 * GIB + 100 * MIB, 71 * GIB + 400 * MIB, text);
    assert_string_equal(text, "5.1 of 71.4 GiB");
    cm_size_format_of(3 * MIB, 71 * GIB, text);
    assert_string_equal(text, "3.0 MiB of 71.0 GiB");
    cm_size_format_of(100, 400, text);
    assert_string_equal(text, "100 of 400 B");
    cm_size_format_of(0, GIB, text);
    assert_string_equal(text, "0.0 of 1.0 GiB");
    cm_size_format_of(UINT64_MAX, UINT64_MAX, text);
    assert_string_equal(text, "16777216.0 of 16777216.0 TiB");
}

static void
test_parse(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"1048576", MIB},
        {"256MiB", 256 * MIB},
        {"1.5 GiB", GIB + GIB / 2},
        {"64K", 64 * KIB},
        {"64k", 64 * KIB},
        {"1MB", 1000000},
        {"2t", 2048 * GIB},
        {"7 B", 7},
        {"9007199254740992", UINT64_C(1) << 53},
    };
    uint64_t bytes;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(cm_size_parse(cases[i].text, &bytes), CM_OK);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void
test_parse_refuses(void **state)
{
    static const char *const bad[] = {
        "",
        "x",
        "-1",
        "1XiB",
        "1.5",
        "1.MiB",
        "MiB",
        "1 M i",
        "0x10",
        "1e3",
        "1MiBs",
        "9007199254740993",
        "9999999999999999999999",
        "99999999TiB",
        "1,5MiB",
        " 1",
    };
    uint64_t bytes = 42;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(cm_size_parse(bad[i], &bytes), CM_BAD_INPUT);
        assert_int_equal(bytes, 42);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_format_of),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_refuses),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
