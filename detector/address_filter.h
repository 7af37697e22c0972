/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ADDRESS_FILTER_H
#define CM_ADDRESS_FILTER_H

/* Which addresses may be those of live blocks: what it does not have is none,
 * what it has may be none (a Bloom filter of one hash).  An allocator that
 * tells each free, and only some allocations, asks it before anybody else.
 * Neighbours of 4 KiB share a word, and 32 KiB a cache line, of which a program
 * leaves few: small blocks lie side by side, and one that is asked for was asked
 * for a moment ago.
 *
 * Adding and renewing are guarded by the owner; anybody may ask meanwhile.  A
 * zeroed one is a valid empty one.  8 KiB. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "relaxed.h"

enum { CM_FILTER_WORDS = 1024, CM_FILTER_ADDED = 8192 };

struct cm_address_filter {
    _Atomic uint64_t words[CM_FILTER_WORDS];
    uint32_t added; /* since it was renewed */
};

/* Allocators align what they hand out to 64 bytes, most of them to 16. */
static inline uint32_t
cm_address_filter_bit(uint64_t address)
{
    return (uint32_t)(address >> 6) % (64 * CM_FILTER_WORDS);
}

static inline bool
cm_address_filter_has(const struct cm_address_filter *self, uint64_t address)
{
    uint32_t bit = cm_address_filter_bit(address);
    return (atomic_load_explicit(&self->words[bit / 64], memory_order_relaxed)
                >> bit % 64
            & 1)
           != 0;
}

static inline void
cm_address_filter_add(struct cm_address_filter *self, uint64_t address)
{
    uint32_t bit = cm_address_filter_bit(address);
    _Atomic uint64_t *word = &self->words[bit / 64];
    CM_SET(word, CM_GET(word) | UINT64_C(1) << bit % 64);
    self->added++;
}

/* It has had so many that it is worth renewing. */
static inline bool
cm_address_filter_is_old(const struct cm_address_filter *self)
{
    return self->added >= CM_FILTER_ADDED;
}

/* `fresh` has been given all that are live: it takes its place, word by word,
 * so that none of these is missing at any time. */
static inline void
cm_address_filter_renew(struct cm_address_filter *self,
                        const struct cm_address_filter *fresh)
{
    for (uint32_t i = 0; i < CM_FILTER_WORDS; i++) {
        CM_SET(&self->words[i], CM_GET(&fresh->words[i]));
    }
    self->added = 0;
}

#endif
