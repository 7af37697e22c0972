/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * That memory ran out, in the file and in words. */
#include "leak_case.h"

#include "../reports/exhausted.h"
#include "../reports/leak_json.h"
#include "../reports/summary.h"

#define RAN_OUT                                                               \
    "'exhausted':{'iteration':7,'error':'MemoryError','device':'cuda:1',"     \
    "'asked_bytes':4294967296,'holders':[{'way':'`a.kept` (list, 9 items)',"  \
    "'bytes':9437184},{'way':'`b`','bytes':1024}]}"

static void
expect_text(const char *json, bool alone, const char *expected)
{
    struct cm_leak leak = leak_of(json);
    struct cm_buffer out = {0};
    struct cm_summary_options options = {.exhausted = alone};

    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_words(void **state)
{
    (void)state;
    expect_text(LEAK_HEAD RAN_OUT "}", true,
                "cumem: memory ran out on cuda:1 at iteration 7: MemoryError, "
                "4.0 GiB asked for\n"
                "   held  9.0 MiB: `a.kept` (list, 9 items)\n"
                "   held  1.0 KiB: `b`\n");
    expect_text(LEAK_HEAD RAN_OUT "}", false,
                "cumem: memory ran out on cuda:1 at iteration 7: MemoryError, "
                "4.0 GiB asked for\n"
                "cumem: no dead cycle holds device memory\n"
                "   held  9.0 MiB: `a.kept` (list, 9 items)\n"
                "   held  1.0 KiB: `b`\n");
    expect_text(LEAK_HEAD "'exhausted':{'iteration':null,'error':''}}", true,
                "cumem: memory ran out\n");
}

static void
test_what_is_written_is_read(void **state)
{
    struct cm_leak leak = leak_of(LEAK_HEAD RAN_OUT "}"), again = {0};
    struct cm_buffer first = {0}, second = {0};
    char error[CM_LEAK_JSON_ERROR_BYTES];

    (void)state;
    assert_int_equal(cm_leak_json_write(&leak, &first), CM_OK);
    assert_non_null(strstr(first.bytes, "\"exhausted\":{\"iteration\":7,"));
    assert_int_equal(
        cm_leak_json_read(first.bytes, first.length, &again, error), CM_OK);
    assert_int_equal(cm_leak_json_write(&again, &second), CM_OK);
    assert_string_equal(first.bytes, second.bytes);
    cm_leak_release(&leak);
    cm_leak_release(&again);
    cm_buffer_release(&first);
    cm_buffer_release(&second);
}

static void
test_the_largest_of_what_was_seen(void **state)
{
    struct cm_leak leak = leak_of(LEAK_HEAD "'pid':1}");
    struct cm_exhausted_use use = {.error = "E",
                                   .device = "",
                                   .asked_bytes = CM_LEAK_UNKNOWN,
                                   .ways = {"a"},
                                   .bytes = {5},
                                   .count = 1};
    struct cm_buffer out = {0};

    (void)state;
    leak.iteration = 3;
    assert_false(leak.exhausted.known);
    assert_int_equal(cm_exhausted_set(&leak, &use), CM_OK);
    cm_exhausted_add_sentence(&leak, &out);
    cm_exhausted_add_kept(&leak, 0, &out);
    assert_string_equal(cm_buffer_text(&out),
                        "memory ran out at iteration 3: E5 B: a");
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_the_largest_of_what_was_seen),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
