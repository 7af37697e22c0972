/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Regions are found by open addressing over their number (a few hundred for a
 * heap of gigabytes, so the directory stays in the nearest cache); inside one,
 * the place is an index.  Finding costs one or two loads that hit and one that
 * is as local as the objects are.  A region costs 256 KiB of zeroed memory,
 * which the kernel hands out as it is touched. */

#include "page_table.h"

#include "../detector/alloc.h"

enum { FIRST_BITS = 6, LAST_BITS = 30 };

void
cm_page_table_release(struct cm_page_table *self)
{
    size_t capacity = self->bits ? (size_t)1 << self->bits : 0;
    for (size_t i = 0; i < capacity; i++)
        cm_free(self->regions[i].slots);
    cm_free(self->regions);
    *self = (struct cm_page_table){0};
}

static struct cm_region *
place_of(struct cm_region *regions, unsigned bits, uintptr_t number)
{
    size_t mask = ((size_t)1 << bits) - 1;
    size_t i = cm_region_hash(number, bits);
    while (regions[i].slots != NULL && regions[i].number != number)
        i = (i + 1) & mask;
    return &regions[i];
}

/* Keeps the directory at most half full. */
static enum cm_status
make_room(struct cm_page_table *self)
{
    size_t old_capacity = self->bits ? (size_t)1 << self->bits : 0;
    if (self->count < old_capacity / 2)
        return CM_OK;
    unsigned bits = self->bits ? self->bits + 1 : FIRST_BITS;
    if (bits > LAST_BITS)
        return CM_LIMIT;
    struct cm_region *regions = cm_calloc((size_t)1 << bits, sizeof(*regions));
    if (regions == NULL)
        return CM_NO_MEMORY;
    for (size_t i = 0; i < old_capacity; i++) {
        struct cm_region *old = &self->regions[i];
        if (old->slots != NULL)
            *place_of(regions, bits, old->number) = *old;
    }
    cm_free(self->regions);
    self->regions = regions;
    self->bits = bits;
    return CM_OK;
}

enum cm_status
cm_page_table_make(struct cm_page_table *self, uintptr_t address,
                   uint32_t **result)
{
    uint32_t *found = cm_page_table_find(self, address);
    if (found == NULL) {
        enum cm_status status = make_room(self);
        if (status != CM_OK)
            return status;
        uintptr_t number = address >> CM_REGION_BITS;
        struct cm_region *region = place_of(self->regions, self->bits, number);
        uint32_t *slots = cm_calloc(CM_REGION_SLOTS, sizeof(*slots));
        if (slots == NULL)
            return CM_NO_MEMORY;
        *region = (struct cm_region){.number = number, .slots = slots};
        self->count++;
        found = cm_page_table_find(self, address);
    }
    *result = found;
    return CM_OK;
}
