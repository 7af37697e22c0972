/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_STEADY_H
#define CM_STEADY_H

/* Whether the end of an iteration brings anything to be looked at.  Where each
 * allocator says that it holds what it held at the last 16 ends, the sites and
 * their series are what they were; so all but each eighth of these ends are
 * passed over, and more the longer that lasts: after 8 n ends at most n in a
 * row, and never more than 63.  What grows changes a total, and is looked at
 * where it does; what lingers is met at one of those that are looked at. */

#include <stdbool.h>
#include <stdint.h>

#include "blocks.h"
#include "event.h"

enum { CM_STEADY_AFTER = 16, CM_STEADY_EACH = 8, CM_STEADY_MOST = 64 };

/* Zeroed before first use. */
struct cm_steady {
    uint64_t totals[CM_MAX_DEVICES];
    uint32_t same; /* ends in a row */
};

/* Iteration `number` ends; true: it may be passed over.  Allocators that tell
 * no totals are not to be asked of. */
bool cm_steady_ends(struct cm_steady *self, struct cm_blocks *blocks,
                    int64_t number);

#endif
