/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Open addressing, at most two thirds full; a removal moves the rest of its
 * run back, so that there are no tombstones and a walk may remove.  Cost:
 * constant for each call; 72 bytes for each slot. */

#include "holdings.h"

#include <string.h>

#include "../detector/alloc.h"

enum { FIRST_CAPACITY = 64, MAX_COUNT = 1 << 20 };

void
cm_holdings_release(struct cm_holdings *self)
{
    cm_free(self->slots);
    *self = (struct cm_holdings){0};
}

static size_t
home_of(const struct cm_holdings *self, uint64_t key)
{
    /* The high bits of a product depend on all bits of the key; addresses
     * differ in their middle ones. */
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32)
           & (self->capacity - 1);
}

/* The slot that has this key, or the empty one where it belongs.  Before:
 * there is an empty slot. */
static struct cm_holding *
slot_of(const struct cm_holdings *self, uint64_t key)
{
    size_t at = home_of(self, key);
    while (self->slots[at].key != key && self->slots[at].key != 0) {
        at = (at + 1) & (self->capacity - 1);
    }
    return &self->slots[at];
}

static enum cm_status
make_room(struct cm_holdings *self)
{
    if (self->count >= MAX_COUNT) {
        return CM_LIMIT;
    }
    if ((self->count + 1) * 3 <= self->capacity * 2) {
        return CM_OK;
    }
    struct cm_holdings larger = {
        .capacity = self->capacity > 0 ? self->capacity * 2 : FIRST_CAPACITY,
        .count = self->count,
    };
    larger.slots = cm_calloc(larger.capacity, sizeof(larger.slots[0]));
    if (larger.slots == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t at = 0; at < self->capacity; at++) {
        if (self->slots[at].key != 0) {
            *slot_of(&larger, self->slots[at].key) = self->slots[at];
        }
    }
    cm_free(self->slots);
    *self = larger;
    return CM_OK;
}

enum cm_status
cm_holdings_put(struct cm_holdings *self, const struct cm_holding *holding)
{
    struct cm_holding *old = cm_holdings_find(self, holding->key);
    if (old != NULL) {
        *old = *holding;
        return CM_OK;
    }
    enum cm_status status = make_room(self);
    if (status == CM_OK) {
        *slot_of(self, holding->key) = *holding;
        self->count++;
    }
    return status;
}

struct cm_holding *
cm_holdings_find(const struct cm_holdings *self, uint64_t key)
{
    if (self->count == 0 || key == 0) {
        return NULL;
    }
    struct cm_holding *slot = slot_of(self, key);
    return slot->key == key ? slot : NULL;
}

/* Closes the gap: whatever may stand in it, because its home is not between
 * the gap and its place, moves there. */
static void
close_gap(struct cm_holdings *self, size_t gap)
{
    size_t mask = self->capacity - 1;
    for (size_t at = (gap + 1) & mask; self->slots[at].key != 0;
         at = (at + 1) & mask) {
        size_t home = home_of(self, self->slots[at].key);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            self->slots[gap] = self->slots[at];
            gap = at;
        }
    }
    self->slots[gap] = (struct cm_holding){0};
}

bool
cm_holdings_remove(struct cm_holdings *self, uint64_t key,
                   struct cm_holding *result)
{
    struct cm_holding *slot = cm_holdings_find(self, key);
    if (slot == NULL) {
        return false;
    }
    if (result != NULL) {
        *result = *slot;
    }
    close_gap(self, (size_t)(slot - self->slots));
    self->count--;
    return true;
}

struct cm_holding *
cm_holdings_next(const struct cm_holdings *self, size_t *place)
{
    while (*place < self->capacity) {
        struct cm_holding *slot = &self->slots[(*place)++];
        if (slot->key != 0) {
            return slot;
        }
    }
    return NULL;
}
