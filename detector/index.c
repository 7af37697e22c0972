/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Open addressing with linear probing, at most three quarters full, doubling.
 * Slots keep 32 bits of hash beside the number, so that growing does not
 * look at the things and most probes end without asking.  Find: expected
 * constant time; 8 bytes a slot. */

#include "index.h"

#include <string.h>

#include "alloc.h"

enum { FIRST_CAPACITY = 16, MOST_CLEARED = 1 << 14 };

void
cm_index_release(struct cm_index *self)
{
    cm_free(self->slots);
    *self = (struct cm_index){0};
}

void
cm_index_clear(struct cm_index *self)
{
    if (self->capacity > MOST_CLEARED) {
        cm_index_release(self);
    }
    else if (self->count != 0) {
        memset(self->slots, 0, self->capacity * sizeof(*self->slots));
        self->count = 0;
    }
}

uint32_t
cm_index_find(const struct cm_index *self, uint32_t hash, cm_index_same *same,
              const void *context)
{
    if (self->capacity == 0) {
        return 0;
    }
    size_t mask = self->capacity - 1;
    for (size_t at = hash & mask; self->slots[at].number != 0;
         at = (at + 1) & mask) {
        if (self->slots[at].hash == hash
            && same(context, self->slots[at].number)) {
            return self->slots[at].number;
        }
    }
    return 0;
}

static void
place(struct cm_index_slot *slots, size_t capacity, struct cm_index_slot slot)
{
    size_t at = slot.hash & (capacity - 1);
    while (slots[at].number != 0) {
        at = (at + 1) & (capacity - 1);
    }
    slots[at] = slot;
}

enum cm_status
cm_index_reserve(struct cm_index *self)
{
    if (self->count < self->capacity / 4 * 3) {
        return CM_OK;
    }
    if (self->capacity > SIZE_MAX / 2 / sizeof(struct cm_index_slot)) {
        return CM_NO_MEMORY;
    }
    size_t capacity = self->capacity ? self->capacity * 2 : FIRST_CAPACITY;
    struct cm_index_slot *slots = cm_calloc(capacity, sizeof(*slots));
    if (slots == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t at = 0; at < self->capacity; at++) {
        if (self->slots[at].number != 0) {
            place(slots, capacity, self->slots[at]);
        }
    }
    cm_free(self->slots);
    self->slots = slots;
    self->capacity = capacity;
    return CM_OK;
}

void
cm_index_put(struct cm_index *self, uint32_t hash, uint32_t number)
{
    place(self->slots, self->capacity,
          (struct cm_index_slot){.hash = hash, .number = number});
    self->count++;
}

/* One multiplication and one fold for each eight bytes; the length goes in
 * first, so that trailing zeros count. */
uint32_t
cm_hash(uint32_t seed, const void *bytes, size_t length)
{
    const uint64_t odd = 0x9E3779B97F4A7C15u; /* 2^64 over the golden ratio */
    const unsigned char *at = bytes;
    uint64_t hash = (seed ^ (uint64_t)length) * odd;
    while (length > 0) {
        uint64_t word = 0;
        size_t step = length < sizeof(word) ? length : sizeof(word);
        memcpy(&word, at, step);
        hash = (hash ^ word) * odd;
        hash ^= hash >> 32;
        at += step;
        length -= step;
    }
    hash *= odd;
    return (uint32_t)(hash >> 32);
}
