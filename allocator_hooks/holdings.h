/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HOLDINGS_H
#define CM_HOLDINGS_H

/* What the driver has given and not taken back: needed to know what goes with
 * a context, when memory behind a handle is free, and what was allocated
 * before somebody listened.
 *
 * Guarded by the owner.  A zeroed object is a valid empty one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/status.h"

struct cm_holding {
    uint64_t key; /* see driver_call.h; never 0 */
    uint64_t bytes;
    uint64_t stream; /* CM_STREAM_UNKNOWN */
    uint64_t time_ns;
    uint64_t context; /* goes with it; 0: with none */
    uint64_t memory;  /* of a mapping: the key of what is mapped */
    uint32_t thread;
    /* Of memory with a handle: who holds it, and where it is mapped.  Free
     * when both are 0. */
    uint32_t references, mappings;
    uint16_t library;
    int16_t device;
};

struct cm_holdings {
    struct cm_holding *slots; /* owned; key 0: empty */
    size_t capacity;          /* 0 or a power of two */
    size_t count;
};

void cm_holdings_release(struct cm_holdings *self);

/* Replaces what has the same key.  On failure nothing is changed. */
enum cm_status cm_holdings_put(struct cm_holdings *self,
                               const struct cm_holding *holding) CM_CHECKED;
/* Borrowed until the next put or remove; NULL: none. */
struct cm_holding *cm_holdings_find(const struct cm_holdings *self,
                                    uint64_t key);
/* False: there was none.  `result` may be NULL. */
bool cm_holdings_remove(struct cm_holdings *self, uint64_t key,
                        struct cm_holding *result);

/* Walks in no order; *place is 0 at first.  NULL: the end.  The one that was
 * returned last may be removed if *place is then made one less. */
struct cm_holding *cm_holdings_next(const struct cm_holdings *self,
                                    size_t *place);

#endif
