/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "tag_table.h"

#include <stddef.h>

#include "alloc.h"
#include "hot.h"

#define FIRST_PLACES 256u /* few: they stay in the cache */
#define MAX_PLACES (1u << 24)
#define AHEAD 8u

/* That of the object, or the empty one where it belongs. */
CM_HOT static inline uint32_t
find_place(const struct cm_tag *places, uint32_t count, uint64_t address)
{
    uint32_t at = cm_tag_place(address, count);
    while (places[at].address != 0 && places[at].address != address) {
        at = (at + 1) & (count - 1);
    }
    return at;
}

static enum cm_status
grow(struct cm_tag_table *self)
{
    uint32_t count = self->place_count ? self->place_count * 2 : FIRST_PLACES;
    struct cm_tag *bigger =
        count <= MAX_PLACES ? cm_calloc(count, sizeof(*bigger)) : NULL;
    if (bigger == NULL) {
        return CM_NO_MEMORY;
    }
    for (uint32_t i = 0; i < self->place_count; i++) {
        const struct cm_tag *tag = &self->places[i];
        if (tag->address != 0) {
            bigger[find_place(bigger, count, tag->address)] = *tag;
        }
    }
    cm_free(self->places);
    self->places = bigger;
    self->place_count = count;
    return CM_OK;
}

enum cm_status
cm_tag_table_begin(struct cm_tag_table *self)
{
    if (self->line == NULL) {
        self->line = cm_calloc(CM_TAGS_WAITING, sizeof(*self->line));
    }
    if (self->line == NULL) {
        return CM_NO_MEMORY;
    }
    return self->place_count == 0 ? grow(self) : CM_OK;
}

void
cm_tag_table_release(struct cm_tag_table *self)
{
    cm_free(self->line);
    cm_free(self->places);
    *self = (struct cm_tag_table){0};
}

static void
add(struct cm_tag_table *self, const struct cm_tag_change *change)
{
    if (self->live >= self->place_count / 2 && grow(self) != CM_OK) {
        self->lost++;
        return;
    }
    uint32_t at = find_place(self->places, self->place_count, change->address);
    self->live += self->places[at].address == 0;
    self->places[at] =
        (struct cm_tag){.address = change->address,
                        .order = self->next_order++ & 0x7FFFFFFF,
                        .lasts = change->lasts,
                        .site = change->site};
    self->made++;
}

/* Moves later tags of the same run back over the hole at `at`. */
static void
close_hole(struct cm_tag_table *self, uint32_t at)
{
    uint32_t mask = self->place_count - 1;
    uint32_t hole = at;
    for (uint32_t i = (at + 1) & mask; self->places[i].address != 0;
         i = (i + 1) & mask) {
        uint32_t home =
            cm_tag_place(self->places[i].address, self->place_count);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            self->places[hole] = self->places[i];
            hole = i;
        }
    }
    self->places[hole].address = 0;
}

static void
drop(struct cm_tag_table *self, uint64_t address)
{
    uint32_t at = find_place(self->places, self->place_count, address);
    if (self->places[at].address != 0) {
        self->live--;
        close_hole(self, at);
    }
}

/* An object that was made and ended within the line, as most are, needs no
 * place; its end may still be that of one whose own was not told.  One object
 * is remembered for all addresses of a place: who finds another one there is
 * added, and dropped. */
CM_HOT static void
leave_out_pairs(struct cm_tag_table *self)
{
    uint16_t latest[1u << 8] = {0}; /* number in the line, plus 1 */
    for (uint32_t i = 0; i < self->waiting; i++) {
        const struct cm_tag_change *change = &self->line[i];
        uint16_t *place = &latest[cm_tag_place(change->address, 1u << 8)];
        struct cm_tag_change *made = *place ? &self->line[*place - 1] : NULL;
        if (change->made) {
            *place = (uint16_t)(i + 1);
        }
        else if (made != NULL && made->address == change->address) {
            made->address = 0;
            self->made++;
        }
    }
}

static inline void
prefetch(const struct cm_tag_table *self, uint32_t number)
{
    if (number < self->waiting) {
        __builtin_prefetch(&self->places[cm_tag_place(
            self->line[number].address, self->place_count)]);
    }
}

CM_HOT void
cm_tag_table_take_in(struct cm_tag_table *self)
{
    if (self->waiting > AHEAD) {
        leave_out_pairs(self);
    }
    for (uint32_t i = 0; i < self->waiting; i++) {
        const struct cm_tag_change *change = &self->line[i];
        prefetch(self, i + AHEAD);
        if (change->address == 0) {
            continue;
        }
        if (change->made) {
            add(self, change);
        }
        else {
            drop(self, change->address);
        }
    }
    self->waiting = 0;
}

void
cm_tag_table_keep(struct cm_tag_table *self, bool (*keeps)(uint64_t address))
{
    cm_tag_table_take_in(self);
    for (uint32_t at = 0; at < self->place_count; at++) {
        while (self->places[at].address != 0 && !self->places[at].lasts
               && !keeps(self->places[at].address)) {
            self->live--;
            close_hole(self, at); /* a later one may stand here now */
        }
    }
}

const struct cm_tag *
cm_tag_table_find(struct cm_tag_table *self, uint64_t address)
{
    cm_tag_table_take_in(self);
    if (self->live == 0) {
        return NULL;
    }
    uint32_t at = find_place(self->places, self->place_count, address);
    return self->places[at].address != 0 ? &self->places[at] : NULL;
}
