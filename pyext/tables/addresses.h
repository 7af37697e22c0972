/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ADDRESSES_H
#define CM_ADDRESSES_H

/* A cache from the address of a Python object to a number, with a check that
 * tells whether the object there is still the one that was meant.  Bounded:
 * when it is full it forgets everything.  A zeroed cache is a valid empty one.
 *
 * Guarded by its owner. */

#include <stddef.h>
#include <stdint.h>

#include "../../detector/status.h"

struct cm_address {
    uint64_t check;
    const void *address; /* NULL: free; never followed */
    uint32_t value;
};

struct cm_addresses {
    struct cm_address *slots; /* owned; capacity is 0 or a power of two */
    size_t capacity;
    size_t count;
};

void cm_addresses_release(struct cm_addresses *self);
/* Empties it; a large table is given back. */
void cm_addresses_clear(struct cm_addresses *self);

/* Borrowed; NULL when it is not there. */
const struct cm_address *cm_addresses_find(const struct cm_addresses *self,
                                           const void *address);
/* Replaces what is there for this address.  A cache: nothing happens when
 * memory runs out. */
void cm_addresses_put(struct cm_addresses *self, const void *address,
                      uint64_t check, uint32_t value);

#endif
