/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Regions are found by open addressing over their number (a few hundred for a
 * heap of gigabytes, so the directory stays in the nearest cache); inside one,
 * the place is an index.  Finding costs one or two loads that hit and one that
 * is as local as the objects are.  A region costs 256 KiB of zeroed memory, one
 * of bytes 64.  Eight or 32 share 2 MiB, for which the kernel is asked for a
 * huge page: entering a million objects took 20 ms with the faults of small
 * pages, and 7 without. */

#include "page_table.h"

#include "../../detector/alloc.h"
#include "huge_pages.h"

enum { FIRST_BITS = 6, LAST_BITS = 30 };

struct cm_page_chunk {
    struct cm_page_chunk *next;
    char *memory; /* owned, mapped */
    size_t used;  /* bytes given out */
};

static struct cm_page_chunk *
chunk_new(struct cm_page_chunk *next)
{
    struct cm_page_chunk *chunk = cm_alloc(sizeof(*chunk));
    if (chunk == NULL)
        return NULL;
    *chunk = (struct cm_page_chunk){.next = next,
                                    .memory = cm_huge_map(CM_HUGE_PAGE)};
    if (chunk->memory == NULL) {
        cm_free(chunk);
        return NULL;
    }
    return chunk;
}

static void *
region_slots(struct cm_page_table *self, size_t bytes)
{
    if (self->chunks == NULL || CM_HUGE_PAGE - self->chunks->used < bytes) {
        struct cm_page_chunk *chunk = chunk_new(self->chunks);
        if (chunk == NULL)
            return NULL;
        self->chunks = chunk;
    }
    char *memory = self->chunks->memory + self->chunks->used;
    self->chunks->used += bytes;
    return memory;
}

void
cm_page_table_release(struct cm_page_table *self)
{
    while (self->chunks != NULL) {
        struct cm_page_chunk *chunk = self->chunks;
        self->chunks = chunk->next;
        cm_huge_unmap(chunk->memory, CM_HUGE_PAGE);
        cm_free(chunk);
    }
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

/* The slots of the address's region, made if they were not there. */
static enum cm_status
make_region(struct cm_page_table *self, uintptr_t address, size_t slot_bytes,
            void **result)
{
    *result = cm_page_table_region(self, address);
    if (*result != NULL)
        return CM_OK;
    enum cm_status status = make_room(self);
    if (status != CM_OK)
        return status;
    uintptr_t number = address >> CM_REGION_BITS;
    void *slots = region_slots(self, CM_REGION_SLOTS * slot_bytes);
    if (slots == NULL)
        return CM_NO_MEMORY;
    *place_of(self->regions, self->bits, number) =
        (struct cm_region){.number = number, .slots = slots};
    self->count++;
    *result = slots;
    return CM_OK;
}

enum cm_status
cm_page_table_make(struct cm_page_table *self, uintptr_t address,
                   uint32_t **result)
{
    void *slots;
    enum cm_status status =
        make_region(self, address, sizeof(**result), &slots);
    if (status == CM_OK)
        *result = (uint32_t *)slots + cm_page_place(address);
    return status;
}

enum cm_status
cm_page_table_make_byte(struct cm_page_table *self, uintptr_t address,
                        uint8_t **result)
{
    void *slots;
    enum cm_status status =
        make_region(self, address, sizeof(**result), &slots);
    if (status == CM_OK)
        *result = (uint8_t *)slots + cm_page_place(address);
    return status;
}
