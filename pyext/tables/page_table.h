/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PAGE_TABLE_H
#define CM_PAGE_TABLE_H

/* A number for each of many objects, found by address in two steps: the region
 * of 1 MiB, then the 16-byte place in it.  Python's tracked objects lie close
 * together, so a slot of 32 bits costs about a quarter of their memory's cache
 * traffic, and one of a byte a sixteenth, where a hash of a million pointers
 * misses the cache every time.
 *
 * A table has slots of one kind: bytes are asked for by the functions that say
 * so.  Not for unaligned addresses: two that share 16 bytes share a slot.
 * Invariant: a slot that was never made reads as 0. */

#include <stddef.h>
#include <stdint.h>

#include "../../detector/status.h"

enum {
    CM_REGION_BITS = 20,
    CM_PLACE_BITS = 4,
    CM_REGION_SLOTS = 1 << (CM_REGION_BITS - CM_PLACE_BITS),
};

struct cm_region {
    uintptr_t number; /* address >> CM_REGION_BITS */
    void *slots;      /* in a chunk; NULL: this entry is free */
};

struct cm_page_chunk; /* 2 MiB of zeroed slots, a huge page if it can be */

/* A zeroed table is a valid empty one. */
struct cm_page_table {
    struct cm_region *regions; /* owned; open addressing, capacity 2^bits */
    size_t count;
    unsigned bits;
    struct cm_page_chunk *chunks; /* owned; slots come from the first */
};

void cm_page_table_release(struct cm_page_table *self);

/* The region that was asked for last: neighbours are found without a hash. */
struct cm_page_cursor {
    uintptr_t number;
    void *slots; /* borrowed; NULL: none yet */
};

/* The slot of this address, made if it was not there. */
enum cm_status cm_page_table_make(struct cm_page_table *self,
                                  uintptr_t address, uint32_t **result)
    CM_CHECKED;
enum cm_status cm_page_table_make_byte(struct cm_page_table *self,
                                       uintptr_t address, uint8_t **result)
    CM_CHECKED;

static inline size_t
cm_page_place(uintptr_t address)
{
    return (address >> CM_PLACE_BITS) & (CM_REGION_SLOTS - 1);
}

static inline size_t
cm_region_hash(uintptr_t number, unsigned bits)
{
    return (size_t)((uint64_t)number * 0x9E3779B97F4A7C15u >> (64 - bits));
}

/* The slots of the address's region, borrowed; NULL when nothing was made in
 * it. */
static inline void *
cm_page_table_region(const struct cm_page_table *self, uintptr_t address)
{
    if (self->bits == 0)
        return NULL;
    uintptr_t number = address >> CM_REGION_BITS;
    size_t mask = ((size_t)1 << self->bits) - 1;
    size_t i = cm_region_hash(number, self->bits);
    for (; self->regions[i].slots != NULL; i = (i + 1) & mask) {
        if (self->regions[i].number == number)
            return self->regions[i].slots;
    }
    return NULL;
}

/* The same, for walks through neighbouring addresses. */
static inline void *
cm_page_table_near_region(const struct cm_page_table *self,
                          struct cm_page_cursor *cursor, uintptr_t address)
{
    uintptr_t number = address >> CM_REGION_BITS;
    if (cursor->slots == NULL || cursor->number != number) {
        void *slots = cm_page_table_region(self, address);
        if (slots == NULL)
            return NULL;
        *cursor = (struct cm_page_cursor){number, slots};
    }
    return cursor->slots;
}

/* Borrowed; NULL when nothing was made in this region. */
static inline uint32_t *
cm_page_table_find(const struct cm_page_table *self, uintptr_t address)
{
    uint32_t *slots = cm_page_table_region(self, address);
    return slots == NULL ? NULL : slots + cm_page_place(address);
}

static inline uint8_t *
cm_page_table_find_byte(const struct cm_page_table *self, uintptr_t address)
{
    uint8_t *slots = cm_page_table_region(self, address);
    return slots == NULL ? NULL : slots + cm_page_place(address);
}

static inline uint32_t *
cm_page_table_near(const struct cm_page_table *self,
                   struct cm_page_cursor *cursor, uintptr_t address)
{
    uint32_t *slots = cm_page_table_near_region(self, cursor, address);
    return slots == NULL ? NULL : slots + cm_page_place(address);
}

static inline uint8_t *
cm_page_table_near_byte(const struct cm_page_table *self,
                        struct cm_page_cursor *cursor, uintptr_t address)
{
    uint8_t *slots = cm_page_table_near_region(self, cursor, address);
    return slots == NULL ? NULL : slots + cm_page_place(address);
}

#endif
