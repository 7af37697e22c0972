/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "ticks.h"

#include "hot.h"

#define LEAST_NS 10e6

void
cm_ticks_begin(struct cm_ticks *self)
{
    self->began_ns = cm_clock_ns(CLOCK_MONOTONIC);
    self->began = cm_ticks_now();
    self->ns_each = 0;
}

/* Kept once the two ends are far enough apart. */
static __attribute__((noinline)) double
learn(struct cm_ticks *self, uint64_t now)
{
    double ns = (double)(cm_clock_ns(CLOCK_MONOTONIC) - self->began_ns);
    double each = now > self->began ? ns / (double)(now - self->began) : 0;
    if (ns >= LEAST_NS) {
        self->ns_each = each;
    }
    return each;
}

CM_HOT uint64_t
cm_ticks_since_ns(struct cm_ticks *self, uint64_t ticks)
{
    uint64_t now = cm_ticks_now();
    double each =
        CM_SELDOM(self->ns_each == 0) ? learn(self, now) : self->ns_each;
    return now > ticks ? (uint64_t)((double)(now - ticks) * each) : 0;
}
