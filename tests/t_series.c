/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <stdarg.h>
#include <setjmp.h>

#include "../detector/series.h"
#include "fail_each.h"

enum { LONG = 100000, MIB = 1 << 20 };

static struct cm_series_point
point_at(const struct cm_series *series, size_t number)
{
    struct cm_series_point point;
    assert_true(cm_series_get(series, number, &point));
    return point;
}

/* What must be true of every series at every time. */
static void
check(const struct cm_series *series)
{
    size_t count = cm_series_count(series);
    struct cm_series_point none;
    assert_in_range(count, 0, CM_SERIES_POINTS);
    assert_false(cm_series_get(series, count, &none));
    for (size_t i = 0; i < count; i++) {
        struct cm_series_point point = point_at(series, i);
        assert_true(point.low_bytes <= point.bytes);
        assert_true(i == 0
                    || point.iteration > point_at(series, i - 1).iteration);
    }
    if (count > 0) {
        assert_int_equal(point_at(series, 0).iteration,
                         series->first_iteration);
    }
}

static void
keeps_each_change_while_there_is_room(void **state)
{
    (void)state;
    struct cm_series series = {0};
    check(&series);
    assert_int_equal(cm_series_newest(&series).bytes, 0);
    for (uint64_t i = 0; i < CM_SERIES_POINTS; i++) {
        cm_series_add(&series, 10 + (int64_t)i, i + 1, i * MIB);
    }
    check(&series);
    assert_int_equal(cm_series_count(&series), CM_SERIES_POINTS);
    for (uint64_t i = 0; i < CM_SERIES_POINTS; i++) {
        struct cm_series_point point = point_at(&series, i);
        assert_int_equal(point.iteration, 10 + i);
        assert_int_equal(point.count, i + 1);
        assert_int_equal(point.bytes, i * MIB);
        assert_int_equal(point.low_bytes, i * MIB);
    }
    assert_int_equal(cm_series_newest(&series).count, CM_SERIES_POINTS);
}

static void
takes_no_memory_for_equal_values(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 0; i < LONG; i++) {
        cm_series_add(&series, i, 4, MIB);
    }
    check(&series);
    assert_int_equal(cm_series_count(&series), 1);
    assert_int_equal(series.last_iteration, LONG - 1);
    cm_series_add(&series, LONG, 2, MIB); /* another count is a change */
    assert_int_equal(cm_series_count(&series), 2);
}

static void
thins_what_is_old(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 0; i < LONG; i++) {
        cm_series_add(&series, i, 1, (uint64_t)i * MIB);
    }
    check(&series);
    assert_in_range(cm_series_count(&series), CM_SERIES_POINTS * 3 / 4,
                    CM_SERIES_POINTS);
    assert_int_equal(point_at(&series, 0).bytes, 0);
    size_t newest = cm_series_count(&series) - 1;
    for (size_t back = 0; back < CM_SERIES_RECENT; back++) {
        assert_int_equal(point_at(&series, newest - back).iteration,
                         LONG - 1 - back);
    }
    for (size_t i = 1; i < series.spans_count; i++) {
        int64_t apart = point_at(&series, i).iteration
                        - point_at(&series, i - 1).iteration;
        assert_int_equal(apart, series.stride);
    }
    assert_in_range(series.stride, LONG / CM_SERIES_SPANS,
                    LONG / CM_SERIES_SPANS * 2 + 1);
}

/* A dip of one iteration in seven: every span has one. */
static void
keeps_the_least_of_what_it_drops(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 0; i < 5000; i++) {
        uint64_t bytes = (uint64_t)(i % 7 == 3 ? 10 : 20 + i % 5) * MIB;
        cm_series_add(&series, i, 1, bytes);
    }
    check(&series);
    for (size_t i = 0; i < series.spans_count; i++) {
        assert_int_equal(point_at(&series, i).low_bytes, 10 * MIB);
    }
}

static void
clamps_what_cannot_be(void **state)
{
    (void)state;
    struct cm_series series = {0};
    cm_series_add(&series, 5, UINT64_MAX, UINT64_MAX);
    cm_series_add(&series, 3, 7, 1); /* backwards: counts as now */
    check(&series);
    assert_int_equal(cm_series_count(&series), 1);
    assert_int_equal(cm_series_newest(&series).iteration, 5);
    assert_int_equal(cm_series_newest(&series).bytes, 1);
    cm_series_add(&series, 6, UINT64_MAX, 2);
    assert_int_equal(cm_series_newest(&series).count, UINT32_MAX);
    cm_series_add(&series, INT64_MAX, 1, 3);
    cm_series_add(&series, INT64_MAX, 1, 4);
    check(&series);
    assert_int_equal(cm_series_newest(&series).bytes, 4);
    assert_int_equal(cm_series_newest(&series).iteration,
                     INT64_C(5) + UINT32_MAX);
    struct cm_series widest = {0};
    cm_series_add(&widest, INT64_MIN, 1, 1);
    cm_series_add(&widest, INT64_MAX, 1, 2);
    check(&widest);
    assert_int_equal(cm_series_count(&widest), 2);
}

static void
remembers_a_rise_that_was_taken_back(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 0; i <= 3000; i++) { /* teeth of 100 iterations */
        cm_series_add(&series, i, 1, (uint64_t)(i % 100) * MIB);
    }
    assert_int_equal(series.longest_taken_back, 99);
    assert_int_equal(series.deepest_fall, 99 * MIB);
    assert_true(series.fell);
    struct cm_series steady = {0};
    for (int64_t i = 0; i <= 3000; i++) { /* never more than a third back */
        cm_series_add(&steady, i, 1, (uint64_t)(i - i % 3 * 2 / 3) * MIB);
    }
    assert_int_equal(steady.longest_taken_back, 0);
}

/* ---- at the forward */

static void
counts_forwards_in_a_row(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 1; i <= 6; i++) {
        cm_series_add(&series, i - 1, 1, MIB);
        cm_series_note_forward(&series, i, (uint64_t)i);
        cm_series_note_forward(&series, i, 99); /* a second backward() */
    }
    assert_int_equal(series.forwards_run, 6);
    assert_int_equal(series.replaced_run, 6);
    for (size_t back = 0; back < CM_SERIES_FORWARDS; back++) {
        assert_int_equal(cm_series_forward(&series, back).bytes, 6 - back);
        assert_int_equal(cm_series_forward(&series, back).iteration, 6 - back);
    }
    assert_int_equal(cm_series_forward(&series, CM_SERIES_FORWARDS).bytes, 0);
    cm_series_note_forward(&series, 7, 7); /* untouched since 5: it stands */
    assert_int_equal(series.forwards_run, 7);
    assert_int_equal(series.replaced_run, 0);
    cm_series_note_forward(&series, 9, 7); /* 8 kept nothing */
    assert_int_equal(series.forwards_run, 1);
    cm_series_note_forward(&series, 10, 0);
    assert_int_equal(series.forwards_run, 0);
    assert_int_equal(cm_series_forward(&series, 0).bytes, 0);
}

/* What is a gradient may be known long after it is one. */
static void
keeps_since_it_holds_where_nobody_asked(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 5; i < 200; i++) {
        cm_series_add(&series, i, (uint64_t)i, i < 81 ? 1 : MIB);
    }
    cm_series_note_unasked(&series, MIB);
    cm_series_note_forward(&series, 199, MIB);
    assert_int_equal(series.kept_before, 198);
    cm_series_note_unasked(&series, 2 * MIB);
    assert_int_equal(series.kept_before, 198);
    cm_series_note_unasked(&series, MIB);
    assert_in_range(series.kept_before, 80, 80 + series.stride);
    cm_series_note_unasked(&series, 0);
    assert_int_equal(series.kept_before, 4);
}

static void
counts_no_further_than_it_can(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 0; i < 1000; i++) {
        cm_series_add(&series, i, 1, MIB);
        cm_series_note_forward(&series, i, MIB);
    }
    assert_int_equal(series.forwards_run, UINT8_MAX);
    assert_int_equal(series.replaced_run, UINT8_MAX);
    assert_int_equal(cm_series_forward(&series, 3).iteration, 996);
}

/* ---- is a verdict worth its time? */

static uint64_t
noise(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005)
              + UINT64_C(1442695040888963407);
    return *random >> 44;
}

static void
suspects_what_grows_and_little_else(void **state)
{
    (void)state;
    struct cm_series flat = {0}, leak = {0}, under = {0}, noisy = {0};
    uint64_t random = 1, of_leak = 0, of_under = 0, of_noise = 0;
    assert_false(cm_series_suspect(&flat, 0));
    for (int64_t i = 0; i < 20000; i++) {
        cm_series_add(&flat, i, 1, MIB);
        cm_series_add(&leak, i, 1, (uint64_t)(i < 15000 ? 0 : i - 15000));
        uint64_t high = i % 50 == 49 ? 1u << 30 : 0; /* hides the peaks */
        cm_series_add(&under, i, 1, high + (uint64_t)i * 512);
        cm_series_add(&noisy, i, 1, noise(&random));
        assert_false(cm_series_suspect(&flat, i));
        bool asked = cm_series_suspect(&leak, i);
        assert_true(i < 15030 ? asked == (i > 15003) : true);
        of_leak += asked;
        of_under += cm_series_suspect(&under, i);
        of_noise += cm_series_suspect(&noisy, i);
    }
    assert_in_range(of_leak, 100, 250); /* 32 + 32 ln(5000 / 32) */
    assert_in_range(of_under, 100, 300);
    assert_true(of_noise < 20000 / 20);
    for (int64_t i = 20000; i < 60000; i++) { /* and settled is settled */
        cm_series_add(&leak, i, 1, 5000);
    }
    assert_false(cm_series_suspect(&leak, 60000));
    assert_false(cm_series_suspect(&leak, -1));
}

/* At every eleventh iteration only: what is due is asked for all the same. */
static void
suspects_when_it_is_seldom_asked(void **state)
{
    (void)state;
    struct cm_series series = {0};
    int64_t last = 0;
    for (int64_t i = 0; i < 5000; i += 11) {
        cm_series_add(&series, i, 1, (uint64_t)i * MIB);
        if (cm_series_suspect(&series, i)) {
            assert_true(last == 0 || i - last <= 11 + i / 32);
            last = i;
        }
    }
    assert_true(last > 4800);
}

static void
suspects_what_was_kept_three_times(void **state)
{
    (void)state;
    struct cm_series series = {0};
    cm_series_add(&series, 0, 1, MIB);
    for (int64_t i = 1; i <= 3; i++) {
        assert_false(cm_series_suspect(&series, i));
        cm_series_note_forward(&series, i, MIB);
    }
    assert_true(cm_series_suspect(&series, 3));
}

/* ---- the table */

static void
gives_each_site_and_category_its_series(void **state)
{
    (void)state;
    struct cm_series_table table = {.max_series = 100};
    struct cm_series *first, *again, *other, *second;
    uint32_t site, category;
    assert_int_equal(cm_series_table_get(&table, 7, 1, &first), CM_OK);
    cm_series_add(first, 1, 1, MIB);
    assert_int_equal(cm_series_table_get(&table, 7, 2, &other), CM_OK);
    assert_int_equal(cm_series_table_get(&table, 1, 7, &second), CM_OK);
    assert_int_equal(cm_series_table_get(&table, 7, 1, &again), CM_OK);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, other);
    assert_int_equal(cm_series_newest(again).bytes, MIB);
    assert_int_equal(cm_series_count(other), 0);
    assert_int_equal(cm_series_table_count(&table), 3);
    assert_ptr_equal(cm_series_table_at(&table, 2, &site, &category), second);
    assert_int_equal(site, 1);
    assert_int_equal(category, 7);
    assert_null(cm_series_table_at(&table, 3, &site, &category));
    cm_series_table_release(&table);
    assert_int_equal(cm_series_table_count(&table), 0);
}

static void
counts_what_it_has_no_room_for(void **state)
{
    (void)state;
    struct cm_series_table table = {.max_series = 3};
    struct cm_series *series = NULL;
    for (uint32_t site = 0; site < 10; site++) {
        assert_int_equal(cm_series_table_get(&table, site, 0, &series),
                         site < 3 ? CM_OK : CM_LIMIT);
    }
    assert_int_equal(table.lost, 7);
    assert_int_equal(cm_series_table_get(&table, 2, 0, &series), CM_OK);
    assert_int_equal(table.lost, 7);
    cm_series_table_release(&table);
}

static void
stays_small_with_many_sites(void **state)
{
    (void)state;
    struct cm_series_table table = {.max_series = 5000};
    struct cm_series *series;
    for (int64_t iteration = 0; iteration < 200; iteration++) {
        for (uint32_t site = 0; site < 6000; site++) {
            if (cm_series_table_get(&table, site, 0, &series) == CM_OK) {
                cm_series_add(series, iteration, 1,
                              (uint64_t)iteration * site);
            }
        }
    }
    assert_int_equal(cm_series_table_count(&table), 5000);
    assert_int_equal(table.lost, 200 * 1000);
    assert_true(table.entries.bytes < 12 * MIB); /* half of it untouched */
    uint32_t site, category;
    for (size_t i = 0; i < 5000; i++) {
        check(cm_series_table_at(&table, i, &site, &category));
        assert_int_equal(site, i);
    }
    cm_series_table_release(&table);
}

static enum cm_status
fill(void *context)
{
    (void)context;
    struct cm_series_table table = {.max_series = 500};
    enum cm_status status = CM_OK;
    for (uint32_t site = 0; site < 300 && status == CM_OK; site++) {
        struct cm_series *series = NULL;
        uint64_t lost = table.lost;
        status = cm_series_table_get(&table, site, 1, &series);
        assert_int_equal(table.lost - lost, status != CM_OK);
        assert_int_equal(series != NULL, status == CM_OK);
    }
    cm_series_table_release(&table);
    return status;
}

static void
pauses_where_the_next_highest_value_does_not_come(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 3; i < 63; i += 3) {
        cm_series_add(&series, i, 1, (uint64_t)i << 20);
        assert_false(cm_series_pauses(&series, i));
        assert_false(cm_series_pauses(&series, i + 2));
    }
    assert_true(cm_series_pauses(&series, 63));
    assert_true(cm_series_pauses(&series, 100));
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    cm_fail_each(fill, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_each_change_while_there_is_room),
        cmocka_unit_test(takes_no_memory_for_equal_values),
        cmocka_unit_test(thins_what_is_old),
        cmocka_unit_test(keeps_the_least_of_what_it_drops),
        cmocka_unit_test(clamps_what_cannot_be),
        cmocka_unit_test(remembers_a_rise_that_was_taken_back),
        cmocka_unit_test(counts_forwards_in_a_row),
        cmocka_unit_test(keeps_since_it_holds_where_nobody_asked),
        cmocka_unit_test(counts_no_further_than_it_can),
        cmocka_unit_test(suspects_what_grows_and_little_else),
        cmocka_unit_test(suspects_when_it_is_seldom_asked),
        cmocka_unit_test(suspects_what_was_kept_three_times),
        cmocka_unit_test(gives_each_site_and_category_its_series),
        cmocka_unit_test(counts_what_it_has_no_room_for),
        cmocka_unit_test(stays_small_with_many_sites),
        cmocka_unit_test(pauses_where_the_next_highest_value_does_not_come),
        cmocka_unit_test(survives_each_failed_allocation),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
