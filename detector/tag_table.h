/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TAG_TABLE_H
#define CM_TAG_TABLE_H

/* Which objects live, and where each was made: a table from address to tag, and
 * before it a line of objects made and ended since somebody asked.  An object
 * is written at the end of the line and no more; the table, which is out of the
 * cache when the next object is made, is gone through when the line is full.
 * Not thread-safe.  Memory: 8 KiB, and 16 bytes a place of a table that is at
 * most half full (linear probing, deletion by shifting back). */

#include <stdbool.h>
#include <stdint.h>

#include "records.h"
#include "status.h"

enum { CM_TAGS_WAITING = 512 };

struct cm_tag {
    uint64_t address;    /* of the object; 0: empty place */
    uint32_t order : 31; /* counts up: which object was made first */
    uint32_t lasts : 1;
    struct cm_site_id site; /* 0: that of its memory */
};

struct cm_tag_change {
    uint64_t address;
    struct cm_site_id site;
    bool made; /* else ended */
    bool lasts;
};

/* All zero: empty, and nothing may be noted yet. */
struct cm_tag_table {
    struct cm_tag_change *line; /* owned; CM_TAGS_WAITING */
    uint32_t waiting;           /* in the line */
    uint32_t place_count;       /* a power of two */
    uint32_t live, next_order;  /* those in the table */
    struct cm_tag *places;      /* owned */
    uint64_t made, lost;        /* lost: no memory for them */
};

/* Where a table of so many places, a power of two, looks for an object first. */
static inline uint32_t
cm_tag_place(uint64_t address, uint32_t place_count)
{
    uint64_t hash = (address >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32) & (place_count - 1);
}

/* Before all others. */
enum cm_status cm_tag_table_begin(struct cm_tag_table *self) CM_CHECKED;
void cm_tag_table_release(struct cm_tag_table *self);

/* Nothing waits any more: called by all that ask. */
void cm_tag_table_take_in(struct cm_tag_table *self);
/* Drops the tags of all objects but those, and those that last. */
void cm_tag_table_keep(struct cm_tag_table *self,
                       bool (*keeps)(uint64_t address));
/* Nothing is there, and nothing waits. */
static inline bool
cm_tag_table_is_empty(const struct cm_tag_table *self)
{
    return (self->live | self->waiting) == 0;
}
/* NULL: not there.  Good until the table is used again. */
const struct cm_tag *cm_tag_table_find(struct cm_tag_table *self,
                                       uint64_t address);

static inline void
cm_tag_table_note(struct cm_tag_table *self,
                  const struct cm_tag_change *change)
{
    self->line[self->waiting++] = *change;
    if (self->waiting == CM_TAGS_WAITING) {
        cm_tag_table_take_in(self);
    }
}

/* An object that is made; one that has an address of before takes its place.
 * `lasts`: nothing else will know where it was made. */
static inline void
cm_tag_table_add(struct cm_tag_table *self, uint64_t address,
                 struct cm_site_id site, bool lasts)
{
    struct cm_tag_change change = {
        .address = address, .site = site, .made = true, .lasts = lasts};
    cm_tag_table_note(self, &change);
}

/* One that ends, whether it is there or not. */
static inline void
cm_tag_table_remove(struct cm_tag_table *self, uint64_t address)
{
    struct cm_tag_change change = {.address = address};
    cm_tag_table_note(self, &change);
}

#endif
