/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/site_growth.h"
#include "../detector/growth_anew.h"
#include "growth_job.h"

/* Whatever the iteration: each series has its turn at another one. */
static void
tells_a_late_leak_within_ten_iterations_too(void **state)
{
    (void)state;
    for (int start = 100; start < 108; start++) {
        struct job job = begin();
        for (int i = 0; i < start; i++) {
            release(&job, allocate(&job, 3, 8 * MIB));
            step(&job);
        }
        for (int i = 0; i < 10; i++) {
            allocate(&job, 5, 4 * MIB);
            step(&job);
        }
        assert_true(job.growth.due);
        end(&job);
    }
}

static void
tells_a_leak_within_ten_iterations_of_its_start(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    for (int i = 0; i < 20; i++) {
        release(&job, allocate(&job, 3, 8 * MIB));
        step(&job);
        assert_false(job.growth.due);
    }
    for (int i = 0; i < 10; i++) {
        release(&job, allocate(&job, 3, 8 * MIB));
        allocate(&job, 5, 4 * MIB);
        step(&job);
    }
    assert_true(job.growth.due);
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    assert_int_equal(row.site, 5);
    assert_int_equal(row.device, 0);
    assert_int_equal(row.bytes, 40 * MIB);
    assert_int_equal(row.count, 10);
    assert_in_range((uint64_t)row.result.bytes_per_iteration, 4 * MIB - 1,
                    4 * MIB + 1);
    assert_in_range(row.result.since_iteration, 19, 21);
    assert_true(job.growth.due); /* asked for, not told yet */
    job.growth.due = false;
    step(&job);
    assert_false(job.growth.due); /* told once */
    end(&job);
}

static void
step_often(struct job *job, int times)
{
    for (int i = 0; i < times; i++) {
        release(job, allocate(job, 3, 8 * MIB));
        step(job);
    }
}

/* As samples of each evaluation: whatever the numbers of their series are. */
static void
tells_a_leak_of_what_comes_seldom(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row;
    for (int turn = 0; turn < 12; turn++) {
        step_often(&job, 499);
        for (uint32_t site = 5; site < 13; site++) {
            allocate(&job, site, (1 + (uint64_t)turn * 5 % 3) * MIB);
        }
        step(&job);
    }
    assert_true(job.growth.due);
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 8);
    for (size_t i = 0; i < 9; i++) {
        bool seldom = job.growth.states[i].count > 1;
        assert_true(!seldom || job.growth.states[i].told == CM_VERDICT_LEAK);
    }
    end(&job);
}

static void
waits_for_more_models_than_an_ensemble_has(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_site_id model = {5};
    for (int member = 0; member < 14; member++) {
        allocate(&job, model.index, 4 * MIB);
        cm_growth_categorize(&job.growth, model, CM_PARAMETER);
        step_often(&job, 20);
        assert_int_equal(job.growth.due, member > 11);
    }
    end(&job);
}

static void
remembers_what_each_turn_sets_anew(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_site_id site = {7}, other = {8};
    cm_growth_renew(&job.growth, 0, site, true); /* it has no series yet */
    assert_false(cm_growth_is_renewed(&job.growth, 0, site));
    allocate(&job, 7, MIB);
    step(&job);
    cm_growth_renew(&job.growth, 0, site, true);
    step(&job);
    assert_true(cm_growth_is_renewed(&job.growth, 0, site));
    assert_false(cm_growth_is_renewed(&job.growth, 1, site));
    assert_false(cm_growth_is_renewed(&job.growth, 0, other));
    cm_growth_renew(&job.growth, 0, site, false);
    assert_false(cm_growth_is_renewed(&job.growth, 0, site));
    cm_growth_renew(&job.growth, 0, site, true);
    cm_growth_begin_anew(&job.growth, job.iteration, false);
    assert_false(cm_growth_is_renewed(&job.growth, 0, site));
    end(&job);
}

static void
tells_gradients_that_a_forward_finds(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    cm_growth_categorize(&job.growth, (struct cm_site_id){7}, CM_GRADIENT);
    cm_growth_own(&job.growth, 0, (struct cm_site_id){7}, 64 * MIB, 96 * MIB);
    allocate(&job, 7, 32 * MIB); /* a workspace, by the same line */
    uint64_t gradient = allocate(&job, 7, 64 * MIB);
    step(&job);
    assert_true(cm_growth_may_keep(&job.growth, 0, (struct cm_site_id){7}));
    assert_true(cm_growth_may_keep(&job.growth, 0, (struct cm_site_id){99}));
    for (int i = 0; i < 12; i++) {
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
        step(&job);
    }
    assert_true(job.growth.due);
    assert_true(cm_growth_may_keep(&job.growth, 0, (struct cm_site_id){7}));
    assert_int_equal(rows_of(&job, CM_VERDICT_LINGERING, &row), 1);
    assert_int_equal(row.category, CM_GRADIENT);
    assert_int_equal(row.result.lingering_bytes, 64 * MIB);
    assert_int_equal(row.bytes, 64 * MIB);
    assert_int_equal(row.peak_bytes, 64 * MIB);
    assert_int_equal(job.growth.bytes[1][CM_GRADIENT], 64 * MIB);
    assert_int_equal(job.growth.bytes[1][CM_OTHER], 32 * MIB);
    for (int i = 0; i < 12; i++) {
        release(&job, gradient);
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
        gradient = allocate(&job, 7, 64 * MIB);
        step(&job);
    }
    assert_int_equal(rows_of(&job, CM_VERDICT_LINGERING, &row), 0);
    assert_false(cm_growth_may_keep(&job.growth, 0, (struct cm_site_id){7}));
    end(&job);
}

/* zero_grad() comes in time; a list has each of them. */
static void
leaves_gathered_gradients_to_who_gathers_them(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    struct cm_site_id site = {7};
    cm_growth_categorize(&job.growth, site, CM_GRADIENT);
    for (uint64_t i = 1; i <= 24; i++) {
        allocate(&job, 7, 4 * MIB);
        cm_growth_own(&job.growth, 0, site, 4 * MIB, i * 4 * MIB);
        step(&job);
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
        assert_int_equal(rows_of(&job, CM_VERDICT_LINGERING, &row), 0);
    }
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    end(&job);
}

/* What was there beside them, a workspace, is not what came. */
static void
tells_what_came_beside_what_parameters_own(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    struct cm_site_id site = {7};
    cm_growth_categorize(&job.growth, site, CM_GRADIENT);
    for (uint64_t i = 1; i <= 24; i++) {
        allocate(&job, 7, 4 * MIB);
        cm_growth_own(&job.growth, 0, site, i * 3 * MIB, (32 + i * 4) * MIB);
        step(&job);
    }
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    assert_int_equal(row.owned_bytes, 72 * MIB);
    assert_int_equal(row.other_bytes, 23 * MIB);
    end(&job);
}

/* More lines than are judged at one boundary: who does not clear one gradient
 * clears none, and the first report has the bytes of all. */
static void
tells_the_gradients_of_many_lines_at_once(void **state)
{
    enum { LINES = 100 };
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    for (uint32_t line = 1; line <= LINES; line++) {
        struct cm_site_id site = {line};
        cm_growth_categorize(&job.growth, site, CM_GRADIENT);
        cm_growth_own(&job.growth, 0, site, 2 * MIB, 2 * MIB);
        allocate(&job, line, 2 * MIB);
    }
    step(&job);
    while (!job.growth.due && job.iteration < 12) {
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
        step(&job);
    }
    assert_int_equal(rows_of(&job, CM_VERDICT_LINGERING, &row), LINES);
    end(&job);
}

static void
is_calm_where_nothing_is_suspect(void **state)
{
    (void)state;
    struct job job = begin();
    uint64_t gradient = allocate(&job, 7, 64 * MIB);
    cm_growth_categorize(&job.growth, (struct cm_site_id){7}, CM_GRADIENT);
    cm_growth_own(&job.growth, 0, (struct cm_site_id){7}, 64 * MIB, 64 * MIB);
    for (int i = 0; i < 40; i++) {
        step(&job);
        release(&job, gradient);
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
        gradient = allocate(&job, 7, 64 * MIB);
    }
    assert_true(job.growth.calm);
    for (int i = 0; i < 10; i++) { /* told from the third on */
        step(&job);
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
        assert_false(job.growth.calm);
    }
    end(&job);
    job = begin();
    for (int i = 0; i < 20; i++) {
        allocate(&job, 9, 8 * MIB);
        step(&job);
    }
    assert_false(job.growth.calm);
    end(&job);
}

/* A loop after another one: its gradients are of other sites, and of the first
 * one's only a workspace of cuBLAS stays. */
static void
takes_no_workspace_for_gradients(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    cm_growth_categorize(&job.growth, (struct cm_site_id){7}, CM_GRADIENT);
    allocate(&job, 7, 32 * MIB);
    for (int i = 0; i < 24; i++) {
        uint64_t gradient = allocate(&job, i < 12 ? 7 : 8, 8 * MIB);
        step(&job);
        if (i == 3) { /* not looked at after each iteration */
            cm_growth_own(&job.growth, 0, (struct cm_site_id){7}, 8 * MIB,
                          40 * MIB);
        }
        release(&job, gradient);
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
    }
    assert_false(job.growth.due);
    assert_int_equal(rows_of(&job, CM_VERDICT_LINGERING, &row), 0);
    end(&job);
}

static void
adds_up_each_category(void **state)
{
    (void)state;
    struct job job = begin();
    allocate(&job, 1, 3 * MIB);
    allocate(&job, 2, 5 * MIB);
    step(&job);
    assert_int_equal(job.growth.bytes[1][CM_OTHER], 8 * MIB);
    cm_growth_categorize(&job.growth, (struct cm_site_id){2}, CM_PARAMETER);
    step(&job);
    assert_int_equal(job.growth.bytes[1][CM_OTHER], 3 * MIB);
    assert_int_equal(job.growth.bytes[1][CM_PARAMETER], 5 * MIB);
    allocate(&job, 2, MIB);
    step(&job);
    assert_int_equal(job.growth.bytes[1][CM_PARAMETER], 6 * MIB);
    assert_int_equal(cm_growth_category(&job.growth, 99), CM_OTHER);
    end(&job);
}

static enum cm_status
everything(void *context)
{
    (void)context;
    struct job job = begin();
    struct cm_growth_row *rows = NULL;
    size_t count;
    if (job.blocks == NULL) {
        return CM_NO_MEMORY;
    }
    cm_growth_categorize(&job.growth, (struct cm_site_id){5}, CM_GRADIENT);
    cm_growth_own(&job.growth, 0, (struct cm_site_id){5}, 4 * MIB, 4 * MIB);
    for (int i = 0; i < 15; i++) {
        allocate(&job, 5, 4 * MIB);
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
        step(&job);
    }
    struct cm_blocks_counts counts;
    cm_blocks_counts(job.blocks, &counts);
    enum cm_status status =
        cm_growth_rows(&job.growth, job.iteration, &rows, &count);
    if (job.growth.lost + job.growth.table.lost + counts.lost
            + counts.lost_sites
        != 0) {
        status = CM_NO_MEMORY;
    }
    cm_free(rows);
    end(&job);
    return status;
}

static void
counts_what_it_had_no_memory_for(void **state)
{
    (void)state;
    cm_fail_each(everything, NULL);
}

static void
has_a_series_for_what_is_outside(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row *rows;
    struct cm_site_id site;
    size_t count;
    for (int i = 0; i < 20; i++) {
        release(&job, allocate(&job, 5, MIB));
        cm_growth_outside(&job.growth, 0, job.iteration + 1,
                          (uint64_t)(i + 1) * MIB);
        cm_growth_outside(&job.growth, 1, job.iteration + 1, 7 * MIB);
        cm_growth_outside(&job.growth, -1, job.iteration + 1, MIB);
        cm_growth_outside(&job.growth, CM_MAX_DEVICES, 1, MIB);
        step(&job);
    }
    assert_int_equal(job.growth.bytes[1][CM_OUTSIDE], 20 * MIB);
    assert_int_equal(job.growth.bytes[2][CM_OUTSIDE], 7 * MIB);
    assert_int_equal(cm_growth_rows(&job.growth, job.iteration, &rows, &count),
                     CM_OK);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].category, CM_OUTSIDE);
    assert_int_equal(rows[0].site, 0);
    assert_int_equal(rows[0].device, 0);
    assert_int_equal(rows[0].result.verdict, CM_VERDICT_LEAK);
    cm_free(rows);
    uint32_t sum = 0;
    for (count = 0; cm_growth_next_site(&job.growth, &site); count++) {
        sum += site.index;
    }
    assert_int_equal(count, 3);
    assert_int_equal(sum, 5);
    assert_false(cm_growth_next_site(&job.growth, &site));
    end(&job);
}

/* The driver is asked ever more seldom: what it would say in between is not
 * known, and no end of the growth. */
static void
knows_no_end_of_what_is_asked_for_seldom(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    int64_t next = 1, asked = 0, told = 0;
    for (int64_t i = 1; i < 3000; i++) {
        if (i == next) {
            cm_growth_outside(&job.growth, 0, i, (uint64_t)i * MIB);
            asked++;
            next += asked <= 8 ? 1 : asked <= 24 ? 3 : 300;
        }
        step(&job);
        told += rows_of(&job, CM_VERDICT_LEAK, &row) == 1;
    }
    assert_in_range(told, 2980, 3000);
    assert_in_range((int64_t)row.result.bytes_per_iteration, MIB * 9 / 10,
                    MIB * 11 / 10);
    assert_in_range(row.result.since_iteration, 0, 4);
    end(&job);
}

/* Setting up looked like growth; what lives then is the level from which
 * iterations are judged. */
/* Replaced in each iteration it holds the same at each boundary, which its
 * series is not told. */
static void
hears_of_a_site_that_was_still(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    uint64_t last = allocate(&job, 9, MIB);
    for (int i = 0; i < 30; i++) {
        release(&job, last);
        last = allocate(&job, 9, MIB);
        step(&job);
    }
    assert_false(job.growth.due);
    for (int i = 0; i < 10; i++) {
        allocate(&job, 9, MIB);
        step(&job);
    }
    assert_true(job.growth.due);
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    assert_int_equal(row.site, 9);
    assert_int_equal(row.count, 11);
    assert_in_range(row.result.since_iteration, 29, 31);
    end(&job);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_a_leak_within_ten_iterations_of_its_start),
        cmocka_unit_test(tells_a_late_leak_within_ten_iterations_too),
        cmocka_unit_test(tells_a_leak_of_what_comes_seldom),
        cmocka_unit_test(waits_for_more_models_than_an_ensemble_has),
        cmocka_unit_test(remembers_what_each_turn_sets_anew),
        cmocka_unit_test(tells_gradients_that_a_forward_finds),
        cmocka_unit_test(leaves_gathered_gradients_to_who_gathers_them),
        cmocka_unit_test(tells_the_gradients_of_many_lines_at_once),
        cmocka_unit_test(tells_what_came_beside_what_parameters_own),
        cmocka_unit_test(is_calm_where_nothing_is_suspect),
        cmocka_unit_test(takes_no_workspace_for_gradients),
        cmocka_unit_test(adds_up_each_category),
        cmocka_unit_test(counts_what_it_had_no_memory_for),
        cmocka_unit_test(has_a_series_for_what_is_outside),
        cmocka_unit_test(knows_no_end_of_what_is_asked_for_seldom),
        cmocka_unit_test(hears_of_a_site_that_was_still),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
