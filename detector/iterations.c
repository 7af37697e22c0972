/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "iterations.h"

/* An optimizer that steps so often alone has lost the others: they are done
 * with, or stand in a list. */
enum { ALONE = 16 };

#define SLICE_NS UINT64_C(1000000000)

static bool
end(struct cm_iterations *self, enum cm_iterations_by by)
{
    self->by = by;
    self->done++;
    for (size_t i = 0; i < self->active_count; i++) {
        self->active[i].steps = 0;
    }
    return true;
}

bool
cm_iterations_told(struct cm_iterations *self)
{
    return end(self, CM_BY_STEP);
}

/* Its steps since the iteration began, this one with them. */
static uint32_t
count_step(struct cm_iterations *self, uintptr_t optimizer)
{
    for (size_t i = 0; i < self->active_count; i++) {
        if (self->active[i].optimizer == optimizer) {
            self->active[i].all_steps++;
            return ++self->active[i].steps;
        }
    }
    if (self->active_count == CM_MOST_OPTIMIZERS) {
        return ALONE;
    }
    self->active[self->active_count].optimizer = optimizer;
    self->active[self->active_count].all_steps = 1;
    self->active[self->active_count++].steps = 1;
    return 1;
}

uint64_t
cm_iterations_steps(const struct cm_iterations *self, uintptr_t optimizer)
{
    for (size_t i = 0; i < self->active_count; i++) {
        if (self->active[i].optimizer == optimizer) {
            return self->active[i].all_steps;
        }
    }
    return 0;
}

static bool
all_stepped(const struct cm_iterations *self)
{
    for (size_t i = 0; i < self->active_count; i++) {
        if (self->active[i].steps == 0) {
            return false;
        }
    }
    return true;
}

static void
drop_idle(struct cm_iterations *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->active_count; i++) {
        if (self->active[i].steps != 0) {
            self->active[kept++] = self->active[i];
        }
    }
    self->active_count = kept;
}

bool
cm_iterations_optimizer(struct cm_iterations *self, uintptr_t optimizer)
{
    if (self->by == CM_BY_STEP) {
        return false;
    }
    uint32_t steps = count_step(self, optimizer);
    if (steps >= ALONE) {
        drop_idle(self);
    }
    return all_stepped(self) && end(self, CM_BY_OPTIMIZER);
}

bool
cm_iterations_time(struct cm_iterations *self, uint64_t now_ns)
{
    if (self->by != CM_BY_TIME) {
        return false;
    }
    if (self->slice_began_ns == 0) {
        self->slice_began_ns = now_ns;
    }
    if (now_ns - self->slice_began_ns < SLICE_NS) {
        return false;
    }
    self->slice_began_ns = now_ns;
    return end(self, CM_BY_TIME);
}

const char *
cm_iterations_name(enum cm_iterations_by by)
{
    static const char *const names[] = {"time", "optimizer", "step"};
    return names[by];
}
