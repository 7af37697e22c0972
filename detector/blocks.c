/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Each device has a line of events that wait: an event is copied there and no
 * more.  When the line is full, or somebody asks, its events go into the
 * tables together.  One by one they would find those out of the
 * cache, since a program does much between two allocations: on an H200 that
 * was 115 ns for a free in a training loop where it is 25 ns in a row.
 *
 * Events that an allocator's lock has put in order have the line for
 * themselves and take no lock of ours: the line is a ring with one writer.
 * (An atomic exchange would wait until the copy, out of the cache too, has
 * reached it.)  All others share a lock with those who ask, and where events
 * in order have been seen they go into the tables at once.
 *
 * Four tables by the hash of the address, so that one that grows holds up its
 * device for a quarter. */

#include "blocks.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "block_table.h"
#include "hot.h"
#include "lock.h"
#include "sought.h"
#include "streams.h"

#define TABLES 4u
#define WAITING 256u
#define AHEAD 8u
#define MS UINT64_C(1000000)
#define KEEP_APART() __asm__ volatile("" ::: "memory")

/* The writer of the line is who holds the allocator's lock once in_order is
 * set, else who holds ours. */
struct device {
    /* How many events were written in the line, and how many taken out, since
     * the start.  The first is the writer's, the other guarded by lock. */
    _Atomic uint32_t written, taken;
    _Atomic bool in_order; /* guarded by lock; never false again */
    struct cm_lock lock;
    /* Guarded by lock, all below but the line. */
    bool tells_totals;
    uint64_t events, lost, unknown;
    uint64_t peak_bytes, allocated, reserved;
    uint64_t bytes, allocations; /* as the tables have them */
    uint64_t stream;             /* of the last allocation, and its number */
    uint32_t stream_number;
    struct cm_block_table tables[TABLES];
    struct cm_site_uses sites;
    struct cm_event line[WAITING];
};

struct cm_blocks {
    /* By index + 1, the host's first; owned; none moves. */
    _Atomic(struct device *) devices[CM_MAX_DEVICES + 1];
    size_t most_in_table;  /* written before use */
    struct cm_lock making; /* of a device's first event */
    struct cm_streams streams;
    _Atomic uint64_t out_of_memory, lost;
    _Atomic int devices_seen;
};

struct cm_blocks *
cm_blocks_new(size_t max_blocks)
{
    struct cm_blocks *self = cm_calloc(1, sizeof(*self));
    if (self == NULL || cm_lock_init(&self->making) != CM_OK) {
        cm_free(self);
        return NULL;
    }
    self->most_in_table = max_blocks / TABLES + 1;
    return self;
}

static void
device_free(struct device *self)
{
    for (size_t i = 0; i < TABLES; i++) {
        cm_block_table_release(&self->tables[i]);
    }
    cm_site_uses_release(&self->sites);
    cm_lock_release(&self->lock);
    cm_free(self);
}

void
cm_blocks_free(struct cm_blocks *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i <= CM_MAX_DEVICES; i++) {
        struct device *device = atomic_load(&self->devices[i]);
        if (device != NULL) {
            device_free(device);
        }
    }
    cm_lock_release(&self->making);
    cm_free(self);
}

CM_HOT static bool
is_index(int index)
{
    return index >= CM_DEVICE_HOST && index < CM_MAX_DEVICES;
}

/* NULL: never seen. */
CM_HOT static struct device *
device_at(const struct cm_blocks *self, int index)
{
    return atomic_load_explicit(&self->devices[index + 1],
                                memory_order_acquire);
}

/* NULL: nothing to do with a device, or not seen yet. */
static inline struct device *
known_device(const struct cm_blocks *self, const struct cm_event *event)
{
    return is_index(event->device) && event->address != 0
               ? device_at(self, event->device)
               : NULL;
}

/* Before: self->making is held. */
static struct device *
add_device(struct cm_blocks *self, int index)
{
    struct device *device = device_at(self, index);
    if (device != NULL) {
        return device;
    }
    device = cm_calloc(1, sizeof(*device));
    if (device == NULL || cm_lock_init(&device->lock) != CM_OK) {
        cm_free(device);
        return NULL;
    }
    device->stream = CM_STREAM_UNKNOWN;
    atomic_store_explicit(&self->devices[index + 1], device,
                          memory_order_release);
    if (index >= atomic_load(&self->devices_seen)) {
        atomic_store(&self->devices_seen, index + 1);
    }
    return device;
}

/* ---- one device; before all of these: its lock is held */

static inline struct cm_block_table *
table_of(struct device *self, uint64_t hash)
{
    return &self->tables[(uint32_t)hash >> 30];
}

CM_HOT static void
forget(struct device *self, struct cm_block_table *table,
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
stream_of(struct cm_blocks *all, struct device *self, uint64_t handle)
{
    if (handle != self->stream) {
        self->stream = handle;
        self->stream_number = cm_streams_number(&all->streams, handle);
    }
    return self->stream_number;
}

static inline void
allocate(struct cm_blocks *all, struct device *self,
         const struct cm_event *event, uint64_t hash, uint32_t now)
{
    struct cm_block_table *table = table_of(self, hash);
    struct cm_block_entry *entry =
        event->bytes <= CM_BLOCK_MAX_BYTES ? cm_block_table_place(
            table, event->address, hash, all->most_in_table)
                                           : NULL;
    if (entry == NULL) {
        self->lost++;
        return;
    }
    if (entry->live) { /* its free was not told */
        forget(self, table, entry);
        self->lost++;
    }
    write_entry(entry, stream_of(all, self, event->stream), event, now);
    table->count++;
    self->bytes += event->bytes;
    self->allocations++;
    cm_site_uses_add(&self->sites, event->site, event->bytes);
    if (!self->tells_totals && self->bytes > self->peak_bytes) {
        self->peak_bytes = self->bytes;
    }
}

static inline void
release(struct device *self, const struct cm_event *event, uint64_t hash)
{
    struct cm_block_table *table = table_of(self, hash);
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
note_totals(struct device *self, const struct cm_event *event)
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
take_event(struct cm_blocks *all, struct device *self,
           const struct cm_event *event, uint64_t hash, uint32_t now)
{
    note_totals(self, event);
    if (event->kind == CM_EVENT_FREE) {
        self->events++;
        release(self, event, hash);
    }
    else if (event->kind == CM_EVENT_ALLOCATE) {
        self->events++;
        allocate(all, self, event, hash, now);
    }
}

/* The hash of an event that will be taken in soon. */
static inline uint64_t
seek(struct device *self, uint32_t at)
{
    uint64_t hash = cm_block_hash(self->line[at % WAITING].address);
    cm_block_table_prefetch(table_of(self, hash), hash);
    return hash;
}

CM_HOT static void
take_in(struct cm_blocks *all, struct device *self)
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
        take_event(all, self, &self->line[taken % WAITING], hash, now);
    }
    atomic_store_explicit(&self->taken, taken, memory_order_release);
}

/* The device with its lock taken and nothing waiting; NULL: never seen. */
static struct device *
hold(struct cm_blocks *self, int index)
{
    struct device *device = device_at(self, index);
    if (device != NULL) {
        cm_lock_take(&device->lock);
        take_in(self, device);
    }
    return device;
}

/* Field by field, and no two as one: see write_entry(). */
static inline void
copy_event(struct cm_event *to, const struct cm_event *from)
{
    to->address = from->address;
    KEEP_APART();
    to->bytes = from->bytes;
    KEEP_APART();
    to->stream = from->stream;
    KEEP_APART();
    to->allocated = from->allocated;
    KEEP_APART();
    to->reserved = from->reserved;
    KEEP_APART();
    to->time_ns = from->time_ns;
    KEEP_APART();
    to->thread = from->thread;
    KEEP_APART();
    to->site = from->site;
    KEEP_APART();
    to->device = from->device;
    KEEP_APART();
    to->kind = from->kind;
    KEEP_APART();
    to->awaited = from->awaited;
    KEEP_APART();
    to->doubtful = from->doubtful;
}

/* By the writer alone; false: the line is full. */
static inline bool
write_line(struct device *self, const struct cm_event *event)
{
    uint32_t written =
        atomic_load_explicit(&self->written, memory_order_relaxed);
    uint32_t taken = atomic_load_explicit(&self->taken, memory_order_acquire);
    if (written - taken == WAITING) {
        return false;
    }
    copy_event(&self->line[written % WAITING], event);
    atomic_store_explicit(&self->written, written + 1, memory_order_release);
    return true;
}

/* Before: the lock is held. */
CM_HOT static void
take_next(struct cm_blocks *all, struct device *self,
          const struct cm_event *event)
{
    bool in_order =
        atomic_load_explicit(&self->in_order, memory_order_relaxed);
    if (in_order || !write_line(self, event)) {
        take_in(all, self);
        take_event(all, self, event, cm_block_hash(event->address), now_ms());
    }
}

static struct device *
device_of(struct cm_blocks *self, const struct cm_event *event)
{
    if (!is_index(event->device) || event->address == 0) {
        return NULL;
    }
    cm_lock_take(&self->making);
    struct device *device = add_device(self, event->device);
    cm_lock_give(&self->making);
    return device;
}

/* Apart, so that the others need no frame on the stack. */
CM_HOT static __attribute__((noinline)) void
take_under_lock(struct cm_blocks *self, const struct cm_event *event)
{
    if (event->kind == CM_EVENT_OUT_OF_MEMORY) {
        atomic_fetch_add(&self->out_of_memory, 1);
        return;
    }
    struct device *device = known_device(self, event);
    device = device != NULL ? device : device_of(self, event);
    if (device == NULL) {
        atomic_fetch_add(&self->lost, 1);
        return;
    }
    cm_lock_take(&device->lock);
    if (event->in_order) { /* the first one, or the line is full */
        atomic_store_explicit(&device->in_order, true, memory_order_relaxed);
    }
    take_next(self, device, event);
    cm_lock_give(&device->lock);
}

CM_HOT void
cm_blocks_event(struct cm_blocks *self, const struct cm_event *event)
{
    struct device *device = known_device(self, event);
    if (device == NULL || !event->in_order
        || !atomic_load_explicit(&device->in_order, memory_order_relaxed)
        || !write_line(device, event)) {
        take_under_lock(self, event);
    }
}

static void
clear_table(struct device *self, struct cm_block_table *table)
{
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].live) {
            forget(self, table, &table->entries[i]);
        }
    }
}

void
cm_blocks_clear_device(struct cm_blocks *self, int index)
{
    struct device *device = is_index(index) ? hold(self, index) : NULL;
    for (size_t k = 0; device != NULL && k < TABLES; k++) {
        clear_table(device, &device->tables[k]);
    }
    if (device != NULL) {
        cm_lock_give(&device->lock);
    }
}

void
cm_blocks_clear(struct cm_blocks *self)
{
    for (int i = CM_DEVICE_HOST; i < cm_blocks_devices(self); i++) {
        cm_blocks_clear_device(self, i);
    }
}

/* ---- looking up */

static struct cm_block
block_of(const struct cm_blocks *self, const struct cm_block_entry *entry)
{
    return (struct cm_block){
        .address = entry->address,
        .bytes = entry->bytes,
        .stream = cm_streams_handle(&self->streams, entry->stream),
        .time_ns = entry->time_ms * MS,
        .thread = entry->thread,
        .site = {entry->site},
        .device = (int16_t)(entry->device - 1),
        .awaited = entry->awaited,
    };
}

static bool
find_in_device(struct cm_blocks *self, int index, uint64_t address,
               struct cm_block *result)
{
    struct device *device = hold(self, index);
    uint64_t hash = cm_block_hash(address);
    const struct cm_block_entry *entry =
        device != NULL
            ? cm_block_table_find(table_of(device, hash), address, hash)
            : NULL;
    if (entry != NULL) {
        *result = block_of(self, entry);
    }
    if (device != NULL) {
        cm_lock_give(&device->lock);
    }
    return entry != NULL;
}

bool
cm_blocks_at(struct cm_blocks *self, uint64_t address, struct cm_block *result)
{
    for (int i = 0; i < cm_blocks_devices(self); i++) {
        if (find_in_device(self, i, address, result)) {
            return true;
        }
    }
    return find_in_device(self, CM_DEVICE_HOST, address, result);
}

static void
match_entry(const struct cm_blocks *self, const struct cm_block_entry *entry,
            const struct cm_sought *all, size_t count,
            struct cm_block *results)
{
    for (size_t i = cm_sought_from(all, count, entry->address);
         i < count && all[i].address - entry->address < entry->bytes; i++) {
        results[all[i].index] = block_of(self, entry);
    }
}

static void
match_device(const struct cm_blocks *self, const struct device *device,
             const struct cm_sought *all, size_t count,
             struct cm_block *results)
{
    for (size_t i = 0; i < TABLES; i++) {
        const struct cm_block_table *table = &device->tables[i];
        for (size_t k = 0; k < table->capacity; k++) {
            if (table->entries[k].live) {
                match_entry(self, &table->entries[k], all, count, results);
            }
        }
    }
}

enum cm_status
cm_blocks_match(struct cm_blocks *self, const uint64_t *addresses,
                size_t count, struct cm_block *results)
{
    struct cm_sought *missed = NULL;
    size_t capacity = 0, used = 0;
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < count; i++) {
        results[i] = (struct cm_block){0};
        if (!cm_blocks_at(self, addresses[i], &results[i])
            && status == CM_OK) {
            status = cm_grow((void **)&missed, &capacity, used + 1,
                             sizeof(*missed));
            if (status == CM_OK) {
                missed[used++] = (struct cm_sought){addresses[i], i};
            }
        }
    }
    cm_sought_sort(missed, used);
    for (int i = CM_DEVICE_HOST; used != 0 && i < cm_blocks_devices(self);
         i++) {
        struct device *device = hold(self, i);
        if (device != NULL) {
            match_device(self, device, missed, used, results);
            cm_lock_give(&device->lock);
        }
    }
    cm_free(missed);
    return status;
}

static size_t
live_count(const struct device *device)
{
    size_t count = 0;
    for (size_t i = 0; i < TABLES; i++) {
        count += device->tables[i].count;
    }
    return count;
}

/* Returns how many were copied. */
static size_t
copy_device(const struct cm_blocks *self, const struct device *device,
            struct cm_block *to)
{
    size_t copied = 0;
    for (size_t i = 0; i < TABLES; i++) {
        const struct cm_block_table *table = &device->tables[i];
        for (size_t k = 0; k < table->capacity; k++) {
            if (table->entries[k].live) {
                to[copied++] = block_of(self, &table->entries[k]);
            }
        }
    }
    return copied;
}

enum cm_status
cm_blocks_copy(struct cm_blocks *self, struct cm_block **result, size_t *count)
{
    struct cm_block *blocks = NULL;
    size_t capacity = 0, used = 0;
    enum cm_status status = CM_OK;
    for (int i = CM_DEVICE_HOST;
         status == CM_OK && i < cm_blocks_devices(self); i++) {
        struct device *device = hold(self, i);
        if (device == NULL) {
            continue;
        }
        status = cm_grow((void **)&blocks, &capacity,
                         used + live_count(device) + 1, sizeof(*blocks));
        if (status == CM_OK) {
            used += copy_device(self, device, blocks + used);
        }
        cm_lock_give(&device->lock);
    }
    if (status != CM_OK) {
        cm_free(blocks);
        blocks = NULL;
        used = 0;
    }
    *result = blocks;
    *count = used;
    return status;
}

void
cm_blocks_use(struct cm_blocks *self, int index, struct cm_block_use *result)
{
    *result = (struct cm_block_use){0};
    struct device *device = is_index(index) ? hold(self, index) : NULL;
    if (device == NULL) {
        return;
    }
    *result = (struct cm_block_use){
        .live_bytes = device->bytes,
        .live_count = live_count(device),
        .peak_bytes = device->peak_bytes,
        .allocated = device->allocated,
        .reserved = device->reserved,
        .allocations = device->allocations,
    };
    cm_lock_give(&device->lock);
}

int
cm_blocks_devices(struct cm_blocks *self)
{
    return atomic_load(&self->devices_seen);
}

void
cm_blocks_mark(struct cm_blocks *self)
{
    for (int i = CM_DEVICE_HOST; i < cm_blocks_devices(self); i++) {
        struct device *device = hold(self, i);
        if (device != NULL) {
            device->peak_bytes =
                device->tells_totals ? device->allocated : device->bytes;
            cm_lock_give(&device->lock);
        }
    }
}

struct cm_site_use
cm_blocks_site(struct cm_blocks *self, int index, struct cm_site_id site)
{
    struct cm_site_use use = {.site = site};
    struct device *device = is_index(index) ? hold(self, index) : NULL;
    if (device != NULL) {
        use = cm_site_uses_of(&device->sites, site);
        cm_lock_give(&device->lock);
    }
    return use;
}

enum cm_status
cm_blocks_changes(struct cm_blocks *self, int index,
                  struct cm_site_use **result, size_t *count)
{
    enum cm_status status = CM_OK;
    struct device *device = is_index(index) ? hold(self, index) : NULL;
    *result = NULL;
    *count = 0;
    if (device != NULL) {
        status = cm_site_uses_take(&device->sites, result, count);
        cm_lock_give(&device->lock);
    }
    return status;
}

static void
count_device(struct cm_blocks *self, int index,
             struct cm_blocks_counts *result)
{
    struct device *device = hold(self, index);
    if (device == NULL) {
        return;
    }
    result->events += index == CM_DEVICE_HOST ? 0 : device->events;
    result->lost += device->lost;
    result->lost_sites += device->sites.lost;
    result->unknown += device->unknown;
    result->footprint += sizeof(*device);
    for (size_t i = 0; i < TABLES; i++) {
        result->footprint +=
            device->tables[i].capacity * sizeof(struct cm_block_entry);
    }
    cm_lock_give(&device->lock);
}

void
cm_blocks_counts(struct cm_blocks *self, struct cm_blocks_counts *result)
{
    *result = (struct cm_blocks_counts){
        .lost = atomic_load(&self->lost),
        .out_of_memory = atomic_load(&self->out_of_memory),
        .footprint = sizeof(*self),
    };
    for (int i = CM_DEVICE_HOST; i < cm_blocks_devices(self); i++) {
        count_device(self, i, result);
    }
}
