/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "look_plan.h"

bool
cm_look_plan_due_after(const struct cm_look_plan *self, int64_t done)
{
    return self->every != 0 && done > 0 && (uint64_t)done % self->every == 0;
}

bool
cm_look_plan_affords(struct cm_look_plan *self, uint64_t now_ns)
{
    uint64_t run = now_ns > self->begun_ns ? now_ns - self->begun_ns : 0;
    uint64_t each = self->run_for_look > 0 ? self->run_for_look : 1;
    if (self->spent_ns + self->expected_ns <= run / each) {
        return true;
    }
    self->skipped += !self->waiting;
    self->waiting = true;
    return false;
}

void
cm_look_plan_looked(struct cm_look_plan *self, uint64_t took_ns,
                    uint64_t bytes)
{
    self->count++;
    self->spent_ns += took_ns;
    self->expected_ns = took_ns;
    if (took_ns > self->longest_ns) {
        self->longest_ns = took_ns;
    }
    self->bytes_then = bytes;
    self->waiting = false;
}

void
cm_look_plan_collected(struct cm_look_plan *self, uint64_t took_ns,
                       uint64_t bytes)
{
    if (self->count == 0) {
        self->expected_ns = took_ns;
    }
    self->bytes_then = bytes;
    self->waiting = false;
}
