/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_BLOCK_TABLE_H
#define CM_BLOCK_TABLE_H

/* Address -> live block, for blocks.c: open addressing with linear probing.
 * A block that is freed leaves its place to its address, which a caching
 * allocator gives out again soon; such places go when the table is full (4/5)
 * and is made anew, 3/5 full.  An entry is 32 bytes, so a live block costs 40
 * to 54.  Not thread-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cm_block_entry {
    uint64_t address;                          /* 0: free place */
    uint64_t bytes : 55, live : 1, device : 8; /* its index + 1 */
    uint32_t site;
    uint32_t time_ms;
    uint32_t thread : 22, stream : 9, awaited : 1; /* stream 0: unknown */
};
_Static_assert(sizeof(struct cm_block_entry) == 32, "the budget counts on it");

#define CM_BLOCK_MAX_BYTES ((UINT64_C(1) << 55) - 1)

/* Zeroed before first use. */
struct cm_block_table {
    struct cm_block_entry *entries; /* owned */
    size_t capacity, used, count;   /* used: the live and the freed */
};

/* For the functions below: it spreads addresses, whose low bits are mostly 0.
 * Its upper half places them; the lower is the caller's to use. */
static inline uint64_t
cm_block_hash(uint64_t address)
{
    uint64_t hash = address * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 32;
    return hash * UINT64_C(0xD6E8FEB86659FD93);
}

void cm_block_table_release(struct cm_block_table *self);
/* Its entry, live or freed, or the free place that is now its own: with
 * address 0, to be filled.  NULL: no memory, or `most` are live. */
struct cm_block_entry *cm_block_table_place(struct cm_block_table *self,
                                            uint64_t address, uint64_t hash,
                                            size_t most);
/* NULL: no such live block. */
struct cm_block_entry *cm_block_table_find(const struct cm_block_table *self,
                                           uint64_t address, uint64_t hash);

/* Where the search for an address begins.  Half of a hash spreads over any
 * capacity, without a division. */
static inline size_t
cm_block_table_home(uint64_t hash, size_t capacity)
{
    return (size_t)((hash >> 32) * capacity >> 32);
}

/* The processor may fetch what a later look-up will read. */
static inline void
cm_block_table_prefetch(const struct cm_block_table *self, uint64_t hash)
{
    if (self->capacity != 0) {
        __builtin_prefetch(
            &self->entries[cm_block_table_home(hash, self->capacity)], 1);
    }
}

#endif
