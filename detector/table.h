/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TABLE_H
#define CM_TABLE_H

/* Records of one size, numbered from 1, that never move and are never taken
 * out.  Adding is guarded by the owner; reading needs no lock, also while
 * another thread adds.  A table with item_bytes set and the rest zero is a
 * valid empty one. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

enum { CM_TABLE_CHUNKS = 26 };

struct cm_table {
    size_t item_bytes;             /* written before use, then read only */
    char *chunks[CM_TABLE_CHUNKS]; /* owned; chunk k holds 64 << k items */
    _Atomic uint32_t count;        /* stored after the item it counts */
    size_t bytes;                  /* of all chunks; guarded by the owner */
};

void cm_table_release(struct cm_table *self);

/* Room for one more item: its memory, zeroed, to be filled before
 * cm_table_commit.  CM_LIMIT: no more numbers. */
enum cm_status cm_table_reserve(struct cm_table *self, void **result)
    CM_CHECKED;
/* Returns the number of the item that was reserved last. */
uint32_t cm_table_commit(struct cm_table *self);

/* Borrowed; NULL when there is no such number. */
const void *cm_table_get(const struct cm_table *self, uint32_t number);

#endif
