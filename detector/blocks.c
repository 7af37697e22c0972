/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Four shards by the hash of the address, each an open-addressing table with
 * linear probing under its own mutex: two threads seldom wait for each other
 * (an allocator has a lock of its own before us), a table that grows holds up
 * a quarter, and the shards' heads stay in the cache from one event to the
 * next, which sixteen did not.  A block that is freed
 * leaves its place to its address, which a caching allocator gives out again
 * soon; such places go when the table is full (4/5) and is made anew, 3/5
 * full.  An entry is 32 bytes, so a live block costs 40 to 54.
 * Cost of an allocation or a free: one multiplication, one lock, mostly one
 * cache line. */

#include "blocks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "lock.h"

#define SHARDS 4u
#define FIRST_ENTRIES 64u
#define STREAMS 512u
#define MS UINT64_C(1000000)
#define MAX_BYTES ((UINT64_C(1) << 55) - 1)

struct entry {
    uint64_t address; /* 0: free place */
    uint64_t bytes : 55, live : 1, device : 8;
    uint32_t site;
    uint32_t time_ms;
    uint32_t thread : 22, stream : 9, awaited : 1; /* stream 0: unknown */
};
_Static_assert(sizeof(struct entry) == 32, "the budget counts on it");

struct shard {
    struct cm_lock lock;
    /* Guarded by lock, all below. */
    struct entry *entries;        /* owned */
    size_t capacity, used, count; /* used: the live and the freed */
    uint64_t events, lost, unknown;
    struct {
        uint64_t bytes, allocations;
        uint32_t live;
    } devices[CM_MAX_DEVICES];
};

/* What is kept without a lock; no two devices share a cache line. */
struct device {
    _Atomic uint64_t peak_bytes, allocated, reserved;
    _Atomic uint64_t untold; /* live bytes of a source that tells no totals */
    char apart[96];
};

struct cm_blocks {
    struct shard shards[SHARDS];
    struct device devices[CM_MAX_DEVICES];
    size_t max_in_shard;               /* written before use */
    _Atomic uint64_t streams[STREAMS]; /* handle + 1, by hash; 0: free */
    _Atomic uint64_t out_of_memory, lost;
    _Atomic int devices_seen;
};

struct cm_blocks *
cm_blocks_new(size_t max_blocks)
{
    struct cm_blocks *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->max_in_shard = max_blocks / SHARDS + 1;
    for (size_t i = 0; i < SHARDS; i++) {
        if (cm_lock_init(&self->shards[i].lock) != CM_OK) {
            while (i-- > 0) {
                cm_lock_release(&self->shards[i].lock);
            }
            cm_free(self);
            return NULL;
        }
    }
    return self;
}

void
cm_blocks_free(struct cm_blocks *self)
{
    for (size_t i = 0; self != NULL && i < SHARDS; i++) {
        cm_lock_release(&self->shards[i].lock);
        cm_free(self->shards[i].entries);
    }
    cm_free(self);
}

/* ---- streams: few, so a small table that only grows gives each a number */

static uint32_t
stream_number(struct cm_blocks *self, uint64_t stream)
{
    if (stream == CM_STREAM_UNKNOWN) {
        return 0;
    }
    uint64_t wanted = stream + 1;
    uint32_t at = (uint32_t)(stream * UINT64_C(0x9E3779B97F4A7C15) >> 55);
    for (uint32_t tries = 0; tries < STREAMS; tries++) {
        uint32_t slot = (at + tries) % (STREAMS - 1) + 1;
        uint64_t there =
            atomic_load_explicit(&self->streams[slot], memory_order_relaxed);
        if (there == wanted
            || (there == 0
                && (atomic_compare_exchange_strong(&self->streams[slot],
                                                   &there, wanted)
                    || there == wanted))) {
            return slot;
        }
    }
    return 0;
}

static uint64_t
stream_of(const struct cm_blocks *self, uint32_t number)
{
    return number == 0 ? CM_STREAM_UNKNOWN
                       : atomic_load(&self->streams[number]) - 1;
}

/* ---- one shard */

static uint64_t
hash_of(uint64_t address)
{
    uint64_t hash = address * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 32;
    return hash * UINT64_C(0xD6E8FEB86659FD93);
}

/* The upper half spreads over any capacity, without a division. */
static size_t
home_of(uint64_t address, size_t capacity)
{
    return (size_t)((hash_of(address) >> 32) * capacity >> 32);
}

static struct shard *
shard_of(struct cm_blocks *self, uint64_t address)
{
    return &self->shards[hash_of(address) >> 16 & (SHARDS - 1)];
}

/* Its place, or the free one where it belongs.  Before: one place is free. */
static struct entry *
find(struct entry *entries, size_t capacity, uint64_t address)
{
    size_t at = home_of(address, capacity);
    while (entries[at].address != 0 && entries[at].address != address) {
        at = at + 1 == capacity ? 0 : at + 1;
    }
    return &entries[at];
}

static bool
make_anew(const struct cm_blocks *self, struct shard *shard)
{
    size_t capacity = shard->count * 5 / 3 + FIRST_ENTRIES;
    struct entry *entries = shard->count < self->max_in_shard
                                ? cm_calloc(capacity, sizeof(*entries))
                                : NULL;
    if (entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < shard->capacity; i++) {
        if (shard->entries[i].live) {
            *find(entries, capacity, shard->entries[i].address) =
                shard->entries[i];
        }
    }
    cm_free(shard->entries);
    shard->entries = entries;
    shard->capacity = capacity;
    shard->used = shard->count;
    return true;
}

/* NULL: no room, and none to be had. */
static struct entry *
place_for(const struct cm_blocks *self, struct shard *shard, uint64_t address)
{
    struct entry *entry = shard->capacity != 0
                              ? find(shard->entries, shard->capacity, address)
                              : NULL;
    if (entry != NULL && entry->address != 0) {
        return entry;
    }
    if (shard->used >= shard->capacity / 5 * 4) {
        entry = make_anew(self, shard)
                    ? find(shard->entries, shard->capacity, address)
                    : NULL;
    }
    shard->used += entry != NULL;
    return entry;
}

/* ---- events */

static void
raise_peak(struct device *device, uint64_t bytes)
{
    uint64_t peak =
        atomic_load_explicit(&device->peak_bytes, memory_order_relaxed);
    while (bytes > peak
           && !atomic_compare_exchange_weak_explicit(
               &device->peak_bytes, &peak, bytes, memory_order_relaxed,
               memory_order_relaxed)) {
    }
}

/* Most sources tell what they hold, which saves us a counter that all threads
 * would share. */
static bool
tells_totals(const struct cm_event *event)
{
    return (event->allocated | event->reserved) != 0;
}

static void
note_totals(struct device *device, const struct cm_event *event)
{
    atomic_store_explicit(&device->allocated, event->allocated,
                          memory_order_relaxed);
    atomic_store_explicit(&device->reserved, event->reserved,
                          memory_order_relaxed);
    raise_peak(device, event->allocated);
}

static void
note_untold(struct device *device, uint64_t more)
{
    uint64_t before =
        atomic_fetch_add_explicit(&device->untold, more, memory_order_relaxed);
    if ((int64_t)more > 0) {
        raise_peak(device, before + more);
    }
}

/* Before: the shard's lock is held, as for the next. */
static void
forget(struct shard *shard, struct entry *entry)
{
    shard->devices[entry->device].bytes -= entry->bytes;
    shard->devices[entry->device].live--;
    shard->count--;
    entry->live = false;
}

static void
allocate(struct cm_blocks *self, struct shard *shard,
         const struct cm_event *event)
{
    struct entry *entry = event->bytes <= MAX_BYTES
                              ? place_for(self, shard, event->address)
                              : NULL;
    if (entry == NULL) {
        shard->lost++;
        return;
    }
    if (entry->live) { /* its free was not told */
        forget(shard, entry);
        shard->lost++;
    }
    *entry = (struct entry){
        .address = event->address,
        .bytes = event->bytes & MAX_BYTES,
        .live = true,
        .device = (uint8_t)event->device,
        .site = event->site.index,
        .time_ms = (uint32_t)(event->time_ns / MS),
        .thread = event->thread & 0x3FFFFF,
        .stream = stream_number(self, event->stream) & 0x1FF,
        .awaited = event->awaited,
    };
    shard->count++;
    shard->devices[event->device].bytes += event->bytes;
    shard->devices[event->device].allocations++;
    shard->devices[event->device].live++;
    if (!tells_totals(event)) {
        note_untold(&self->devices[event->device], event->bytes);
    }
}

/* NULL: no such live block. */
static struct entry *
find_live(const struct shard *shard, uint64_t address)
{
    struct entry *entry = shard->capacity != 0
                              ? find(shard->entries, shard->capacity, address)
                              : NULL;
    return entry != NULL && entry->live ? entry : NULL;
}

static void
release(struct cm_blocks *self, struct shard *shard,
        const struct cm_event *event)
{
    struct entry *entry = find_live(shard, event->address);
    if (entry == NULL) {
        shard->unknown++;
        return;
    }
    if (!tells_totals(event)) {
        note_untold(&self->devices[entry->device], -(uint64_t)entry->bytes);
    }
    forget(shard, entry);
}

static void
see_device(struct cm_blocks *self, int device)
{
    int seen = atomic_load(&self->devices_seen);
    while (device >= seen
           && !atomic_compare_exchange_weak(&self->devices_seen, &seen,
                                            device + 1)) {
    }
}

void
cm_blocks_event(struct cm_blocks *self, const struct cm_event *event)
{
    if (event->kind == CM_EVENT_OUT_OF_MEMORY) {
        atomic_fetch_add(&self->out_of_memory, 1);
        return;
    }
    if (event->device < 0 || event->device >= CM_MAX_DEVICES
        || event->address == 0) {
        atomic_fetch_add(&self->lost, 1);
        return;
    }
    if (tells_totals(event)) {
        note_totals(&self->devices[event->device], event);
    }
    if (event->kind != CM_EVENT_ALLOCATE && event->kind != CM_EVENT_FREE) {
        return;
    }
    if (event->device
        >= atomic_load_explicit(&self->devices_seen, memory_order_relaxed)) {
        see_device(self, event->device);
    }
    struct shard *shard = shard_of(self, event->address);
    cm_lock_take(&shard->lock);
    shard->events++;
    if (event->kind == CM_EVENT_ALLOCATE) {
        allocate(self, shard, event);
    }
    else {
        release(self, shard, event);
    }
    cm_lock_give(&shard->lock);
}

void
cm_blocks_clear(struct cm_blocks *self)
{
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &self->shards[i];
        cm_lock_take(&shard->lock);
        for (size_t k = 0; k < shard->capacity; k++) {
            if (shard->entries[k].live) {
                forget(shard, &shard->entries[k]);
            }
        }
        cm_lock_give(&shard->lock);
    }
    for (size_t i = 0; i < CM_MAX_DEVICES; i++) {
        atomic_store(&self->devices[i].untold, 0);
    }
}

/* ---- looking up */

static struct cm_block
block_of(const struct cm_blocks *self, const struct entry *entry)
{
    return (struct cm_block){
        .address = entry->address,
        .bytes = entry->bytes,
        .stream = stream_of(self, entry->stream),
        .time_ns = entry->time_ms * MS,
        .thread = entry->thread,
        .site = {entry->site},
        .device = (int16_t)entry->device,
        .awaited = entry->awaited,
    };
}

bool
cm_blocks_at(struct cm_blocks *self, uint64_t address, struct cm_block *result)
{
    struct shard *shard = shard_of(self, address);
    cm_lock_take(&shard->lock);
    const struct entry *entry = find_live(shard, address);
    if (entry != NULL) {
        *result = block_of(self, entry);
    }
    cm_lock_give(&shard->lock);
    return entry != NULL;
}

/* An address that starts no block, and where its answer goes. */
struct inner {
    uint64_t address;
    struct cm_block *result;
};

static int
by_address(const void *left, const void *right)
{
    uint64_t a = ((const struct inner *)left)->address;
    uint64_t b = ((const struct inner *)right)->address;
    return (a > b) - (a < b);
}

/* The first of the sorted addresses that is not below `address`. */
static size_t
first_from(const struct inner *inner, size_t count, uint64_t address)
{
    size_t low = 0;
    while (count > 0) {
        size_t half = count / 2;
        bool below = inner[low + half].address < address;
        low += below ? half + 1 : 0;
        count = below ? count - half - 1 : half;
    }
    return low;
}

static void
match_entry(const struct cm_blocks *self, const struct entry *entry,
            const struct inner *inner, size_t count)
{
    for (size_t i = first_from(inner, count, entry->address);
         i < count && inner[i].address - entry->address < entry->bytes; i++) {
        *inner[i].result = block_of(self, entry);
    }
}

static void
match_inner(struct cm_blocks *self, struct inner *inner, size_t count)
{
    qsort(inner, count, sizeof(*inner), by_address);
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &self->shards[i];
        cm_lock_take(&shard->lock);
        for (size_t k = 0; k < shard->capacity; k++) {
            if (shard->entries[k].live) {
                match_entry(self, &shard->entries[k], inner, count);
            }
        }
        cm_lock_give(&shard->lock);
    }
}

enum cm_status
cm_blocks_match(struct cm_blocks *self, const uint64_t *addresses,
                size_t count, struct cm_block *results)
{
    size_t missed = 0;
    for (size_t i = 0; i < count; i++) {
        results[i] = (struct cm_block){0};
        missed += !cm_blocks_at(self, addresses[i], &results[i]);
    }
    if (missed == 0) {
        return CM_OK;
    }
    struct inner *inner = cm_calloc(missed, sizeof(*inner));
    if (inner == NULL) {
        return CM_NO_MEMORY;
    }
    size_t used = 0;
    for (size_t i = 0; i < count && used < missed; i++) {
        if (results[i].address == 0) {
            inner[used++] = (struct inner){addresses[i], &results[i]};
        }
    }
    match_inner(self, inner, used);
    cm_free(inner);
    return CM_OK;
}

/* Before: the shard's lock is held.  Returns how many were copied. */
static size_t
copy_shard(const struct cm_blocks *self, const struct shard *shard,
           struct cm_block *to)
{
    size_t copied = 0;
    for (size_t i = 0; i < shard->capacity; i++) {
        if (shard->entries[i].live) {
            to[copied++] = block_of(self, &shard->entries[i]);
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
    for (size_t i = 0; status == CM_OK && i < SHARDS; i++) {
        struct shard *shard = &self->shards[i];
        cm_lock_take(&shard->lock);
        status = cm_grow((void **)&blocks, &capacity, used + shard->count + 1,
                         sizeof(*blocks));
        if (status == CM_OK) {
            used += copy_shard(self, shard, blocks + used);
        }
        cm_lock_give(&shard->lock);
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

/* ---- sums */

void
cm_blocks_use(struct cm_blocks *self, int device, struct cm_block_use *result)
{
    *result = (struct cm_block_use){0};
    if (device < 0 || device >= CM_MAX_DEVICES) {
        return;
    }
    struct device *from = &self->devices[device];
    result->peak_bytes = atomic_load(&from->peak_bytes);
    result->allocated = atomic_load(&from->allocated);
    result->reserved = atomic_load(&from->reserved);
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &self->shards[i];
        cm_lock_take(&shard->lock);
        result->live_bytes += shard->devices[device].bytes;
        result->live_count += shard->devices[device].live;
        result->allocations += shard->devices[device].allocations;
        cm_lock_give(&shard->lock);
    }
}

int
cm_blocks_devices(struct cm_blocks *self)
{
    return atomic_load(&self->devices_seen);
}

void
cm_blocks_mark(struct cm_blocks *self)
{
    for (int i = 0; i < cm_blocks_devices(self); i++) {
        struct device *device = &self->devices[i];
        atomic_store(&device->peak_bytes, atomic_load(&device->allocated)
                                              + atomic_load(&device->untold));
    }
}

void
cm_blocks_counts(struct cm_blocks *self, struct cm_blocks_counts *result)
{
    *result = (struct cm_blocks_counts){
        .lost = atomic_load(&self->lost),
        .out_of_memory = atomic_load(&self->out_of_memory),
        .footprint = sizeof(*self),
    };
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &self->shards[i];
        cm_lock_take(&shard->lock);
        result->events += shard->events;
        result->lost += shard->lost;
        result->unknown += shard->unknown;
        result->footprint += shard->capacity * sizeof(struct entry);
        cm_lock_give(&shard->lock);
    }
}
