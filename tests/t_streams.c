/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/event.h"
#include "../detector/streams.h"
#include "fail_each.h"

static void
gives_a_number_for_good(void **state)
{
    (void)state;
    static struct cm_streams streams;
    uint32_t first = cm_streams_number(&streams, 0);
    uint32_t second = cm_streams_number(&streams, 0x7f00dead0000);
    assert_int_not_equal(first, 0);
    assert_int_not_equal(first, second);
    assert_int_equal(cm_streams_number(&streams, 0), first);
    assert_int_equal(cm_streams_handle(&streams, second), 0x7f00dead0000);
    assert_int_equal(cm_streams_number(&streams, CM_STREAM_UNKNOWN), 0);
    assert_true(cm_streams_handle(&streams, 0) == CM_STREAM_UNKNOWN);
}

static void
has_no_number_for_one_too_many(void **state)
{
    (void)state;
    static struct cm_streams streams;
    for (uint64_t i = 0; i < CM_MOST_STREAMS; i++) {
        uint32_t number = cm_streams_number(&streams, i * 64);
        assert_in_range(number, 1, CM_MOST_STREAMS);
        assert_int_equal(cm_streams_handle(&streams, number), i * 64);
    }
    assert_int_equal(cm_streams_number(&streams, 7), 0);
    assert_int_not_equal(cm_streams_number(&streams, 64), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_a_number_for_good),
        cmocka_unit_test(has_no_number_for_one_too_many),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
