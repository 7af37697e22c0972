/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_BLOCKS_H
#define CM_BLOCKS_H

/* The live blocks of one allocator: what is allocated now, by whom, since
 * when.  One table for each source, so that frameworks that stand on each
 * other are not counted twice.
 *
 * cm_blocks_event() may come from any thread, under the allocator's own lock:
 * it takes one leaf mutex of ours and calls nothing.  Every question below
 * sees all events that came before it.  Memory: at most 64 bytes
 * for each block that was live at the peak. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "site_use.h"
#include "sought.h"
#include "status.h"

/* Addresses that are looked for at once. */
#define CM_BLOCKS_MATCHED ((size_t)CM_SOUGHT_FEW)

struct cm_block {
    uint64_t address, bytes;
    uint64_t stream;  /* CM_STREAM_UNKNOWN */
    uint64_t time_ns; /* of the event, else when it was taken in */
    uint32_t thread;
    struct cm_site_id site;
    int16_t device; /* CM_DEVICE_HOST */
    bool awaited;   /* see cm_event */
};

/* Bytes of one device, added up from the events. */
struct cm_block_use {
    uint64_t live_bytes, live_count;
    uint64_t peak_bytes;          /* since cm_blocks_mark(); not the host's */
    uint64_t allocated, reserved; /* as the allocator said last; 0: never */
    uint64_t allocations;         /* since the start */
};

struct cm_blocks_counts {
    uint64_t events;     /* of devices, not of the host */
    uint64_t lost;       /* no memory, no such device, too many blocks */
    uint64_t unknown;    /* frees of what was allocated before we looked */
    uint64_t lost_sites; /* changes of a site's sums, for want of memory */
    uint64_t out_of_memory;
    uint64_t footprint; /* bytes of native memory */
};

struct cm_blocks;
struct cm_device_blocks;
struct cm_event_line;

struct cm_blocks *cm_blocks_new(size_t max_blocks) CM_CHECKED;
void cm_blocks_free(struct cm_blocks *self);

void cm_blocks_event(struct cm_blocks *self, const struct cm_event *event);
/* The same as a hook's sink has it. */
void cm_blocks_sink(void *self, const struct cm_event *event);
/* Where a device's events wait, for a hook whose allocator lets no two come at
 * a time (event.h): under the allocator's lock it writes them there itself, and
 * hands to cm_blocks_sink() what finds no room.  Lives as long as the blocks;
 * NULL: no memory, or no such device. */
struct cm_event_line *cm_blocks_line(void *self, int index);
/* The device itself, for a hook that hands its events to
 * cm_device_blocks_hear().  A doubtful free of an address that its filter does
 * not have would change nothing.  Lives as long as the blocks; NULL: no memory,
 * or no such device. */
struct cm_device_blocks *cm_blocks_device(struct cm_blocks *self, int index);
/* Nothing is live any more; the other counts stay. */
void cm_blocks_clear(struct cm_blocks *self);
/* Nothing of this device is. */
void cm_blocks_clear_device(struct cm_blocks *self, int index);

/* The block that starts at this address; false: none. */
bool cm_blocks_at(struct cm_blocks *self, uint64_t address,
                  struct cm_block *result);
/* The blocks that hold these addresses, CM_BLOCKS_MATCHED at most, start or
 * inside; results[i].bytes is 0 where there is none, as at address 0.  Those
 * that start no block cost one walk over all blocks together.  Allocates
 * nothing, unless a table grows by what waits: within a collection a large
 * malloc() would pay for thousands of small blocks freed before. */
void cm_blocks_match(struct cm_blocks *self, const uint64_t *addresses,
                     size_t count, struct cm_block *results);
/* A copy of every live block, in no order; *result is the caller's to free
 * with cm_free().  Blocks of one moment as far as no thread allocates. */
enum cm_status cm_blocks_copy(struct cm_blocks *self, struct cm_block **result,
                              size_t *count) CM_CHECKED;

/* All zero for a device that was never seen; CM_DEVICE_HOST is one too. */
void cm_blocks_use(struct cm_blocks *self, int index,
                   struct cm_block_use *result);
/* Devices with this number and above were never seen; the host is not among
 * them. */
int cm_blocks_devices(struct cm_blocks *self);
/* The bytes of all allocations since the start, without a lock. */
uint64_t cm_blocks_told(const struct cm_blocks *self);
/* What its allocator said last that it holds, without what it costs to ask for
 * more; 0: it never did. */
uint64_t cm_blocks_total(const struct cm_blocks *self, int index);
/* An iteration is over: the peak starts again at what is live. */
void cm_blocks_mark(struct cm_blocks *self);
/* What one site holds on one device by now. */
struct cm_site_use cm_blocks_site(struct cm_blocks *self, int index,
                                  struct cm_site_id site);
/* The same of many at once, each of them told by its `site`. */
void cm_blocks_sites(struct cm_blocks *self, int index,
                     struct cm_site_use *uses, size_t count);
/* The sites of one device whose live bytes changed since the last call, in no
 * order; *result is the caller's to free with cm_free(). */
enum cm_status cm_blocks_changes(struct cm_blocks *self, int index,
                                 struct cm_site_use **result, size_t *count)
    CM_CHECKED;
void cm_blocks_counts(struct cm_blocks *self, struct cm_blocks_counts *result);

#endif
