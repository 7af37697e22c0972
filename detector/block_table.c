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

/* Its place, or the free one where it belongs.  Before: one place is free. */
static inline struct cm_block_entry *
find(struct cm_block_entry *entries, size_t capacity, uint64_t address,
     uint64_t hash)
{
    size_t at = cm_block_table_home(hash, capacity);
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
        const struct cm_block_entry *entry = &self->entries[i];
        if (entry->live) {
            *find(entries, capacity, entry->address,
                  cm_block_hash(entry->address)) = *entry;
        }
    }
    cm_free(self->entries);
    self->entries = entries;
    self->capacity = capacity;
    self->used = self->count;
    return true;
}

/* A place for an address that is not there.  Apart, so that the common case
 * needs no frame on the stack. */
static __attribute__((noinline)) struct cm_block_entry *
take_place(struct cm_block_table *self, uint64_t address, uint64_t hash,
           size_t most)
{
    if (self->used >= self->capacity / 5 * 4 && !make_anew(self, most)) {
        return NULL;
    }
    self->used++;
    return find(self->entries, self->capacity, address, hash);
}

CM_HOT struct cm_block_entry *
cm_block_table_place(struct cm_block_table *self, uint64_t address,
                     uint64_t hash, size_t most)
{
    if (self->capacity != 0) {
        struct cm_block_entry *entry =
            find(self->entries, self->capacity, address, hash);
        if (entry->address != 0) {
            return entry;
        }
    }
    return take_place(self, address, hash, most);
}

CM_HOT struct cm_block_entry *
cm_block_table_find(const struct cm_block_table *self, uint64_t address,
                    uint64_t hash)
{
    struct cm_block_entry *entry =
        self->capacity != 0
            ? find(self->entries, self->capacity, address, hash)
            : NULL;
    return entry != NULL && entry->live ? entry : NULL;
}
