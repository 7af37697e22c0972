/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/ticks.h"

#include <time.h>

#include "fail_each.h"

static void
wait_ms(long ms)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = ms * 1000000};
    nanosleep(&pause, NULL);
}

/* Beside the clock, which is read outside of the ticks on both sides. */
static void
check_a_wait(struct cm_ticks *ticks, long ms)
{
    uint64_t outer = cm_clock_ns(CLOCK_MONOTONIC);
    uint64_t begin = cm_ticks_now();
    uint64_t inner = cm_clock_ns(CLOCK_MONOTONIC);
    wait_ms(ms);
    uint64_t least = cm_clock_ns(CLOCK_MONOTONIC) - inner;
    uint64_t took = cm_ticks_since_ns(ticks, begin);
    uint64_t most = cm_clock_ns(CLOCK_MONOTONIC) - outer;
    assert_true((double)took >= (double)least * 0.98);
    assert_true((double)took <= (double)most * 1.02);
}

static void
ticks_are_as_long_as_the_clock_says(void **state)
{
    (void)state;
    struct cm_ticks ticks;
    cm_ticks_begin(&ticks);
    check_a_wait(&ticks, 2); /* not known for good yet */
    wait_ms(20);
    check_a_wait(&ticks, 5);
    assert_true(ticks.ns_each > 0);
    check_a_wait(&ticks, 30);
}

static void
what_lies_ahead_took_no_time(void **state)
{
    (void)state;
    struct cm_ticks ticks;
    cm_ticks_begin(&ticks);
    wait_ms(12);
    assert_int_equal(cm_ticks_since_ns(&ticks, UINT64_MAX), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_as_long_as_the_clock_says),
        cmocka_unit_test(what_lies_ahead_took_no_time),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
