/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/growth_anew.h"
#include "growth_job.h"

static void
begins_anew_with_what_lives(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row *rows;
    size_t count;
    allocate(&job, 9, MIB);
    for (int i = 0; i < 20; i++) {
        allocate(&job, 7, MIB);
        step(&job);
    }
    assert_true(job.growth.due);
    job.iteration = 1;
    cm_growth_boundary(&job.growth, job.blocks, 0, job.iteration);
    cm_growth_begin_anew(&job.growth, job.iteration, false);
    assert_false(job.growth.due);
    cm_growth_judge(&job.growth, job.iteration);
    for (int i = 0; i < 20; i++) {
        release(&job, allocate(&job, 8, MIB));
        step(&job);
    }
    assert_false(job.growth.due);
    assert_int_equal(cm_growth_rows(&job.growth, job.iteration, &rows, &count),
                     CM_OK);
    assert_int_equal(count, 0);
    cm_free(rows);
    assert_int_equal(job.growth.bytes[1][CM_OTHER], 21 * MIB);
    for (int i = 0; i < 20; i++) {
        allocate(&job, 7, MIB);
        step(&job);
    }
    assert_true(job.growth.due);
    assert_int_equal(cm_growth_rows(&job.growth, job.iteration, &rows, &count),
                     CM_OK);
    assert_int_equal(count, 1);
    assert_in_range(rows[0].result.since_iteration, 20, 22);
    cm_free(rows);
    end(&job);
}

/* A data set that is loaded for minutes, and told as a leak of the slices until
 * training begins: it has stopped. */
static void
remembers_what_was_heard_before_iterations(void **state)
{
    (void)state;
    for (int heard = 0; heard < 2; heard++) {
        struct job job = begin();
        struct cm_growth_row row = {0};
        for (int i = 0; i < 40; i++) {
            allocate(&job, 7, MIB);
            step(&job);
        }
        assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
        job.iteration = 1;
        cm_growth_boundary(&job.growth, job.blocks, 0, job.iteration);
        cm_growth_begin_anew(&job.growth, job.iteration, heard);
        cm_growth_judge(&job.growth, job.iteration);
        for (int i = 0; i < 40; i++) {
            release(&job, allocate(&job, 8, MIB));
            step(&job);
        }
        assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 0);
        assert_int_equal(rows_of(&job, CM_VERDICT_SETTLED, &row), heard);
        end(&job);
    }
}

/* As the owner does at the end of the first slice, or the first iteration. */
static bool
begin_unit(struct job *job, bool slices, bool heard)
{
    bool told = false;
    int64_t before = job->iteration++;
    cm_growth_boundary(&job->growth, job->blocks, 0, job->iteration);
    if (!slices) {
        cm_growth_end_slices(&job->growth, job->iteration, heard);
    }
    job->growth.slices = slices;
    job->growth.sliced = slices ? before : 0;
    job->growth.unit_began = before;
    if (slices) {
        told = cm_growth_begin_slices(&job->growth, job->iteration);
    }
    cm_growth_judge(&job->growth, job->iteration);
    return told;
}

static void
leak(struct job *job, uint32_t site, int times)
{
    for (int i = 0; i < times; i++) {
        allocate(job, site, MIB);
        step(job);
    }
}

/* A leak that was told is told to have stopped, or to go on; parameters, which
 * have always been there, are no growth of what begins. */
static void
keeps_what_was_told_before_slices(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    allocate(&job, 9, 64 * MIB);
    leak(&job, 7, 20);
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    assert_true(begin_unit(&job, true, true));
    leak(&job, 8, 40);
    assert_int_equal(rows_of(&job, CM_VERDICT_SETTLED, &row), 1);
    assert_int_equal(row.site, 7);
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    assert_int_equal(row.site, 8);
    assert_in_range(row.result.since_iteration, 20, 24);
    assert_in_range((uint64_t)row.result.bytes_per_iteration, MIB / 2,
                    3 * MIB);
    leak(&job, 7, 40);
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    assert_int_equal(row.site, 7);
    assert_in_range(row.result.since_iteration, 58, 64);
    end(&job);
}

/* What an evaluation gathers, and who may have heard of it; then iterations, of
 * which each is what it is without the slices before. */
static void
ends_slices(void **state)
{
    (void)state;
    for (int heard = 0; heard < 2; heard++) {
        struct job job = begin();
        struct cm_growth_row row = {0};
        allocate(&job, 9, 64 * MIB);
        release(&job, allocate(&job, 8, MIB));
        step(&job);
        assert_false(begin_unit(&job, true, true));
        leak(&job, 8, 40);
        assert_true(job.growth.due);
        (void)begin_unit(&job, false, heard);
        assert_int_equal(job.growth.due, heard);
        for (int i = 0; i < 20; i++) {
            release(&job, allocate(&job, 6, MIB));
            step(&job);
        }
        assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 0);
        assert_int_equal(rows_of(&job, CM_VERDICT_SETTLED, &row), heard);
        int64_t before = job.iteration;
        leak(&job, 8, 20);
        assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
        assert_in_range(row.result.since_iteration, before - 1, before + 1);
        assert_in_range((uint64_t)row.result.bytes_per_iteration, MIB - 1,
                        MIB + 1);
        end(&job);
    }
}

/* Gradients that were not cleared in time, before slices and after them. */
static void
has_lingering_through_slices(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    cm_growth_categorize(&job.growth, (struct cm_site_id){7}, CM_GRADIENT);
    cm_growth_own(&job.growth, 0, (struct cm_site_id){7}, 64 * MIB, 64 * MIB);
    allocate(&job, 7, 64 * MIB);
    for (int i = 0; i < 12; i++) {
        step(&job);
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
    }
    step(&job);
    assert_int_equal(rows_of(&job, CM_VERDICT_LINGERING, &row), 1);
    assert_true(begin_unit(&job, true, true));
    for (int i = 0; i < 40; i++) {
        release(&job, allocate(&job, 6, MIB));
        step(&job);
        assert_int_equal(rows_of(&job, CM_VERDICT_LINGERING, &row), 1);
    }
    cm_growth_forward(&job.growth, job.blocks, job.iteration);
    (void)begin_unit(&job, false, true);
    assert_int_equal(rows_of(&job, CM_VERDICT_LINGERING, &row), 1);
    end(&job);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_anew_with_what_lives),
        cmocka_unit_test(remembers_what_was_heard_before_iterations),
        cmocka_unit_test(keeps_what_was_told_before_slices),
        cmocka_unit_test(ends_slices),
        cmocka_unit_test(has_lingering_through_slices),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
