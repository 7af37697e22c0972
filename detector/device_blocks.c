/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "device_blocks.h"

#include <time.h>

#include "alloc.h"
#include "hot.h"

#define AHEAD 8u
/* Another core may have written them. */
#define EVENTS_AHEAD 24u
#define MS UINT64_C(1000000)

struct cm_device_blocks *
cm_device_blocks_new(struct cm_streams *streams, size_t most_in_table)
{
    struct cm_device_blocks *self = cm_calloc(1, sizeof(*self));
    if (self == NULL || cm_lock_init(&self->lock) != CM_OK) {
        cm_free(self);
        return NULL;
    }
    self->line =
        (struct cm_event *)(((uintptr_t)self->room + 63) & ~(uintptr_t)63);
    self->streams = streams;
    self->stream = CM_STREAM_UNKNOWN;
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
    cm_free(self);
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

/* What is written down of an allocation, where it stays: the processor waits
 * when a copy reads in wide words what was just written in narrow ones. */
static inline void
write_entry(struct cm_block_entry *entry, uint32_t stream,
            const struct cm_event *event, uint32_t now)
{
    uint32_t time =
        event->time_ns != 0 ? (uint32_t)(event->time_ns / MS) : now;
    *entry = (struct cm_block_entry){
        .address = event->address,
        .bytes = event->bytes & CM_BLOCK_MAX_BYTES,
        .live = true,
        .device = (uint8_t)(event->device + 1),
        .site = event->site.index,
        .time_ms = time,
        .thread = event->thread & 0x3FFFFF,
        .stream = stream & 0x1FF,
        .awaited = event->awaited,
    };
}

static inline uint32_t
stream_of(struct cm_device_blocks *self, uint64_t handle)
{
    if (handle != self->stream) {
        self->stream = handle;
        self->stream_number = cm_streams_number(self->streams, handle);
    }
    return self->stream_number;
}

static inline void
allocate(struct cm_device_blocks *self, const struct cm_event *event,
         uint64_t hash, uint32_t now)
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
    write_entry(entry, stream_of(self, event->stream), event, now);
    table->count++;
    self->bytes += event->bytes;
    self->allocations++;
    cm_site_uses_add(&self->sites, event->site, event->bytes);
    if (!self->tells_totals && self->bytes > self->peak_bytes) {
        self->peak_bytes = self->bytes;
    }
}

static inline void
release(struct cm_device_blocks *self, const struct cm_event *event,
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

static uint32_t
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint32_t)((uint64_t)t.tv_sec * 1000
                      + (uint64_t)t.tv_nsec / 1000000);
}

/* Most sources tell what they hold; the others are added up. */
CM_HOT static void
note_totals(struct cm_device_blocks *self, const struct cm_event *event)
{
    if ((event->allocated | event->reserved) == 0) {
        return;
    }
    self->tells_totals = true;
    self->allocated = event->allocated;
    self->reserved = event->reserved;
    if (event->allocated > self->peak_bytes) {
        self->peak_bytes = event->allocated;
    }
}

static inline void
take_event(struct cm_device_blocks *self, const struct cm_event *event,
           uint64_t hash, uint32_t now)
{
    note_totals(self, event);
    if (event->kind == CM_EVENT_FREE) {
        self->events++;
        release(self, event, hash);
    }
    else if (event->kind == CM_EVENT_ALLOCATE) {
        self->events++;
        allocate(self, event, hash, now);
    }
}

/* The hash of an event that will be taken in soon. */
static inline uint64_t
seek(struct cm_device_blocks *self, uint32_t at)
{
    __builtin_prefetch(&self->line[(at + EVENTS_AHEAD) % CM_BLOCKS_WAITING]);
    uint64_t hash = cm_block_hash(self->line[at % CM_BLOCKS_WAITING].address);
    cm_block_table_prefetch(&self->tables[table_of(hash)], hash);
    return hash;
}

CM_HOT void
cm_device_blocks_take_in(struct cm_device_blocks *self)
{
    uint32_t taken = atomic_load_explicit(&self->taken, memory_order_relaxed);
    uint32_t written =
        atomic_load_explicit(&self->written, memory_order_acquire);
    uint32_t now = taken != written ? now_ms() : 0;
    uint64_t hashes[AHEAD];
    for (uint32_t at = taken; at != written && at - taken < AHEAD; at++) {
        hashes[at % AHEAD] = seek(self, at);
    }
    for (; taken != written; taken++) {
        uint64_t hash = hashes[taken % AHEAD];
        if (written - taken > AHEAD) {
            hashes[taken % AHEAD] = seek(self, taken + AHEAD);
        }
        take_event(self, &self->line[taken % CM_BLOCKS_WAITING], hash, now);
    }
    atomic_store_explicit(&self->taken, taken, memory_order_release);
}

static void
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
    bool in_order =
        atomic_load_explicit(&self->in_order, memory_order_relaxed);
    if (in_order || !cm_device_blocks_write(self, event)) {
        cm_device_blocks_take_in(self);
        take_event(self, event, cm_block_hash(event->address), now_ms());
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
