/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "streams.h"

#include <stdbool.h>

#include "event.h"
#include "hot.h"

/* Whether the place is `wanted`'s, by now or before. */
CM_HOT static bool
is_taken_for(_Atomic uint64_t *place, uint64_t wanted)
{
    uint64_t there = atomic_load_explicit(place, memory_order_relaxed);
    return there == wanted
           || (there == 0
               && (atomic_compare_exchange_strong(place, &there, wanted)
                   || there == wanted));
}

CM_HOT uint32_t
cm_streams_number(struct cm_streams *self, uint64_t handle)
{
    uint32_t at = (uint32_t)(handle * UINT64_C(0x9E3779B97F4A7C15) >> 55);
    for (uint32_t tries = 0;
         handle != CM_STREAM_UNKNOWN && tries < CM_MOST_STREAMS; tries++) {
        uint32_t number = (at + tries) % CM_MOST_STREAMS + 1;
        if (is_taken_for(&self->handles[number], handle + 1)) {
            return number;
        }
    }
    return 0;
}

uint64_t
cm_streams_handle(const struct cm_streams *self, uint32_t number)
{
    return number == 0 ? CM_STREAM_UNKNOWN
                       : atomic_load(&self->handles[number]) - 1;
}
