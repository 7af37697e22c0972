/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_STREAMS_H
#define CM_STREAMS_H

/* Small numbers for the handles of streams.  There are few, so this is a
 * table that only grows; any thread may ask, without a lock. */

#include <stdatomic.h>
#include <stdint.h>

enum { CM_MOST_STREAMS = 511 };

/* Zeroed before first use. */
struct cm_streams {
    _Atomic uint64_t handles[CM_MOST_STREAMS + 1]; /* plus 1; 0: free */
};

/* From 1 to CM_MOST_STREAMS; 0: CM_STREAM_UNKNOWN, or there are too many. */
uint32_t cm_streams_number(struct cm_streams *self, uint64_t handle);
/* CM_STREAM_UNKNOWN for 0. */
uint64_t cm_streams_handle(const struct cm_streams *self, uint32_t number);

#endif
