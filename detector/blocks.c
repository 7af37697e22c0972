/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The live blocks of all devices of an allocator, and the questions about
 * them; what happens with an event is told in device_blocks.h. */

#include "blocks.h"

#include <stdatomic.h>
#include <string.h>

#include "alloc.h"
#include "device_blocks.h"
#include "hot.h"
#include "sought.h"

struct cm_blocks {
    /* By index + 1, the host's first; owned; none moves. */
    _Atomic(struct cm_device_blocks *) devices[CM_MAX_DEVICES + 1];
    size_t most_in_table; /* written before use */
    struct cm_streams streams;
    _Atomic uint64_t out_of_memory, lost;
    _Atomic int devices_seen;
};

struct cm_blocks *
cm_blocks_new(size_t max_blocks)
{
    struct cm_blocks *self = cm_calloc(1, sizeof(*self));
    if (self != NULL) {
        self->most_in_table = max_blocks / CM_BLOCK_TABLES + 1;
    }
    return self;
}

void
cm_blocks_free(struct cm_blocks *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i <= CM_MAX_DEVICES; i++) {
        struct cm_device_blocks *device = atomic_load(&self->devices[i]);
        if (device != NULL) {
            cm_device_blocks_free(device);
        }
    }
    cm_free(self);
}

CM_HOT static bool
is_index(int index)
{
    return index >= CM_DEVICE_HOST && index < CM_MAX_DEVICES;
}

/* NULL: never seen. */
CM_HOT static struct cm_device_blocks *
device_at(const struct cm_blocks *self, int index)
{
    return atomic_load_explicit(&self->devices[index + 1],
                                memory_order_acquire);
}

/* NULL: nothing to do with a device, or not seen yet. */
static inline struct cm_device_blocks *
known_device(const struct cm_blocks *self, const struct cm_event *event)
{
    return is_index(event->device) && event->address != 0
               ? device_at(self, event->device)
               : NULL;
}

/* The device with its lock taken and nothing waiting; NULL: never seen. */
static struct cm_device_blocks *
hold(struct cm_blocks *self, int index)
{
    struct cm_device_blocks *device = device_at(self, index);
    if (device != NULL) {
        cm_lock_take(&device->lock);
        cm_device_blocks_take_in(device);
    }
    return device;
}

static void
count_device_seen(struct cm_blocks *self, int index)
{
    int seen = atomic_load(&self->devices_seen);
    while (seen <= index
           && !atomic_compare_exchange_weak(&self->devices_seen, &seen,
                                            index + 1)) {
    }
}

/* At its first event, under no lock: a device brings a lock of its own, and
 * locks are leaves.  Of two threads that come at once one makes it in vain.
 * Counted before it is there, so that a child forked in between has no device
 * that is not counted.  NULL: no memory. */
static struct cm_device_blocks *
make_device(struct cm_blocks *self, int index)
{
    struct cm_device_blocks *there = device_at(self, index);
    if (there != NULL) {
        return there;
    }
    struct cm_device_blocks *made =
        cm_device_blocks_new(index, &self->streams, self->most_in_table);
    if (made == NULL) {
        return NULL;
    }
    count_device_seen(self, index);
    if (atomic_compare_exchange_strong(&self->devices[index + 1], &there,
                                       made)) {
        return made;
    }
    cm_device_blocks_free(made);
    return there;
}

static struct cm_device_blocks *
device_of(struct cm_blocks *self, const struct cm_event *event)
{
    return is_index(event->device) && event->address != 0
               ? make_device(self, event->device)
               : NULL;
}

static inline void
take_under_lock(struct cm_device_blocks *device, const struct cm_event *event)
{
    cm_lock_take(&device->lock);
    if (event->in_order) { /* the first one, or the line is full */
        CM_SET(&device->in_order, true);
    }
    cm_device_blocks_take(device, event);
    cm_lock_give(&device->lock);
}

/* Apart, as what follows: the events of an allocator that gives none an order
 * need no room on the stack. */
CM_HOT static __attribute__((noinline)) void
take_in_order(struct cm_device_blocks *device, const struct cm_event *event)
{
    if (!CM_GET(&device->in_order)
        || !cm_event_line_write(&device->line, event)) {
        take_under_lock(device, event);
    }
}

/* The first of its device, or of none. */
static __attribute__((noinline)) void
take_first(struct cm_blocks *self, const struct cm_event *event)
{
    struct cm_device_blocks *device = device_of(self, event);
    if (device != NULL) {
        take_under_lock(device, event);
    }
    else if (event->kind == CM_EVENT_OUT_OF_MEMORY) {
        atomic_fetch_add(&self->out_of_memory, 1);
    }
    else {
        atomic_fetch_add(&self->lost, 1);
    }
}

struct cm_device_blocks *
cm_blocks_device(struct cm_blocks *self, int index)
{
    return is_index(index) ? make_device(self, index) : NULL;
}

struct cm_event_line *
cm_blocks_line(void *context, int index)
{
    struct cm_device_blocks *device = cm_blocks_device(context, index);
    if (device == NULL) {
        return NULL;
    }
    cm_lock_take(&device->lock);
    CM_SET(&device->in_order, true);
    cm_lock_give(&device->lock);
    return &device->line;
}

CM_HOT void
cm_blocks_sink(void *context, const struct cm_event *event)
{
    struct cm_blocks *self = context;
    struct cm_device_blocks *device = known_device(self, event);
    if (CM_SELDOM(device == NULL)) {
        take_first(self, event);
    }
    else if (event->in_order) {
        take_in_order(device, event);
    }
    else {
        take_under_lock(device, event);
    }
}

void
cm_blocks_event(struct cm_blocks *self, const struct cm_event *event)
{
    cm_blocks_sink(self, event);
}

void
cm_blocks_clear_device(struct cm_blocks *self, int index)
{
    struct cm_device_blocks *device =
        is_index(index) ? hold(self, index) : NULL;
    if (device != NULL) {
        cm_device_blocks_clear(device);
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
block_of(const struct cm_blocks *self, const struct cm_device_blocks *device,
         const struct cm_block_entry *entry)
{
    return (struct cm_block){
        .address = entry->address,
        .bytes = entry->bytes,
        .stream = cm_streams_handle(&self->streams, entry->stream),
        .time_ns = cm_device_blocks_time_ns(device, entry),
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
    struct cm_device_blocks *device = hold(self, index);
    const struct cm_block_entry *entry =
        device != NULL ? cm_device_blocks_find(device, address) : NULL;
    if (entry != NULL) {
        *result = block_of(self, device, entry);
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
match_entry(const struct cm_blocks *self,
            const struct cm_device_blocks *device,
            const struct cm_block_entry *entry, const struct cm_sought *all,
            size_t count, struct cm_block *results)
{
    for (size_t i = cm_sought_from(all, count, entry->address);
         i < count && all[i].address - entry->address < entry->bytes; i++) {
        results[all[i].index] = block_of(self, device, entry);
    }
}

static void
match_device(const struct cm_blocks *self,
             const struct cm_device_blocks *device,
             const struct cm_sought *all, size_t count,
             struct cm_block *results)
{
    for (size_t i = 0; i < CM_BLOCK_TABLES; i++) {
        const struct cm_block_table *table = &device->tables[i];
        for (size_t k = 0; k < table->capacity; k++) {
            if (table->entries[k].live) {
                match_entry(self, device, &table->entries[k], all, count,
                            results);
            }
        }
    }
}

void
cm_blocks_match(struct cm_blocks *self, const uint64_t *addresses,
                size_t count, struct cm_block *results)
{
    struct cm_sought missed[CM_BLOCKS_MATCHED];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        results[i] = (struct cm_block){0};
        if (addresses[i] != 0
            && !cm_blocks_at(self, addresses[i], &results[i])) {
            missed[used++] = (struct cm_sought){addresses[i], i};
        }
    }
    cm_sought_sort(missed, used);
    for (int i = CM_DEVICE_HOST; used != 0 && i < cm_blocks_devices(self);
         i++) {
        struct cm_device_blocks *device = hold(self, i);
        if (device != NULL) {
            match_device(self, device, missed, used, results);
            cm_lock_give(&device->lock);
        }
    }
}

/* Returns how many were copied. */
static size_t
copy_device(const struct cm_blocks *self,
            const struct cm_device_blocks *device, struct cm_block *to)
{
    size_t copied = 0;
    for (size_t i = 0; i < CM_BLOCK_TABLES; i++) {
        const struct cm_block_table *table = &device->tables[i];
        for (size_t k = 0; k < table->capacity; k++) {
            if (table->entries[k].live) {
                to[copied++] = block_of(self, device, &table->entries[k]);
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
        struct cm_device_blocks *device = hold(self, i);
        if (device == NULL) {
            continue;
        }
        status = cm_grow((void **)&blocks, &capacity,
                         used + cm_device_blocks_count(device) + 1,
                         sizeof(*blocks));
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
    struct cm_device_blocks *device =
        is_index(index) ? hold(self, index) : NULL;
    if (device == NULL) {
        return;
    }
    *result = (struct cm_block_use){
        .live_bytes = device->bytes,
        .live_count = cm_device_blocks_count(device),
        .peak_bytes = CM_GET(&device->line.tells_totals)
                          ? CM_GET(&device->line.peak)
                          : device->peak_bytes,
        .allocated = CM_GET(&device->line.allocated),
        .reserved = CM_GET(&device->line.reserved),
        .allocations = device->allocations,
    };
    cm_lock_give(&device->lock);
}

CM_HOT uint64_t
cm_blocks_told(const struct cm_blocks *self)
{
    uint64_t bytes = 0;
    for (int i = CM_DEVICE_HOST; i < atomic_load(&self->devices_seen); i++) {
        const struct cm_device_blocks *device = device_at(self, i);
        bytes += device != NULL ? CM_GET(&device->line.bytes) : 0;
    }
    return bytes;
}

CM_HOT uint64_t
cm_blocks_total(const struct cm_blocks *self, int index)
{
    const struct cm_device_blocks *device =
        is_index(index) ? device_at(self, index) : NULL;
    return device != NULL ? CM_GET(&device->line.allocated) : 0;
}

CM_HOT int
cm_blocks_devices(struct cm_blocks *self)
{
    return atomic_load(&self->devices_seen);
}

void
cm_blocks_mark(struct cm_blocks *self)
{
    for (int i = CM_DEVICE_HOST; i < cm_blocks_devices(self); i++) {
        struct cm_device_blocks *device = hold(self, i);
        if (device != NULL) {
            device->peak_bytes = device->bytes;
            CM_SET(&device->line.peak, CM_GET(&device->line.allocated));
            cm_lock_give(&device->lock);
        }
    }
}

void
cm_blocks_sites(struct cm_blocks *self, int index, struct cm_site_use *uses,
                size_t count)
{
    struct cm_device_blocks *device =
        is_index(index) ? hold(self, index) : NULL;
    for (size_t i = 0; i < count; i++) {
        uses[i] = device != NULL
                      ? cm_site_uses_of(&device->sites, uses[i].site)
                      : (struct cm_site_use){.site = uses[i].site};
    }
    if (device != NULL) {
        cm_lock_give(&device->lock);
    }
}

struct cm_site_use
cm_blocks_site(struct cm_blocks *self, int index, struct cm_site_id site)
{
    struct cm_site_use use = {.site = site};
    cm_blocks_sites(self, index, &use, 1);
    return use;
}

enum cm_status
cm_blocks_changes(struct cm_blocks *self, int index,
                  struct cm_site_use **result, size_t *count)
{
    enum cm_status status = CM_OK;
    struct cm_device_blocks *device =
        is_index(index) ? hold(self, index) : NULL;
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
    struct cm_device_blocks *device = hold(self, index);
    if (device == NULL) {
        return;
    }
    result->events += index == CM_DEVICE_HOST ? 0 : device->events;
    result->lost += device->lost;
    result->lost_sites += device->sites.lost;
    result->unknown += device->unknown;
    result->footprint += sizeof(*device);
    for (size_t i = 0; i < CM_BLOCK_TABLES; i++) {
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
