/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "fail_each.h"

#include "../reports/buffer.h"

static void
test_empty_reads_as_empty_text(void **state)
{
    struct cm_buffer buffer = {0};

    (void)state;
    assert_string_equal(cm_buffer_text(&buffer), "");
    assert_int_equal(cm_buffer_status(&buffer), CM_OK);
    cm_buffer_release(&buffer);
    cm_buffer_release(NULL);
}

static void
test_adds_in_order(void **state)
{
    struct cm_buffer buffer = {0};

    (void)state;
    cm_buffer_add(&buffer, "ab", 1);
    cm_buffer_add_text(&buffer, "bc");
    cm_buffer_add_char(&buffer, 'd');
    cm_buffer_addf(&buffer, "%d-%s", 12, "x");
    cm_buffer_add_fill(&buffer, '.', 3);
    cm_buffer_add_fill(&buffer, '.', -3);
    assert_string_equal(cm_buffer_text(&buffer), "abcd12-x...");
    assert_int_equal(buffer.length, 11);
    cm_buffer_truncate(&buffer, 4);
    assert_string_equal(cm_buffer_text(&buffer), "abcd");
    cm_buffer_clear(&buffer);
    assert_string_equal(cm_buffer_text(&buffer), "");
    cm_buffer_release(&buffer);
}

static void
test_bound_keeps_additions_whole(void **state)
{
    struct cm_buffer buffer = {.max_bytes = 5};

    (void)state;
    cm_buffer_add_text(&buffer, "1234");
    cm_buffer_addf(&buffer, "%s", "56");
    assert_int_equal(cm_buffer_status(&buffer), CM_LIMIT);
    assert_string_equal(cm_buffer_text(&buffer), "1234");
    cm_buffer_add_char(&buffer, '5'); /* would fit, comes after the error */
    assert_string_equal(cm_buffer_text(&buffer), "1234");
    cm_buffer_clear(&buffer);
    cm_buffer_add_text(&buffer, "12345");
    assert_int_equal(cm_buffer_status(&buffer), CM_OK);
    cm_buffer_release(&buffer);
    assert_int_equal(buffer.max_bytes, 5);
}

static void
test_grows_to_a_million(void **state)
{
    struct cm_buffer buffer = {0};

    (void)state;
    for (int i = 0; i < 1000000; i++) {
        cm_buffer_add_char(&buffer, (char)('a' + i % 26));
    }
    assert_int_equal(buffer.length, 1000000);
    assert_int_equal(buffer.bytes[999999], 'a' + 999999 % 26);
    cm_buffer_release(&buffer);
}

static enum cm_status
attempt(void *context)
{
    struct cm_buffer buffer = {0};
    enum cm_status status;

    (void)context;
    for (int i = 0; i < 100; i++) {
        cm_buffer_addf(&buffer, "line %d\n", i);
    }
    status = cm_buffer_status(&buffer);
    cm_buffer_release(&buffer);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    (void)state;
    cm_fail_each(attempt, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_reads_as_empty_text),
        cmocka_unit_test(test_adds_in_order),
        cmocka_unit_test(test_bound_keeps_additions_whole),
        cmocka_unit_test(test_grows_to_a_million),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
