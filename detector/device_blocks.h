/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DEVICE_BLOCKS_H
#define CM_DEVICE_BLOCKS_H

/* The live blocks of one device, for blocks.c.
 *
 * Each device has a line of events that wait: an event is written there and no
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
 * device for a quarter.  The line is short, so that it stays in the caches of
 * the thread that writes it. */
enum { CM_BLOCK_TABLES = 4, CM_BLOCKS_WAITING = 256 };

/* An event of the line: what the tables want of it. */
struct cm_waiting {
    uint64_t address, bytes;
    uint32_t thread;
    struct cm_site_id site;
    uint16_t stream; /* its number */
    uint8_t kind;    /* allocate or free */
    bool awaited, doubtful;
};
_Static_assert(sizeof(struct cm_waiting) == 32, "half a cache line");

/* The writer of the line is who holds the allocator's lock once in_order is
 * set, else who holds ours. */
struct cm_device_blocks {
    /* The writer's own, in a cache line of theirs; others read it. */
    _Alignas(64) _Atomic uint32_t written; /* events, since the start */
    uint32_t known_taken;                  /* as last read by the writer */
    _Atomic uint64_t told_allocated, told_reserved, told_peak;
    _Atomic uint64_t bytes_told; /* of all allocations */
    uint64_t stream;             /* of the last event, and its number */
    uint16_t stream_number;
    _Atomic bool tells_totals;
    _Atomic bool in_order; /* guarded by lock; never false again */
    /* Guarded by lock, all below but the line. */
    _Alignas(64) _Atomic uint32_t taken; /* events, since the start */
    struct cm_lock lock;
    uint8_t number; /* the device's index + 1 */
    uint32_t rests; /* times to come in which no pairs are sought */
    uint64_t events, lost, unknown;
    uint64_t bytes, allocations, peak_bytes; /* as the tables have them */
    size_t most_in_table;
    struct cm_streams *streams; /* borrowed */
    void *room;                 /* owned: where this lies, aligned */
    struct cm_block_table tables[CM_BLOCK_TABLES];
    struct cm_site_uses sites;
    struct cm_address_filter filter; /* of what was not told in order */
    /* By the number of the event; the writer's from `written` on. */
    _Alignas(64) struct cm_waiting line[CM_BLOCKS_WAITING];
};

/* NULL: no memory. */
struct cm_device_blocks *cm_device_blocks_new(int index,
                                              struct cm_streams *streams,
                                              size_t most_in_table);
void cm_device_blocks_free(struct cm_device_blocks *self);

/* By the writer alone; false: the line is full, or takes no such
 * event, as one that has a time of its own. */
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
cm_device_blocks_fill(struct cm_waiting *to, const struct cm_event *from,
                      uint32_t stream)
{
    to->address = from->address;
    CM_KEEP_APART();
    to->bytes = from->bytes;
    CM_KEEP_APART();
    to->thread = from->thread;
    CM_KEEP_APART();
    to->site = from->site;
    CM_KEEP_APART();
    to->stream = (uint16_t)stream;
    CM_KEEP_APART();
    to->kind = from->kind;
    CM_KEEP_APART();
    to->awaited = from->awaited;
    CM_KEEP_APART();
    to->doubtful = from->doubtful;
}

#define CM_SET(member, value)                                                 \
    atomic_store_explicit(member, value, memory_order_relaxed)
#define CM_GET(member) atomic_load_explicit(member, memory_order_relaxed)

/* Most sources tell what they hold; the others are added up. */
static inline void
cm_device_blocks_tell(struct cm_device_blocks *self,
                      const struct cm_event *event)
{
    if (event->kind == CM_EVENT_ALLOCATE) { /* two threads may lose one */
        CM_SET(&self->bytes_told, CM_GET(&self->bytes_told) + event->bytes);
    }
    if ((event->allocated | event->reserved) == 0) {
        return;
    }
    CM_SET(&self->told_allocated, event->allocated);
    CM_SET(&self->told_reserved, event->reserved);
    if (event->allocated > CM_GET(&self->told_peak)) {
        CM_SET(&self->told_peak, event->allocated);
    }
    if (!CM_GET(&self->tells_totals)) {
        CM_SET(&self->tells_totals, true);
    }
}

static inline bool
cm_device_blocks_has_room(struct cm_device_blocks *self, uint32_t written)
{
    if (written - self->known_taken == CM_BLOCKS_WAITING) {
        self->known_taken =
            atomic_load_explicit(&self->taken, memory_order_acquire);
    }
    return written - self->known_taken != CM_BLOCKS_WAITING;
}

static inline uint32_t
cm_device_blocks_stream(struct cm_device_blocks *self, uint64_t handle)
{
    if (handle != self->stream) {
        self->stream = handle;
        self->stream_number =
            (uint16_t)cm_streams_number(self->streams, handle);
    }
    return self->stream_number;
}

static inline bool
cm_device_blocks_write(struct cm_device_blocks *self,
                       const struct cm_event *event)
{
    uint32_t written = CM_GET(&self->written), stream = 0;
    if (event->kind > CM_EVENT_FREE || event->time_ns != 0
        || !cm_device_blocks_has_room(self, written)) {
        return false;
    }
    if (event->kind == CM_EVENT_ALLOCATE) {
        stream = cm_device_blocks_stream(self, event->stream);
    }
    cm_device_blocks_fill(&self->line[written % CM_BLOCKS_WAITING], event,
                          stream);
    cm_device_blocks_tell(self, event);
    atomic_store_explicit(&self->written, written + 1, memory_order_release);
    return true;
}

#endif
