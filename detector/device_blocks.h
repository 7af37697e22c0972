/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DEVICE_BLOCKS_H
#define CM_DEVICE_BLOCKS_H

/* The live blocks of one device, for blocks.c.
 *
 * Each device has a line of events that wait: an event is copied there and no
 * more.  When the line is full, or somebody asks, its events go into the
 * tables together.  One by one they would find those out of the cache, since a
 * program does much between two allocations: on an H200 that was 115 ns for a
 * free in a training loop where it is 25 ns in a row.
 *
 * Events that an allocator's lock has put in order have the line for
 * themselves and take no lock of ours: the line is a ring with one writer.
 * (An atomic exchange would wait until the copy, out of the cache too, has
 * reached it.)  All others share a lock with those who ask, and where events
 * in order have been seen they go into the tables at once. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address_filter.h"
#include "block_table.h"
#include "event.h"
#include "lock.h"
#include "site_use.h"
#include "streams.h"

/* Four tables by the hash of the address, so that one that grows holds up its
 * device for a quarter. */
enum { CM_BLOCK_TABLES = 4, CM_BLOCKS_WAITING = 512 };

/* The writer of the line is who holds the allocator's lock once in_order is
 * set, else who holds ours. */
struct cm_device_blocks {
    /* How many events were written in the line, and how many taken out, since
     * the start.  The first is the writer's, the other guarded by lock. */
    _Atomic uint32_t written, taken;
    struct cm_event *line; /* in `room`: an event fills a cache line */
    _Atomic bool in_order; /* guarded by lock; never false again */
    struct cm_lock lock;
    /* Guarded by lock, all below but the room. */
    bool tells_totals;
    uint64_t events, lost, unknown;
    uint64_t peak_bytes, allocated, reserved;
    uint64_t bytes, allocations; /* as the tables have them */
    uint64_t stream;             /* of the last allocation, and its number */
    uint32_t stream_number;
    size_t most_in_table;
    struct cm_streams *streams; /* borrowed */
    struct cm_block_table tables[CM_BLOCK_TABLES];
    struct cm_site_uses sites;
    struct cm_address_filter filter; /* of what was not told in order */
    struct cm_event room[CM_BLOCKS_WAITING + 1];
};

_Static_assert(sizeof(struct cm_event) == 64, "one cache line");

/* NULL: no memory. */
struct cm_device_blocks *cm_device_blocks_new(struct cm_streams *streams,
                                              size_t most_in_table);
void cm_device_blocks_free(struct cm_device_blocks *self);

/* By the writer alone; false: the line is full. */
static inline bool cm_device_blocks_write(struct cm_device_blocks *self,
                                          const struct cm_event *event);

/* Before all of these: the lock is held. */

/* An event that comes next, by whoever is not the writer too. */
void cm_device_blocks_take(struct cm_device_blocks *self,
                           const struct cm_event *event);
/* Nothing waits any more. */
void cm_device_blocks_take_in(struct cm_device_blocks *self);
/* Nothing is live any more. */
void cm_device_blocks_clear(struct cm_device_blocks *self);
/* The live block that starts there; NULL: none.  Before: nothing waits. */
const struct cm_block_entry *cm_device_blocks_find(
    const struct cm_device_blocks *self, uint64_t address);
size_t cm_device_blocks_count(const struct cm_device_blocks *self);

/* Field by field: the processor waits when a copy reads in one word what was
 * just written in two, a seventh of an event's time. */
#define CM_KEEP_APART() __asm__ volatile("" ::: "memory")
static inline void
cm_device_blocks_copy(struct cm_event *to, const struct cm_event *from)
{
    to->address = from->address;
    CM_KEEP_APART();
    to->bytes = from->bytes;
    CM_KEEP_APART();
    to->stream = from->stream;
    CM_KEEP_APART();
    to->allocated = from->allocated;
    CM_KEEP_APART();
    to->reserved = from->reserved;
    CM_KEEP_APART();
    to->time_ns = from->time_ns;
    CM_KEEP_APART();
    to->thread = from->thread;
    CM_KEEP_APART();
    to->site = from->site;
    CM_KEEP_APART();
    to->device = from->device;
    CM_KEEP_APART();
    to->kind = from->kind;
    CM_KEEP_APART();
    to->awaited = from->awaited;
    CM_KEEP_APART();
    to->doubtful = from->doubtful;
}

static inline bool
cm_device_blocks_write(struct cm_device_blocks *self,
                       const struct cm_event *event)
{
    uint32_t written =
        atomic_load_explicit(&self->written, memory_order_relaxed);
    uint32_t taken = atomic_load_explicit(&self->taken, memory_order_acquire);
    if (written - taken == CM_BLOCKS_WAITING) {
        return false;
    }
    cm_device_blocks_copy(&self->line[written % CM_BLOCKS_WAITING], event);
    atomic_store_explicit(&self->written, written + 1, memory_order_release);
    return true;
}

#endif
