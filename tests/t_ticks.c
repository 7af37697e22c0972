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
static bool
fits_a_wait(struct cm_ticks *ticks, long ms)
{
    uint64_t outer = cm_clock_ns(CLOCK_MONOTONIC);
    uint64_t begin = cm_ticks_now();
    uint64_t inner = cm_clock_ns(CLOCK_MONOTONIC);
    wait_ms(ms);
    uint64_t least = cm_clock_ns(CLOCK_MONOTONIC) - inner;
    uint64_t took = cm_ticks_since_ns(ticks, begin);
    uint64_t most = cm_clock_ns(CLOCK_MONOTONIC) - outer;
    return (double)took >= (double)least * 0.98
           && (double)took <= (double)most * 1.02;
}

/* Of some tries one, since others may have the processor in between. */
static void
check_waits(struct cm_ticks *ticks, long ms)
{
    bool fits = false;
    for (int i = 0; i < 20 && !fits; i++) {
        fits = fits_a_wait(ticks, ms);
    }
    assert_true(fits);
}

static void
ticks_are_as_long_as_the_clock_says(void **state)
{
    (void)state;
    struct cm_ticks ticks;
    cm_ticks_begin(&ticks);
    wait_ms(20);
    check_waits(&ticks, 5);
    assert_true(ticks.ns_each == 0); /* not for good yet */
}

static void
one_that_is_known_stays(void **state)
{
    (void)state;
    struct cm_ticks ticks;
    cm_ticks_begin(&ticks);
    wait_ms(550);
    wait_ms(550);
    check_waits(&ticks, 5);
    double each = ticks.ns_each;
    assert_true(each > 0);
    check_waits(&ticks, 30);
    assert_true(ticks.ns_each == each);
}

static void
begins_anew_where_the_counter_went_back(void **state)
{
    (void)state;
    struct cm_ticks ticks;
    cm_ticks_begin(&ticks);
    ticks.began = UINT64_MAX;
    assert_int_equal(cm_ticks_since_ns(&ticks, cm_ticks_now()), 0);
    wait_ms(20);
    check_waits(&ticks, 5);
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
        cmocka_unit_test(one_that_is_known_stays),
        cmocka_unit_test(begins_anew_where_the_counter_went_back),
        cmocka_unit_test(what_lies_ahead_took_no_time),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
