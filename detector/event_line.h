/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_EVENT_LINE_H
#define CM_EVENT_LINE_H

/* The events of one device that wait to be taken into its tables: a ring with
 * one writer and one reader at a time, without a lock.  It is short, so that
 * it stays in the caches of the thread that writes, and what a writer touches
 * besides lies in one cache line. */

#include <stdbool.h>
#include <stdint.h>

#include "event.h"
#include "hot.h"
#include "relaxed.h"
#include "streams.h"

enum { CM_LINE_EVENTS = 256 };

/* An event: what the tables want of it. */
struct cm_waiting {
    uint64_t address, bytes;
    uint32_t thread;
    struct cm_site_id site;
    uint16_t stream; /* its number */
    uint8_t kind;    /* allocate or free */
    bool awaited, doubtful;
};
_Static_assert(sizeof(struct cm_waiting) == 32, "half a cache line");

/* Zeroed before first use, but for the stream and whose number it has. */
struct cm_event_line {
    /* The writer's; any thread may read them. */
    _Alignas(64) _Atomic uint32_t written; /* events, since the start */
    uint32_t known_taken;                  /* as last read by the writer */
    /* As the allocator said last; the peak since somebody set it. */
    _Atomic uint64_t allocated, reserved, peak;
    _Atomic uint64_t bytes; /* of all allocations */
    uint64_t stream;        /* of the last event: CM_STREAM_UNKNOWN at first */
    uint16_t stream_number;
    _Atomic bool tells_totals;
    _Atomic bool doubted;       /* some event was not told: a free, perhaps */
    struct cm_streams *streams; /* borrowed; written before use */
    /* The reader's. */
    _Alignas(64) _Atomic uint32_t taken; /* events, since the start */
    _Alignas(64) struct cm_waiting events[CM_LINE_EVENTS];
};

/* Event number `number`, which waits. */
static CM_HOT_PART const struct cm_waiting *
cm_event_line_at(const struct cm_event_line *self, uint32_t number)
{
    return &self->events[number % CM_LINE_EVENTS];
}

/* Field by field: the processor waits when a copy reads in one word what was
 * just written in two, a seventh of an event's time. */
#define CM_KEEP_APART() __asm__ volatile("" ::: "memory")
static CM_HOT_PART void
cm_waiting_fill(struct cm_waiting *to, const struct cm_event *from,
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

/* What it says of its device as a whole, if it does. */
static CM_HOT_PART void
cm_event_line_tell(struct cm_event_line *self, const struct cm_event *event)
{
    if (event->kind == CM_EVENT_ALLOCATE) {
        CM_ADD(&self->bytes, event->bytes);
    }
    if (CM_SELDOM((event->allocated | event->reserved) == 0)) {
        return;
    }
    CM_SET(&self->allocated, event->allocated);
    CM_SET(&self->reserved, event->reserved);
    if (CM_SELDOM(event->allocated > CM_GET(&self->peak))) {
        CM_SET(&self->peak, event->allocated);
    }
    if (CM_SELDOM(!CM_GET(&self->tells_totals))) {
        CM_SET(&self->tells_totals, true);
    }
}

/* By the writer, before an event of an allocator that tells its total: whether
 * that is what the last one and the event's bytes make.  Else the line is
 * doubted. */
static CM_HOT_PART bool
cm_event_line_follows(struct cm_event_line *self, const struct cm_event *event)
{
    bool freed = event->kind == CM_EVENT_FREE;
    uint64_t change = freed ? -event->bytes : event->bytes;
    if (CM_SELDOM(CM_GET(&self->allocated) + change != event->allocated)) {
        CM_SET(&self->doubted, true);
        return false;
    }
    return true;
}

static CM_HOT_PART bool
cm_event_line_has_room(struct cm_event_line *self, uint32_t written)
{
    if (CM_SELDOM(written - self->known_taken == CM_LINE_EVENTS)) {
        self->known_taken =
            atomic_load_explicit(&self->taken, memory_order_acquire);
    }
    return written - self->known_taken != CM_LINE_EVENTS;
}

static CM_HOT_PART uint32_t
cm_event_line_stream(struct cm_event_line *self, uint64_t handle)
{
    if (CM_SELDOM(handle != self->stream)) {
        self->stream = handle;
        self->stream_number =
            (uint16_t)cm_streams_number(self->streams, handle);
    }
    return self->stream_number;
}

/* By the writer alone; false: the line is full, or takes no such event, as one
 * that has a time of its own. */
static CM_HOT_PART bool
cm_event_line_write(struct cm_event_line *self, const struct cm_event *event)
{
    uint32_t written = CM_GET(&self->written), stream = 0;
    if (CM_SELDOM(event->kind > CM_EVENT_FREE || event->time_ns != 0
                  || !cm_event_line_has_room(self, written))) {
        return false;
    }
    if (event->kind == CM_EVENT_ALLOCATE) {
        stream = cm_event_line_stream(self, event->stream);
    }
    struct cm_waiting *waiting = &self->events[written % CM_LINE_EVENTS];
    __asm__("" : "+r"(waiting)); /* its fields by short offsets */
    cm_waiting_fill(waiting, event, stream);
    cm_event_line_tell(self, event);
    atomic_store_explicit(&self->written, written + 1, memory_order_release);
    return true;
}

/* What is known of an event among others.  Flags. */
enum {
    CM_EVENT_GONE = 1, /* its block was allocated and freed among them */
    /* So was the block before at its address: whoever has taken that one knows
     * that no older one is left there. */
    CM_EVENT_AGAIN = 2,
    CM_EVENT_OF_PAIR = CM_EVENT_GONE | CM_EVENT_AGAIN, /* a free */
};

/* Of the events first, first + 1, ... those of blocks that were allocated and
 * freed among them.  Returns how many blocks; not each one is found.  Where a
 * free was not told, an older block of the address may be left. */
uint32_t cm_event_line_pairs(const struct cm_event_line *self, uint32_t first,
                             uint32_t count, uint8_t known[CM_LINE_EVENTS]);

#endif
