/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Sixteen shards by the hash of the address, each an open-addressing table
 * with linear probing and backward-shift deletion under its own mutex: two
 * threads seldom wait for each other, and a table that grows holds up a
 * sixteenth.  An entry is 32 bytes; a table is filled to 4/5 and then grows by
 * half, so that a block costs 40 to 60 bytes.
 * Cost of an allocation or a free: one multiplication, one lock, about two
 * cache lines. */

#include "blocks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "lock.h"

#define SHARDS 16u
#define FIRST_ENTRIES 64u
#define STREAMS 512u
#define MS UINT64_C(1000000)
#define MAX_BYTES ((UINT64_C(1) << 56) - 1)

struct entry {
    uint64_t address; /* 0: free place */
    uint64_t bytes : 56, device : 8;
    uint32_t site;
    uint32_t time_ms;
    uint32_t thread : 22, stream : 9, awaited : 1; /* stream 0: unknown */
};
_Static_assert(sizeof(struct entry) == 32, "the budget counts on it");

struct shard {
    struct cm_lock lock;
    /* Guarded by lock, all below. */
    struct entry *entries; /* owned */
    size_t capacity, count;
    uint64_t events, lost, unknown, allocations[CM_MAX_DEVICES];
    uint32_t live[CM_MAX_DEVICES];
};

/* Every event of the device writes here: no two share a cache line. */
struct device {
    _Atomic uint64_t live_bytes, peak_bytes, allocated, reserved;
    char apart[96];
};

struct cm_blocks {
    struct shard shards[SHARDS];
    struct device devices[CM_MAX_DEVICES];
    size_t max_in_shard;               /* written before use */
    _Atomic uint64_t streams[STREAMS]; /* handle + 1, by hash; 0: free */
    _Atomic uint64_t out_of_memory, lost;
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
make_room(const struct cm_blocks *self, struct shard *shard)
{
    if (shard->count < shard->capacity / 5 * 4) {
        return true;
    }
    size_t capacity = shard->capacity == 0
                          ? FIRST_ENTRIES
                          : shard->capacity + shard->capacity / 2;
    struct entry *bigger = shard->count < self->max_in_shard
                               ? cm_calloc(capacity, sizeof(*bigger))
                               : NULL;
    if (bigger == NULL) {
        return false;
    }
    for (size_t i = 0; i < shard->capacity; i++) {
        if (shard->entries[i].address != 0) {
            *find(bigger, capacity, shard->entries[i].address) =
                shard->entries[i];
        }
    }
    cm_free(shard->entries);
    shard->entries = bigger;
    shard->capacity = capacity;
    return true;
}

static size_t
distance(size_t from, size_t to, size_t capacity)
{
    return to >= from ? to - from : to + capacity - from;
}

/* Later entries of the same run move back over the hole. */
static void
take_out(struct shard *shard, struct entry *entry)
{
    struct entry *entries = shard->entries;
    size_t capacity = shard->capacity;
    size_t hole = (size_t)(entry - entries), at = hole;
    for (;;) {
        at = at + 1 == capacity ? 0 : at + 1;
        if (entries[at].address == 0) {
            break;
        }
        size_t home = home_of(entries[at].address, capacity);
        if (distance(home, at, capacity) >= distance(hole, at, capacity)) {
            entries[hole] = entries[at];
            hole = at;
        }
    }
    entries[hole].address = 0;
    shard->count--;
}

/* ---- events */

static void
add_bytes(struct device *device, uint64_t bytes)
{
    uint64_t live = atomic_fetch_add_explicit(&device->live_bytes, bytes,
                                              memory_order_relaxed)
                    + bytes;
    uint64_t peak =
        atomic_load_explicit(&device->peak_bytes, memory_order_relaxed);
    while (live > peak
           && !atomic_compare_exchange_weak_explicit(
               &device->peak_bytes, &peak, live, memory_order_relaxed,
               memory_order_relaxed)) {
    }
}

static void
forget_entry(struct cm_blocks *self, struct shard *shard,
             const struct entry *entry)
{
    atomic_fetch_sub_explicit(&self->devices[entry->device].live_bytes,
                              entry->bytes, memory_order_relaxed);
    shard->live[entry->device]--;
}

/* Before: the shard's lock is held, as for the next. */
static void
allocate(struct cm_blocks *self, struct shard *shard,
         const struct cm_event *event)
{
    if (event->bytes > MAX_BYTES || !make_room(self, shard)) {
        shard->lost++;
        return;
    }
    struct entry *entry =
        find(shard->entries, shard->capacity, event->address);
    if (entry->address != 0) { /* its free was not told */
        forget_entry(self, shard, entry);
        shard->lost++;
    }
    else {
        shard->count++;
    }
    *entry = (struct entry){
        .address = event->address,
        .bytes = event->bytes & MAX_BYTES,
        .device = (uint8_t)event->device,
        .site = event->site.index,
        .time_ms = (uint32_t)(event->time_ns / MS),
        .thread = event->thread & 0x3FFFFF,
        .stream = stream_number(self, event->stream) & 0x1FF,
        .awaited = event->awaited,
    };
    shard->allocations[event->device]++;
    shard->live[event->device]++;
    add_bytes(&self->devices[event->device], event->bytes);
}

static void
release(struct cm_blocks *self, struct shard *shard,
        const struct cm_event *event)
{
    struct entry *entry =
        shard->capacity == 0
            ? NULL
            : find(shard->entries, shard->capacity, event->address);
    if (entry == NULL || entry->address == 0) {
        shard->unknown++;
        return;
    }
    forget_entry(self, shard, entry);
    take_out(shard, entry);
}

static void
note_totals(struct device *device, const struct cm_event *event)
{
    if ((event->allocated | event->reserved) != 0) {
        atomic_store_explicit(&device->allocated, event->allocated,
                              memory_order_relaxed);
        atomic_store_explicit(&device->reserved, event->reserved,
                              memory_order_relaxed);
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
    note_totals(&self->devices[event->device], event);
    if (event->kind != CM_EVENT_ALLOCATE && event->kind != CM_EVENT_FREE) {
        return;
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
    bool found = false;
    cm_lock_take(&shard->lock);
    if (address != 0 && shard->capacity != 0) {
        const struct entry *entry =
            find(shard->entries, shard->capacity, address);
        found = entry->address != 0;
        if (found) {
            *result = block_of(self, entry);
        }
    }
    cm_lock_give(&shard->lock);
    return found;
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
            if (shard->entries[k].address != 0) {
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
        if (shard->entries[i].address != 0) {
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
    result->live_bytes = atomic_load(&from->live_bytes);
    result->peak_bytes = atomic_load(&from->peak_bytes);
    result->allocated = atomic_load(&from->allocated);
    result->reserved = atomic_load(&from->reserved);
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &self->shards[i];
        cm_lock_take(&shard->lock);
        result->live_count += shard->live[device];
        result->allocations += shard->allocations[device];
        cm_lock_give(&shard->lock);
    }
}

void
cm_blocks_mark(struct cm_blocks *self)
{
    for (size_t i = 0; i < CM_MAX_DEVICES; i++) {
        atomic_store(&self->devices[i].peak_bytes,
                     atomic_load(&self->devices[i].live_bytes));
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
