/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Chunks of doubling size: the number alone says chunk and place, nothing is
 * copied on growth, and at most half of the memory is spare.  A reader that
 * sees the count sees the chunk and the item, because the count is stored
 * with release order after both.  Reading: a few nanoseconds. */

#include "table.h"

#include <string.h>

#include "alloc.h"

enum { FIRST_ITEMS_LOG2 = 6 };

/* Where item `index` (from 0) stands. */
struct place {
    unsigned chunk;
    size_t offset;
};

static struct place
place_of(uint32_t index)
{
    uint64_t shifted = (uint64_t)index + (1u << FIRST_ITEMS_LOG2);
    unsigned log2 = 63u - (unsigned)__builtin_clzll(shifted);
    return (struct place){
        .chunk = log2 - FIRST_ITEMS_LOG2,
        .offset = (size_t)(shifted - ((uint64_t)1 << log2)),
    };
}

void
cm_table_release(struct cm_table *self)
{
    for (int chunk = 0; chunk < CM_TABLE_CHUNKS; chunk++) {
        cm_free(self->chunks[chunk]);
        self->chunks[chunk] = NULL;
    }
    atomic_store(&self->count, 0);
    self->bytes = 0;
}

enum cm_status
cm_table_reserve(struct cm_table *self, void **result)
{
    uint32_t count = atomic_load_explicit(&self->count, memory_order_relaxed);
    struct place place = place_of(count);
    if (place.chunk >= CM_TABLE_CHUNKS) {
        return CM_LIMIT;
    }
    if (self->chunks[place.chunk] == NULL) {
        size_t items = (size_t)1 << (place.chunk + FIRST_ITEMS_LOG2);
        self->chunks[place.chunk] = cm_calloc(items, self->item_bytes);
        if (self->chunks[place.chunk] == NULL) {
            return CM_NO_MEMORY;
        }
        self->bytes += items * self->item_bytes;
    }
    char *item = self->chunks[place.chunk] + place.offset * self->item_bytes;
    memset(item, 0, self->item_bytes);
    *result = item;
    return CM_OK;
}

uint32_t
cm_table_commit(struct cm_table *self)
{
    uint32_t count = atomic_load_explicit(&self->count, memory_order_relaxed);
    atomic_store_explicit(&self->count, count + 1, memory_order_release);
    return count + 1;
}

const void *
cm_table_get(const struct cm_table *self, uint32_t number)
{
    uint32_t count = atomic_load_explicit(&self->count, memory_order_acquire);
    if (number == 0 || number > count) {
        return NULL;
    }
    struct place place = place_of(number - 1);
    return self->chunks[place.chunk] + place.offset * self->item_bytes;
}
