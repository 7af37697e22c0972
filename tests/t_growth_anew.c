/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/alloc.h"
#include "../detector/growth_anew.h"
#include "fail_each.h"

#define BASE UINT64_C(0x7f0000000000)
#define MIB (UINT64_C(1) << 20)

struct job {
    struct cm_blocks *blocks;
    struct cm_growth growth;
    uint64_t next; /* address */
    int64_t iteration;
};

static struct job
begin(void)
{
    struct job job = {.blocks = cm_blocks_new(100000), .next = BASE};
    job.growth.table.max_series = 1000;
    return job;
}

static void
end(struct job *job)
{
    cm_growth_release(&job->growth);
    cm_blocks_free(job->blocks);
}

static uint64_t
allocate(struct job *job, uint32_t site, uint64_t bytes)
{
    uint64_t address = job->next;
    cm_blocks_event(job->blocks, &(struct cm_event){
                                     .kind = CM_EVENT_ALLOCATE,
                                     .address = address,
                                     .bytes = bytes,
                                     .site = {site},
                                 });
    job->next += bytes;
    return address;
}

static void
release(struct job *job, uint64_t address)
{
    cm_blocks_event(job->blocks, &(struct cm_event){.kind = CM_EVENT_FREE,
                                                    .address = address});
}

static void
step(struct job *job)
{
    job->iteration++;
    cm_growth_boundary(&job->growth, job->blocks, 0, job->iteration);
    cm_growth_judge(&job->growth, job->iteration);
}

static size_t
rows_of(struct job *job, enum cm_verdict verdict, struct cm_growth_row *found)
{
    struct cm_growth_row *rows;
    size_t count, matching = 0;
    assert_int_equal(
        cm_growth_rows(&job->growth, job->iteration, &rows, &count), CM_OK);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].result.verdict == verdict) {
            *found = rows[i];
            matching++;
        }
    }
    cm_free(rows);
    return matching;
}

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
    cm_growth_begin_anew(&job.growth, job.iteration);
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

/* A leak that was told is told to have stopped, or to go on; parameters, which
 * have always been there, are no growth of what begins. */
static void
keeps_what_was_told_before_slices(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    allocate(&job, 9, 64 * MIB);
    for (int i = 0; i < 20; i++) {
        allocate(&job, 7, MIB);
        step(&job);
    }
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    job.growth.slices = true;
    job.growth.sliced = job.iteration++;
    cm_growth_boundary(&job.growth, job.blocks, 0, job.iteration);
    cm_growth_begin_slices(&job.growth, job.iteration);
    cm_growth_judge(&job.growth, job.iteration);
    for (int i = 0; i < 40; i++) {
        allocate(&job, 8, MIB);
        step(&job);
    }
    assert_int_equal(rows_of(&job, CM_VERDICT_SETTLED, &row), 1);
    assert_int_equal(row.site, 7);
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    assert_int_equal(row.site, 8);
    assert_in_range(row.result.since_iteration, 20, 24);
    assert_in_range((uint64_t)row.result.bytes_per_iteration, MIB / 2,
                    3 * MIB);
    for (int i = 0; i < 40; i++) {
        allocate(&job, 7, MIB);
        step(&job);
    }
    assert_int_equal(rows_of(&job, CM_VERDICT_LEAK, &row), 1);
    assert_int_equal(row.site, 7);
    assert_in_range(row.result.since_iteration, 58, 64);
    end(&job);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_anew_with_what_lives),
        cmocka_unit_test(keeps_what_was_told_before_slices),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
