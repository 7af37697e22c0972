/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "device_blocks.h"

#include <string.h>

#include "alloc.h"
#include "clock.h"
#include "hot.h"

#define AHEAD 8u
#define MS UINT64_C(1000000)
#define RESTS 7
#define ALIGNMENT _Alignof(struct cm_device_blocks)

struct cm_device_blocks *
cm_device_blocks_new(int index, struct cm_streams *streams,
                     size_t most_in_table)
{
    char *room = cm_calloc(1, sizeof(struct cm_device_blocks) + ALIGNMENT - 1);
    if (room == NULL) {
        return NULL;
    }
    struct cm_device_blocks *self =
        (void *)(room + (-(uintptr_t)room & (ALIGNMENT - 1)));
    if (cm_lock_init(&self->lock) != CM_OK) {
        cm_free(room);
        return NULL;
    }
    self->room = room;
    self->number = (uint8_t)(index + 1);
    self->line.streams = streams;
    self->line.stream = CM_STREAM_UNKNOWN;
    self->most_in_table = most_in_table;
    return self;
}

void
cm_device_blocks_free(struct cm_device_blocks *self)
{
    for (size_t i = 0; i < CM_BLOCK_TABLES; i++) {
        cm_block_table_release(&self->tables[i]);
    }
    cm_site_uses_release(&self->sites);
    cm_lock_release(&self->lock);
    cm_free(self->room);
}

static inline uint32_t
table_of(uint64_t hash)
{
    return (uint32_t)hash >> 30;
}

CM_HOT static void
forget(struct cm_device_blocks *self, struct cm_block_table *table,
       struct cm_block_entry *entry)
{
    self->bytes -= entry->bytes;
    cm_site_uses_subtract(&self->sites, (struct cm_site_id){entry->site},
                          entry->bytes);
    table->count--;
    entry->live = false;
}

static inline void
write_entry(const struct cm_device_blocks *self, struct cm_block_entry *entry,
            const struct cm_waiting *event, uint32_t time_ms)
{
    *entry = (struct cm_block_entry){
        .address = event->address,
        .bytes = event->bytes & CM_BLOCK_MAX_BYTES,
        .live = true,
        .device = self->number,
        .site = event->site.index,
        .time_ms = time_ms,
        .thread = event->thread & 0x3FFFFF,
        .stream = (uint32_t)event->stream & 0x1FF,
        .awaited = event->awaited,
    };
}

static inline void
allocate(struct cm_device_blocks *self, const struct cm_waiting *event,
         uint64_t hash, uint32_t time_ms)
{
    struct cm_block_table *table = &self->tables[table_of(hash)];
    struct cm_block_entry *entry =
        event->bytes <= CM_BLOCK_MAX_BYTES ? cm_block_table_place(
            table, event->address, hash, self->most_in_table)
                                           : NULL;
    if (entry == NULL) {
        self->lost++;
        return;
    }
    if (entry->live) { /* its free was not told */
        forget(self, table, entry);
        self->lost++;
    }
    write_entry(self, entry, event, time_ms);
    table->count++;
    self->bytes += event->bytes;
    self->allocations++;
    cm_site_uses_add(&self->sites, event->site, event->bytes);
    if (self->bytes > self->peak_bytes) {
        self->peak_bytes = self->bytes;
    }
}

static inline void
release(struct cm_device_blocks *self, const struct cm_waiting *event,
        uint64_t hash)
{
    struct cm_block_table *table = &self->tables[table_of(hash)];
    struct cm_block_entry *entry =
        cm_block_table_find(table, event->address, hash);
    if (entry == NULL) {
        self->unknown += !event->doubtful;
        return;
    }
    forget(self, table, entry);
}

/* What an entry has of it. */
static uint32_t
note_time(struct cm_device_blocks *self, uint64_t time_ns)
{
    uint64_t time_ms = time_ns / MS;
    if (time_ms > self->latest_ms) {
        self->latest_ms = time_ms;
    }
    return (uint32_t)time_ms;
}

static uint32_t
note_now(struct cm_device_blocks *self)
{
    return note_time(self, cm_clock_ns(CLOCK_MONOTONIC_COARSE));
}

uint64_t
cm_device_blocks_time_ns(const struct cm_device_blocks *self,
                         const struct cm_block_entry *entry)
{
    uint32_t before = (uint32_t)self->latest_ms - entry->time_ms;
    return (self->latest_ms - before) * MS;
}

static inline void
take_event(struct cm_device_blocks *self, const struct cm_waiting *event,
           uint64_t hash, uint32_t time_ms)
{
    if (event->kind == CM_EVENT_ALLOCATE) {
        allocate(self, event, hash, time_ms);
    }
    else {
        release(self, event, hash);
    }
}

/* ---- the line */

/* The events that wait, and which of them leave nothing in the tables. */
struct batch {
    uint32_t first, count;
    uint8_t known[CM_LINE_EVENTS];
    uint32_t sought_count;
    uint8_t sought[CM_LINE_EVENTS]; /* those that the tables are asked for */
};
_Static_assert(CM_LINE_EVENTS <= UINT8_MAX + 1, "a number fits");

/* What was allocated and freed within the line is counted and no more, as are
 * most blocks of a training loop.  Not where the highest total would have to
 * be added up (nobody asks for the host's), and seldom where there are few.  A
 * look into the tables for each is a third more of what an event costs here:
 * taken where totals say that an event was lost, and for the host, which has
 * none. */
static inline void
pair_up(struct cm_device_blocks *self, struct batch *batch)
{
    bool adds_up = self->number != 0 && !CM_GET(&self->line.tells_totals);
    if (adds_up || self->rests != 0) {
        memset(batch->known, 0, batch->count * sizeof(batch->known[0]));
        self->rests -= self->rests != 0 ? 1 : 0;
        return;
    }
    uint32_t pairs = cm_event_line_pairs(&self->line, batch->first,
                                         batch->count, batch->known);
    self->allocations += pairs;
    if (batch->count == CM_LINE_EVENTS && pairs < CM_LINE_EVENTS / 16) {
        self->rests = RESTS;
    }
}

/* All but pairs; where they are checked, but a pair that follows one at its
 * address. */
static CM_HOT_PART void
list_sought(struct batch *batch, bool checks)
{
    uint32_t listed = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint8_t known = batch->known[i];
        batch->sought[listed] = (uint8_t)i;
        listed +=
            checks ? known != CM_EVENT_OF_PAIR : (known & CM_EVENT_GONE) == 0;
    }
    batch->sought_count = listed;
}

static CM_HOT_PART const struct cm_waiting *
sought_event(const struct cm_device_blocks *self, const struct batch *batch,
             uint32_t i)
{
    return cm_event_line_at(&self->line, batch->first + batch->sought[i]);
}

static CM_HOT_PART void
prefetch(struct cm_device_blocks *self, const struct batch *batch, uint32_t i)
{
    if (i < batch->sought_count) {
        uint64_t hash = cm_block_hash(sought_event(self, batch, i)->address);
        cm_block_table_prefetch(&self->tables[table_of(hash)], hash);
    }
}

/* It leaves nothing, nor what is there yet: that one's free was not told. */
static inline void
take_pair(struct cm_device_blocks *self, const struct cm_waiting *event,
          uint64_t hash)
{
    struct cm_block_table *table = &self->tables[table_of(hash)];
    struct cm_block_entry *entry =
        cm_block_table_find(table, event->address, hash);
    if (entry != NULL) {
        forget(self, table, entry);
        self->lost++;
    }
}

static CM_HOT_PART void
take_each(struct cm_device_blocks *self, struct batch *batch, bool checks)
{
    uint32_t now = note_now(self);
    list_sought(batch, checks);
    for (uint32_t i = 0; i < AHEAD; i++) {
        prefetch(self, batch, i);
    }
    for (uint32_t i = 0; i < batch->sought_count; i++) {
        const struct cm_waiting *event = sought_event(self, batch, i);
        uint64_t hash = cm_block_hash(event->address);
        prefetch(self, batch, i + AHEAD);
        if (checks && batch->known[batch->sought[i]] & CM_EVENT_GONE) {
            take_pair(self, event, hash);
        }
        else {
            take_event(self, event, hash, now);
        }
    }
}

CM_HOT static void
take_lasting(struct cm_device_blocks *self, struct batch *batch)
{
    take_each(self, batch, false);
}

CM_HOT static __attribute__((noinline)) void
take_checked(struct cm_device_blocks *self, struct batch *batch)
{
    take_each(self, batch, true);
}

CM_HOT void
cm_device_blocks_take_in(struct cm_device_blocks *self)
{
    struct batch batch;
    uint32_t written =
        atomic_load_explicit(&self->line.written, memory_order_acquire);
    batch.first = CM_GET(&self->line.taken);
    batch.count = written - batch.first;
    if (batch.count != 0) {
        self->events += batch.count;
        pair_up(self, &batch);
        if (self->number == 0 || CM_GET(&self->line.doubted)) {
            take_checked(self, &batch);
        }
        else {
            take_lasting(self, &batch);
        }
        atomic_store_explicit(&self->line.taken, written,
                              memory_order_release);
    }
}

/* Apart, as what follows: few events come here. */
static __attribute__((noinline)) void
renew_filter(struct cm_device_blocks *self)
{
    struct cm_address_filter fresh = {0};
    cm_device_blocks_take_in(self);
    for (size_t i = 0; i < CM_BLOCK_TABLES; i++) {
        const struct cm_block_table *table = &self->tables[i];
        for (size_t k = 0; k < table->capacity; k++) {
            if (table->entries[k].live) {
                cm_address_filter_add(&fresh, table->entries[k].address);
            }
        }
    }
    cm_address_filter_renew(&self->filter, &fresh);
}

/* Past the line: what it has no room for, or does not take. */
static __attribute__((noinline)) void
take_at_once(struct cm_device_blocks *self, const struct cm_event *event)
{
    struct cm_waiting waiting = {.kind = 0};
    cm_waiting_fill(&waiting, event,
                    cm_streams_number(self->line.streams, event->stream));
    cm_device_blocks_take_in(self);
    cm_event_line_tell(&self->line, event);
    if (event->kind <= CM_EVENT_FREE) {
        self->events++;
        take_event(self, &waiting, cm_block_hash(event->address),
                   event->time_ns != 0 ? note_time(self, event->time_ns)
                                       : note_now(self));
    }
}

CM_HOT void
cm_device_blocks_take(struct cm_device_blocks *self,
                      const struct cm_event *event)
{
    if (event->kind == CM_EVENT_ALLOCATE && !event->in_order) {
        if (cm_address_filter_is_old(&self->filter)) {
            renew_filter(self);
        }
        cm_address_filter_add(&self->filter, event->address);
    }
    if (CM_GET(&self->line.tells_totals) && !event->in_order
        && event->kind <= CM_EVENT_FREE
        && (event->allocated | event->reserved) != 0) {
        (void)cm_event_line_follows(&self->line, event);
    }
    if (CM_GET(&self->in_order) || !cm_event_line_write(&self->line, event)) {
        take_at_once(self, event);
    }
}

static void
clear_table(struct cm_device_blocks *self, struct cm_block_table *table)
{
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].live) {
            forget(self, table, &table->entries[i]);
        }
    }
}

void
cm_device_blocks_clear(struct cm_device_blocks *self)
{
    for (size_t i = 0; i < CM_BLOCK_TABLES; i++) {
        clear_table(self, &self->tables[i]);
    }
    CM_SET(&self->line.doubted, false);
}

size_t
cm_device_blocks_count(const struct cm_device_blocks *device)
{
    size_t count = 0;
    for (size_t i = 0; i < CM_BLOCK_TABLES; i++) {
        count += device->tables[i].count;
    }
    return count;
}

const struct cm_block_entry *
cm_device_blocks_find(const struct cm_device_blocks *self, uint64_t address)
{
    uint64_t hash = cm_block_hash(address);
    return cm_block_table_find(&self->tables[table_of(hash)], address, hash);
}
