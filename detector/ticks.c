/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "ticks.h"

#include "hot.h"

#define LONG_NS 1e9

void
cm_ticks_begin(struct cm_ticks *self)
{
    self->began_ns = cm_clock_ns(CLOCK_MONOTONIC);
    self->began = cm_ticks_now();
    self->ns_each = 0;
}

/* Kept once the two ends are so far apart that an interrupt between a reading of
 * the clock and one of the counter is little of it. */
static __attribute__((noinline)) double
learn(struct cm_ticks *self, uint64_t now)
{
    double ns = (double)(cm_clock_ns(CLOCK_MONOTONIC) - self->began_ns);
    if (now <= self->began) { /* another machine's by now */
        cm_ticks_begin(self);
        return 0;
    }
    double each = ns / (double)(now - self->began);
    if (ns >= LONG_NS) {
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
