/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef GROWTH_JOB_H
#define GROWTH_JOB_H

/* A program that allocates, frees and ends iterations, and what its sites are
 * found to do. */

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

static inline struct job
begin(void)
{
    struct job job = {.blocks = cm_blocks_new(100000), .next = BASE};
    job.growth.table.max_series = 1000;
    return job;
}

static inline void
end(struct job *job)
{
    cm_growth_release(&job->growth);
    cm_blocks_free(job->blocks);
}

static inline uint64_t
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

static inline void
release(struct job *job, uint64_t address)
{
    cm_blocks_event(job->blocks, &(struct cm_event){.kind = CM_EVENT_FREE,
                                                    .address = address});
}

static inline void
step(struct job *job)
{
    job->iteration++;
    cm_growth_boundary(&job->growth, job->blocks, 0, job->iteration);
    cm_growth_judge(&job->growth, job->iteration);
}

static inline size_t
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

#endif
