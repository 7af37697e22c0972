/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_WAVE_H
#define CM_WAVE_H

/* Nodes that wait for their turn, first come first served.  Those that came
 * one after the other stand as one run: a walk of one rank has only few. */

#include <stdbool.h>
#include <stdint.h>

#include "../tables/huge_pages.h"

/* A zeroed value is valid and empty. */
struct cm_wave {
    struct cm_wave_run {
        uint32_t next, end; /* those before `next` have been taken */
    } * runs;               /* owned */
    size_t run_count, capacity;
    size_t run; /* that the next one is in, or the one after it */
    size_t taken, count;
};

static inline void
cm_wave_release(struct cm_wave *self)
{
    cm_huge_free(self->runs, self->capacity, sizeof(*self->runs));
    *self = (struct cm_wave){0};
}

static inline enum cm_status CM_CHECKED
cm_wave_add(struct cm_wave *self, uint32_t node)
{
    if (self->run_count == 0 || self->runs[self->run_count - 1].end != node) {
        enum cm_status status =
            cm_huge_grow((void **)&self->runs, &self->capacity,
                         self->run_count + 1, sizeof(*self->runs));
        if (status != CM_OK) {
            return status;
        }
        self->runs[self->run_count++] = (struct cm_wave_run){node, node};
    }
    self->runs[self->run_count - 1].end++;
    self->count++;
    return CM_OK;
}

/* Before: taken < count. */
static inline uint32_t
cm_wave_take(struct cm_wave *self)
{
    while (self->runs[self->run].next == self->runs[self->run].end) {
        self->run++;
    }
    self->taken++;
    return self->runs[self->run].next++;
}

#endif
