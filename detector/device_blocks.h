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
#include "event_line.h"
#include "hot.h"
#include "lock.h"
#include "site_use.h"

/* Four tables by the hash of the address, so that one that grows holds up its
 * device for a quarter. */
enum { CM_BLOCK_TABLES = 4 };

/* The writer of the line is who holds the allocator's lock once in_order is
 * set, else who holds ours. */
struct cm_device_blocks {
    struct cm_event_line line;
    _Atomic bool in_order; /* guarded by lock; never false again */
    struct cm_lock lock;
    /* Guarded by lock, all below. */
    uint8_t number; /* the device's index + 1 */
    uint32_t rests; /* times to come in which no pairs are sought */
    uint64_t events, lost, unknown;
    uint64_t bytes, allocations, peak_bytes; /* as the tables have them */
    uint64_t latest_ms;                      /* no block is younger */
    size_t most_in_table;
    void *room; /* owned: where this lies, aligned */
    struct cm_block_table tables[CM_BLOCK_TABLES];
    struct cm_site_uses sites;
    struct cm_address_filter filter; /* of what was not told in order */
};

/* NULL: no memory. */
struct cm_device_blocks *cm_device_blocks_new(int index,
                                              struct cm_streams *streams,
                                              size_t most_in_table);
void cm_device_blocks_free(struct cm_device_blocks *self);

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
/* An entry has room for 49.7 days of milliseconds: since when it is live if
 * that is no longer before the newest one. */
uint64_t cm_device_blocks_time_ns(const struct cm_device_blocks *self,
                                  const struct cm_block_entry *entry);
size_t cm_device_blocks_count(const struct cm_device_blocks *self);

/* Without the lock: an event that comes next, of an allocator that gives its
 * events no order.  In line, so that what a caller knows of it costs nothing. */
static CM_HOT_PART void
cm_device_blocks_hear(struct cm_device_blocks *self,
                      const struct cm_event *event)
{
    bool added = event->kind == CM_EVENT_ALLOCATE;
    cm_lock_take(&self->lock);
    if (CM_SELDOM(CM_GET(&self->in_order)
                  || (added && cm_address_filter_is_old(&self->filter))
                  || !cm_event_line_write(&self->line, event))) {
        struct cm_event copy = *event; /* the other may stay in registers */
        cm_device_blocks_take(self, &copy);
    }
    else if (added) {
        cm_address_filter_add(&self->filter, event->address);
    }
    cm_lock_give(&self->lock);
}

#endif
