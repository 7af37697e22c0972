/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Open addressing with linear probing, at most half full.  Cost: one cache
 * miss to find; 24 bytes a slot, at most 2^18 slots. */

#include "addresses.h"

#include <string.h>

#include "../../detector/alloc.h"

enum { FIRST_SLOTS = 256, MAX_SLOTS = 1 << 18, KEPT_SLOTS = 4096 };

static size_t
place_of(const struct cm_addresses *self, const void *address)
{
    uint64_t bits = (uint64_t)(uintptr_t)address;
    bits = (bits >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    size_t place = (size_t)(bits >> 32) & (self->capacity - 1);
    while (self->slots[place].address != NULL
           && self->slots[place].address != address) {
        place = (place + 1) & (self->capacity - 1);
    }
    return place;
}

void
cm_addresses_release(struct cm_addresses *self)
{
    cm_free(self->slots);
    *self = (struct cm_addresses){0};
}

void
cm_addresses_clear(struct cm_addresses *self)
{
    if (self->capacity > KEPT_SLOTS) {
        cm_addresses_release(self);
    }
    else if (self->count != 0) {
        memset(self->slots, 0, self->capacity * sizeof(*self->slots));
        self->count = 0;
    }
}

const struct cm_address *
cm_addresses_find(const struct cm_addresses *self, const void *address)
{
    if (self->count == 0) {
        return NULL;
    }
    const struct cm_address *found = &self->slots[place_of(self, address)];
    return found->address == NULL ? NULL : found;
}

static enum cm_status
grow(struct cm_addresses *self)
{
    struct cm_addresses larger = {
        .capacity = self->capacity == 0 ? FIRST_SLOTS : self->capacity * 2};
    if (larger.capacity > MAX_SLOTS) {
        memset(self->slots, 0, self->capacity * sizeof(*self->slots));
        self->count = 0;
        return CM_OK;
    }
    larger.slots = cm_calloc(larger.capacity, sizeof(*larger.slots));
    if (larger.slots == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < self->capacity; i++) {
        if (self->slots[i].address != NULL) {
            size_t place = place_of(&larger, self->slots[i].address);
            larger.slots[place] = self->slots[i];
            larger.count++;
        }
    }
    cm_addresses_release(self);
    *self = larger;
    return CM_OK;
}

void
cm_addresses_put(struct cm_addresses *self, const void *address,
                 uint64_t check, uint32_t value)
{
    if (self->count * 2 >= self->capacity && grow(self) != CM_OK) {
        return;
    }
    struct cm_address *slot = &self->slots[place_of(self, address)];
    self->count += slot->address == NULL;
    *slot = (struct cm_address){check, address, value};
}
