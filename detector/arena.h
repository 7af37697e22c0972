/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ARENA_H
#define CM_ARENA_H

/* Bytes that never move and go all at once.  A zeroed arena is a valid empty
 * one.  Guarded by its owner. */

#include <stddef.h>

#include "status.h"

struct cm_arena_block;

struct cm_arena {
    struct cm_arena_block *blocks; /* owned; the one being filled is first */
    size_t bytes;                  /* of all blocks */
};

void cm_arena_release(struct cm_arena *self);

/* A copy of `length` bytes followed by a NUL, aligned for any of our records.
 * Returns new (owned by the arena); NULL when memory ran out. */
void *cm_arena_copy(struct cm_arena *self, const void *bytes, size_t length)
    CM_CHECKED;

#endif
