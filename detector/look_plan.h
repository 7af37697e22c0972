/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LOOK_PLAN_H
#define CM_LOOK_PLAN_H

/* When to look for dead memory without being asked: once so many bytes were
 * allocated since the last look, or each so many iterations, but never so
 * often that the looks take more than their share of the run's time.  What a
 * look will cost is taken from the last one; before that, from the last full
 * collection, which walks the same objects.
 *
 * Only arithmetic, told the time and the bytes; guarded by its owner. */

#include <stdbool.h>
#include <stdint.h>

struct cm_look_plan {
    /* 0: not for this reason. */
    uint64_t bytes, every;
    uint64_t run_for_look; /* ns of the run for each ns of a look */
    uint64_t begun_ns;     /* of the run */
    /* Private, all below; counts may be read. */
    uint64_t bytes_then;     /* at the last look */
    uint64_t expected_ns;    /* what a look costs; 0: not known */
    uint64_t count, skipped; /* skipped: wanted, and had to wait */
    uint64_t spent_ns, longest_ns;
    bool waiting; /* this one was counted as skipped */
};

/* Whether a look is due; `bytes`: allocated so far in all.  Cheap. */
static inline bool
cm_look_plan_due(const struct cm_look_plan *self, uint64_t bytes)
{
    return self->bytes != 0 && bytes - self->bytes_then >= self->bytes;
}
/* Whether one is due now that `done` iterations have ended. */
bool cm_look_plan_due_after(const struct cm_look_plan *self, int64_t done);
/* Whether one may be had now; if not, it is counted, once. */
bool cm_look_plan_affords(struct cm_look_plan *self, uint64_t now_ns);
/* A look is over. */
void cm_look_plan_looked(struct cm_look_plan *self, uint64_t took_ns,
                         uint64_t bytes);
/* A full collection is over, which is as good as a look. */
void cm_look_plan_collected(struct cm_look_plan *self, uint64_t took_ns,
                            uint64_t bytes);

#endif
