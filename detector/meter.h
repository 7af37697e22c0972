/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_METER_H
#define CM_METER_H

/* What our hooks take, by the processor's own clock: a loop's wall time hides
 * one percent in its noise, and virtual machines count no instructions.  Only
 * a build with -DCUMEM_METER=ON has it (bench/hooks.py); of any other nothing
 * is left. */

enum cm_meter {
    CM_METER_ALLOCATION,
    CM_METER_FREE,
    CM_METER_TENSOR,
    CM_METER_TENSOR_FREE,
    CM_METER_COLLECTION_START,
    CM_METER_COLLECTION_STOP,
    CM_METER_GARBAGE,
    CM_METER_BACKWARD,
    CM_METER_STEP,
    CM_METERS
};

#ifdef CM_METER_ON

#include <stdint.h>

#include "clock.h"

struct cm_metering {
    enum cm_meter what;
    uint64_t began;
};

/* Read by the bench.  Two threads at once may lose a count. */
extern uint64_t cm_meter_ticks[CM_METERS], cm_meter_counts[CM_METERS];

static inline uint64_t
cm_meter_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return cm_clock_ns(CLOCK_MONOTONIC);
#endif
}

static inline void
cm_meter_end(struct cm_metering *self)
{
    cm_meter_ticks[self->what] += cm_meter_now() - self->began;
    cm_meter_counts[self->what]++;
}

/* From here to the end of the block. */
#define CM_METERED(kind)                                                      \
    struct cm_metering metering __attribute__((cleanup(cm_meter_end))) = {    \
        .what = (kind), .began = cm_meter_now()}

#else

#define CM_METERED(kind) ((void)0)

#endif
#endif
