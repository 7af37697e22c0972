/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TICKS_H
#define CM_TICKS_H

/* How long something takes, by the processor's own counter: one instruction,
 * where the kernel's clock is some ten lines of code and data, which have left
 * the caches when they are asked for once in a while.  How long a tick is, is
 * measured by the clock, for good once a second has gone by. */

#include <stdint.h>

#include "clock.h"

struct cm_ticks {
    uint64_t began, began_ns;
    double ns_each; /* 0: not known yet */
};

/* Where the processor has none that is known here, the clock's own. */
static inline uint64_t
cm_ticks_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return cm_clock_ns(CLOCK_MONOTONIC);
#endif
}

/* Before any question. */
void cm_ticks_begin(struct cm_ticks *self);
/* Nanoseconds since `ticks` were read; 0 where this processor's counter has not
 * come so far. */
uint64_t cm_ticks_since_ns(struct cm_ticks *self, uint64_t ticks);

#endif
