/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/alloc.h"
#include "../detector/site_growth.h"
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
    assert_false(job.growth.due);
    step(&job);
    assert_false(job.growth.due); /* told once */
    end(&job);
}

static void
tells_gradients_that_a_forward_finds(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_row row = {0};
    cm_growth_categorize(&job.growth, (struct cm_site_id){7}, CM_GRADIENT);
    cm_growth_gradients(&job.growth, 0, (struct cm_site_id){7}, 64 * MIB,
                        96 * MIB);
    allocate(&job, 7, 32 * MIB); /* a workspace, by the same line */
    uint64_t gradient = allocate(&job, 7, 64 * MIB);
    step(&job);
    for (int i = 0; i < 12; i++) {
        cm_growth_forward(&job.growth, job.blocks, job.iteration);
        step(&job);
    }
    assert_true(job.growth.due);
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
    cm_growth_gradients(&job.growth, 0, (struct cm_site_id){5}, 4 * MIB,
                        4 * MIB);
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_a_leak_within_ten_iterations_of_its_start),
        cmocka_unit_test(tells_gradients_that_a_forward_finds),
        cmocka_unit_test(adds_up_each_category),
        cmocka_unit_test(counts_what_it_had_no_memory_for),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
