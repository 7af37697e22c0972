/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../reports/utf8.h"

static void
expect_harmless(const char *text, const char *expected)
{
    struct cm_buffer out = {0};

    cm_utf8_add_harmless(&out, text);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_buffer_release(&out);
}

static void
test_round_trip_of_every_character(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        struct cm_buffer out = {0};
        const char *at;

        if (c >= 0xD800 && c <= 0xDFFF) {
            continue;
        }
        cm_utf8_add(&out, c);
        at = cm_buffer_text(&out);
        assert_int_equal(cm_utf8_next(&at, out.bytes + out.length), c);
        assert_ptr_equal(at, out.bytes + out.length);
        assert_true(cm_utf8_valid(out.bytes, out.length));
        cm_buffer_release(&out);
    }
}

static void
test_ill_formed_is_not_valid(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xC0\x80",
        "\xC1\xBF",
        "\xE0\x80\x80",
        "\xED\xA0\x80",
        "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xE2\x82",
        "\xFF",
        "a\xC3",
        "\xC3(",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cm_buffer out = {0};

        assert_false(cm_utf8_valid(bad[i], strlen(bad[i])));
        cm_utf8_add_valid(&out, bad[i], strlen(bad[i]));
        assert_true(cm_utf8_valid(out.bytes, out.length));
        assert_non_null(strstr(out.bytes, "\xEF\xBF\xBD"));
        cm_buffer_release(&out);
    }
    assert_true(cm_utf8_valid("\xEF\xBF\xBD", 3)); /* U+FFFD itself */
}

static void
test_harmful_is_shown_not_obeyed(void **state)
{
    (void)state;
    expect_harmless("na\xC3\xAFve \xE4\xBD\xA0", "na\xC3\xAFve \xE4\xBD\xA0");
    expect_harmless("\x1b]0;t\x07", "\\x1b]0;t\\x07");
    expect_harmless("a\nb", "a\\x0ab");
    expect_harmless("\xC2\x9b", "\\x9b");
    expect_harmless("\xE2\x80\xAEtxt", "\\u202etxt");
    expect_harmless("\xE2\x81\xA6", "\\u2066");
    expect_harmless("\xE2\x80\xA8", "\\u2028");
    expect_harmless("\xEF\xBB\xBF", "\\ufeff");
    expect_harmless("\xF3\xA0\x80\x81", "\\ue0001");
    expect_harmless("\xFF", "\xEF\xBF\xBD");
}

static void
test_columns(void **state)
{
    (void)state;
    assert_int_equal(cm_utf8_columns("abc"), 3);
    assert_int_equal(cm_utf8_columns("\xE4\xBD\xA0\xE5\xA5\xBD"), 4);
    assert_int_equal(cm_utf8_columns("e\xCC\x81"), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_of_every_character),
        cmocka_unit_test(test_ill_formed_is_not_valid),
        cmocka_unit_test(test_harmful_is_shown_not_obeyed),
        cmocka_unit_test(test_columns),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
