/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_METER_H
#define CM_METER_H

/* What our hooks take: a loop's wall time hides one percent in its noise, and
 * virtual machines count no instructions.  A build with -DCUMEM_METER=clock
 * reads the processor's own clock inside them; one with -DCUMEM_METER=pass lets
 * the bench have them pass over, so that it sees by turns in one process what a
 * loop takes with and without them (bench/hooks.py).  Of any other build nothing
 * is left. */

#include <stdbool.h>

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

#ifdef CM_METER_CLOCK

#include <stdint.h>

#include "ticks.h"

struct cm_metering {
    enum cm_meter what;
    uint64_t began;
};

/* Read by the bench.  Two threads at once may lose a count. */
extern uint64_t cm_meter_ticks[CM_METERS], cm_meter_counts[CM_METERS];

static inline void
cm_meter_end(struct cm_metering *self)
{
    cm_meter_ticks[self->what] += cm_ticks_now() - self->began;
    cm_meter_counts[self->what]++;
}

/* From here to the end of the block. */
#define CM_METERED(kind)                                                      \
    struct cm_metering metering __attribute__((cleanup(cm_meter_end))) = {    \
        .what = (kind), .began = cm_ticks_now()}

#else

#define CM_METERED(kind) ((void)0)

#endif

#ifdef CM_METER_PASS

/* Set by the bench, a bit for each kind: such hooks return as soon as they are
 * called. */
extern unsigned int cm_meter_passing;
#define CM_PASSES(kind) ((cm_meter_passing & (1u << (kind))) != 0)

#else

#define CM_PASSES(kind) false

#endif
#endif
