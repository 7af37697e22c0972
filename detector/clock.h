/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_CLOCK_H
#define CM_CLOCK_H

#include <stdint.h>
#include <time.h>

/* One of the kernel's clocks, in nanoseconds. */
static inline uint64_t
cm_clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#endif
