/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_USE_H
#define CM_GROWTH_USE_H

/* Growth as the traced process tells it, into its document: the list of what
 * each line allocates, replaced as a whole at each look, and one point of the
 * timeline at a time.  Numbers that a file cannot hold are capped; lists are
 * bounded, what a person hears of comes first.
 *
 * A new text stays in the document for good: tell the list when a look brought
 * news, not at each iteration.  Not guarded: one thread at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/records.h"
#include "../graph/finding.h" // struct cm_place
#include "leak.h"

/* A rule of advice: it was gone when it was asked who holds it. */
#define CM_GROWTH_GIVEN_BACK "given back"

#define CM_GROWTH_MAX 1000
#define CM_GROWTH_MAX_HOLDERS 64 /* the first half and the last */
#define CM_GROWTH_MAX_NAMES 16
/* Points of a series: the last one, and others evenly between. */
#define CM_GROWTH_MAX_SERIES 400
#define CM_TIMELINE_MAX_POINTS 2000
#define CM_TIMELINE_MAX_DEVICES 64

/* Texts may be NULL. */
struct cm_holder_use {
    const char *annotation, *edge;
};

/* As struct cm_leak_growth; everything is borrowed.  Made by
 * cm_growth_use_init(). */
struct cm_growth_use {
    struct cm_site_id site;
    bool awaited;
    const char *category, *device, *verdict;
    const struct cm_holder_use *holder; /* from the root on */
    size_t holder_count;
    size_t holder_at; /* where they pile up; 0: not known */
    uint64_t retained_bytes;
    const struct cm_place *made_at;
    size_t made_at_count;
    double bytes_per_iteration, count_per_iteration;
    int64_t since_iteration;
    uint64_t bytes, count, peak_bytes;
    const int64_t (*series)[CM_LEAK_SERIES_NUMBERS];
    size_t series_count;
    uint64_t autograd_depth;
    double confidence;
    int64_t iterations_to_full;
    double seconds_to_full;
    const char *rule, *advice;
    const char *const *names;
    size_t name_count;
    const char *library_package, *library_link;
    bool bounded; /* its holder lets it grow to an end: no leak */
    bool unsure;  /* it may go on when what interrupts it is over */
    bool at_end;  /* its variables are gone: a cycle that died with them does
                  * not say who held it */
};
/* Nothing is known; the verdict is ok.  A long way loses its middle, so
 * holder_at is forgotten where it lies in that. */
void cm_growth_use_init(struct cm_growth_use *self);

/* Replaces the list; on failure it is as it was. */
enum cm_status cm_growth_set(struct cm_leak *leak,
                             const struct cm_records *records,
                             const struct cm_growth_use *items, size_t count)
    CM_CHECKED;

/* The live bytes of one device at the end of an iteration. */
struct cm_timeline_use {
    const char *device;
    const char *by; /* step, optimizer, time */
    int64_t iteration;
    double seconds; /* since the start */
    const char *const *categories;
    const uint64_t *bytes; /* of each */
    size_t category_count; /* CM_LEAK_MAX_CATEGORIES at most */
};
/* How many iterations of each device one point stands for. */
struct cm_timeline_rows {
    uint64_t seen[CM_TIMELINE_MAX_DEVICES], step[CM_TIMELINE_MAX_DEVICES];
};
/* Adds a point, or takes the place of the last one: with too many iterations
 * each point is the one of its neighbours with most bytes.  A point that lies
 * before the last one is left out. */
enum cm_status cm_timeline_add(struct cm_leak *leak,
                               struct cm_timeline_rows *rows,
                               const struct cm_timeline_use *point) CM_CHECKED;

#endif
