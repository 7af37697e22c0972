/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Bump allocation in blocks of 16 KiB; what is larger than a quarter of that
 * gets a block of its own, put behind the one being filled.  Copying costs
 * the memcpy; at most a quarter of a block is lost at its end. */

#include "arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "alloc.h"

enum { BLOCK_BYTES = 16 * 1024, ALIGNMENT = 8 };

struct cm_arena_block {
    struct cm_arena_block *next; /* owned */
    size_t used;
    size_t capacity;
    alignas(ALIGNMENT) char bytes[];
};

void
cm_arena_release(struct cm_arena *self)
{
    struct cm_arena_block *block = self->blocks;
    while (block != NULL) {
        struct cm_arena_block *next = block->next;
        cm_free(block);
        block = next;
    }
    *self = (struct cm_arena){0};
}

static struct cm_arena_block *
add_block(struct cm_arena *self, size_t capacity)
{
    struct cm_arena_block *block = cm_alloc(sizeof(*block) + capacity);
    if (block == NULL) {
        return NULL;
    }
    *block = (struct cm_arena_block){.capacity = capacity};
    bool alone = capacity > BLOCK_BYTES / 4 && capacity != BLOCK_BYTES;
    if (alone && self->blocks != NULL) {
        block->next = self->blocks->next;
        self->blocks->next = block;
    }
    else {
        block->next = self->blocks;
        self->blocks = block;
    }
    self->bytes += sizeof(*block) + capacity;
    return block;
}

static struct cm_arena_block *
block_with_room(struct cm_arena *self, size_t needed)
{
    struct cm_arena_block *block = self->blocks;
    if (block != NULL && needed <= block->capacity - block->used) {
        return block;
    }
    return add_block(self, needed > BLOCK_BYTES / 4 ? needed : BLOCK_BYTES);
}

void *
cm_arena_copy(struct cm_arena *self, const void *bytes, size_t length)
{
    if (length > SIZE_MAX / 2) {
        return NULL;
    }
    size_t needed = (length + 1 + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct cm_arena_block *block = block_with_room(self, needed);
    if (block == NULL) {
        return NULL;
    }
    char *copy = block->bytes + block->used;
    if (length > 0) {
        memcpy(copy, bytes, length);
    }
    copy[length] = '\0';
    block->used += needed;
    return copy;
}
