/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "block_table.h"

#include "alloc.h"
#include "hot.h"

#define FIRST_ENTRIES 64u

void
cm_block_table_release(struct cm_block_table *self)
{
    cm_free(self->entries);
    *self = (struct cm_block_table){0};
}

CM_HOT static uint64_t
hash_of(uint64_t address)
{
    uint64_t hash = address * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 32;
    return hash * UINT64_C(0xD6E8FEB86659FD93);
}

/* The upper half spreads over any capacity, without a division. */
CM_HOT static size_t
home_of(uint64_t address, size_t capacity)
{
    return (size_t)((hash_of(address) >> 32) * capacity >> 32);
}

/* Its place, or the free one where it belongs.  Before: one place is free. */
CM_HOT static struct cm_block_entry *
find(struct cm_block_entry *entries, size_t capacity, uint64_t address)
{
    size_t at = home_of(address, capacity);
    while (entries[at].address != 0 && entries[at].address != address) {
        at = at + 1 == capacity ? 0 : at + 1;
    }
    return &entries[at];
}

static bool
make_anew(struct cm_block_table *self, size_t most)
{
    size_t capacity = self->count * 5 / 3 + FIRST_ENTRIES;
    struct cm_block_entry *entries =
        self->count < most ? cm_calloc(capacity, sizeof(*entries)) : NULL;
    if (entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < self->capacity; i++) {
        if (self->entries[i].live) {
            *find(entries, capacity, self->entries[i].address) =
                self->entries[i];
        }
    }
    cm_free(self->entries);
    self->entries = entries;
    self->capacity = capacity;
    self->used = self->count;
    return true;
}

CM_HOT struct cm_block_entry *
cm_block_table_place(struct cm_block_table *self, uint64_t address,
                     size_t most)
{
    struct cm_block_entry *entry =
        self->capacity != 0 ? find(self->entries, self->capacity, address)
                            : NULL;
    if (entry != NULL && entry->address != 0) {
        return entry;
    }
    if (self->used >= self->capacity / 5 * 4) {
        entry = make_anew(self, most)
                    ? find(self->entries, self->capacity, address)
                    : NULL;
    }
    self->used += entry != NULL;
    return entry;
}

CM_HOT struct cm_block_entry *
cm_block_table_find(const struct cm_block_table *self, uint64_t address)
{
    struct cm_block_entry *entry =
        self->capacity != 0 ? find(self->entries, self->capacity, address)
                            : NULL;
    return entry != NULL && entry->live ? entry : NULL;
}

void
cm_block_table_prefetch(const struct cm_block_table *self, uint64_t address)
{
    if (self->capacity != 0) {
        __builtin_prefetch(&self->entries[home_of(address, self->capacity)],
                           1);
    }
}
