/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SERIES_H
#define CM_SERIES_H

/* How much one allocation site held in one category, iteration by iteration,
 * in constant memory.  Not for judging: verdict.h does that.
 *
 * A value holds until the next one, so a site that nothing touched costs
 * nothing.  The newest CM_SERIES_RECENT changes are kept as they were; older
 * ones are spans, each at least `stride` iterations after the one before it,
 * that keep their first value and the least one.  When the spans are full the
 * stride doubles.  The first point always stays.
 *
 * Numbers that a hostile caller could give (iterations that go backwards,
 * counts beyond 32 bits) are clamped, never refused.
 *
 * Guarded by its owner.  A zeroed series is a valid empty one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index.h"
#include "status.h"
#include "table.h"

enum {
    CM_SERIES_SPANS = 24,
    CM_SERIES_RECENT = 24,
    CM_SERIES_POINTS = CM_SERIES_SPANS + CM_SERIES_RECENT,
    CM_SERIES_FORWARDS = 4,
};

/* As it is read. */
struct cm_series_point {
    int64_t iteration;
    uint64_t count, bytes;
    uint64_t low_bytes; /* the least from here until the next point */
};

/* As it is kept: iterations after the first one. */
struct cm_series_span {
    uint32_t after, count;
    uint64_t bytes, low_bytes;
};

struct cm_series_change {
    uint32_t after, count;
    uint64_t bytes;
};

struct cm_series_forward {
    int64_t iteration;
    uint64_t bytes;
};

struct cm_series {
    uint32_t number; /* in its table, from 0 */
    int64_t first_iteration;
    int64_t last_iteration; /* of the last cm_series_add() */
    uint32_t stride;        /* 0: 1 */
    uint8_t spans_count, recent_count, recent_first;
    uint8_t forwards_run;  /* forwards in a row, newest last; saturates */
    uint8_t replaced_run;  /* the same, where the site allocated anew */
    uint8_t forwards_next; /* where the next one goes */
    /* The rise that goes on: from a trough to the highest value since.  It is
     * "taken back" when more than half of it is gone. */
    uint32_t trough_after, peak_after;
    uint64_t trough_bytes, peak_bytes;
    uint32_t longest_taken_back; /* iterations from trough to peak */
    uint32_t changes;            /* saturates */
    uint64_t deepest_fall;       /* bytes below a peak */
    uint32_t peaks_after[4];     /* when the last highest values came */
    uint64_t highest_bytes;
    uint64_t block_low, last_low;  /* least of these eight changes, of those */
    bool fell;                     /* ever, after its first iterations */
    uint8_t block_left, low_rises; /* a bit for each eight changes */
    uint32_t suspect_after, ask_after; /* since when, and when again */
    bool suspected;
    bool goes_on; /* it held what its first point says before that, too */
    int64_t kept_before, replaced_before; /* the last before each run */
    struct cm_series_forward forwards[CM_SERIES_FORWARDS];
    struct cm_series_span spans[CM_SERIES_SPANS];
    struct cm_series_change recent[CM_SERIES_RECENT]; /* a ring */
};
_Static_assert(sizeof(struct cm_series) <= 1216, "5,000 sites: 6 MB");

/* At the end of an iteration in which the site allocated or freed.  Constant
 * time, amortized; equal values take no memory. */
void cm_series_add(struct cm_series *self, int64_t iteration, uint64_t count,
                   uint64_t bytes);
/* At the first backward() after a boundary: bytes that were allocated before
 * the boundary and are still live, though a forward has passed.  Call it for
 * 0 bytes too, or not at all: both end the run. */
void cm_series_note_forward(struct cm_series *self, int64_t iteration,
                            uint64_t bytes);

/* Nobody asked at the forwards before the last one: it has been kept for as
 * long as the series has held so much. */
void cm_series_note_unasked(struct cm_series *self, uint64_t bytes);

/* What came between these two were no iterations of the program's: a forward
 * in the second follows one in the first. */
void cm_series_skip_forwards(struct cm_series *self, int64_t first,
                             int64_t second);

size_t cm_series_count(const struct cm_series *self);
/* The point `number` from 0, oldest first; false: there is none. */
bool cm_series_get(const struct cm_series *self, size_t number,
                   struct cm_series_point *result);
/* The value in force; all zero for an empty series. */
struct cm_series_point cm_series_newest(const struct cm_series *self);
/* The forward that was noted `back` forwards before the last one; all zero
 * where there is none. */
struct cm_series_forward cm_series_forward(const struct cm_series *self,
                                           size_t back);

/* Constant time, at a boundary: can this series have grown, or lingered, and
 * is it time to ask for a verdict again?  False for what is flat, noise, or
 * settled, and more and more often for what was suspect before: then the last
 * verdict stands.  Growth that was told needs its verdict anyway: it may be
 * over. */
bool cm_series_suspect(struct cm_series *self, int64_t now);
/* Whether a next highest value would have come by now, at the pace of the last
 * ones. */
bool cm_series_pauses(const struct cm_series *self, int64_t now);

/* All series, by site and category.  Set max_series before the first use; the
 * rest zero is a valid empty table.  Series never move. */
struct cm_series_table {
    size_t max_series;
    uint64_t lost; /* calls refused: too many series, or no memory */
    struct cm_table entries;
    struct cm_index index;
};

void cm_series_table_release(struct cm_series_table *self);
/* The series of this site and category, made when it is new; borrowed.
 * CM_LIMIT, CM_NO_MEMORY: none, and counted as lost. */
enum cm_status cm_series_table_get(struct cm_series_table *self, uint32_t site,
                                   uint32_t category,
                                   struct cm_series **result) CM_CHECKED;
size_t cm_series_table_count(const struct cm_series_table *self);
/* The series `number` from 0, oldest first; NULL: there is none.  Borrowed. */
struct cm_series *cm_series_table_at(const struct cm_series_table *self,
                                     size_t number, uint32_t *site,
                                     uint32_t *category);

#endif
