/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_INDEX_H
#define CM_INDEX_H

/* A hash index: from the hash of a thing to the number it has in its owner's
 * table.  It holds no things and compares none itself; numbers start at 1.
 * Nothing is ever taken out.  A zeroed index is a valid empty one.
 *
 * Guarded by its owner. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

struct cm_index_slot {
    uint32_t hash;
    uint32_t number; /* 0: free */
};

struct cm_index {
    struct cm_index_slot *slots; /* owned; capacity is 0 or a power of two */
    size_t capacity;
    size_t count;
};

void cm_index_release(struct cm_index *self);
/* The same, but its room stays, unless to empty it took longer than to have it
 * anew. */
void cm_index_clear(struct cm_index *self);

/* Answers whether the thing with this number is the one looked for. */
typedef bool cm_index_same(const void *context, uint32_t number);

/* The number of the thing looked for; 0 when it is not there. */
uint32_t cm_index_find(const struct cm_index *self, uint32_t hash,
                       cm_index_same *same, const void *context);
/* After CM_OK the next cm_index_put has room. */
enum cm_status cm_index_reserve(struct cm_index *self) CM_CHECKED;
/* Before: cm_index_reserve, and cm_index_find answered 0. */
void cm_index_put(struct cm_index *self, uint32_t hash, uint32_t number);

/* Not for untrusted keys: an attacker could choose collisions. */
uint32_t cm_hash(uint32_t seed, const void *bytes, size_t length);

#endif
