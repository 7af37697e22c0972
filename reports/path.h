/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PATH_H
#define CM_PATH_H

/* The way a person follows to understand a finding: from the object that owns
 * the cycle once round the cycle, back to it, then down to the largest
 * payload.  Containers and tables that say nothing are folded into the edge
 * that leads through them (".acts[0]").
 *
 * Texts are as they stand in the document: neither cleaned for a terminal nor
 * escaped for HTML. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leak.h"

struct cm_path_step {
    char *name;      /* owned: "Trainer", "cell self", "Tensor [64] float32" */
    char *edge;      /* owned: ".acts[0]", "" when it has no name to show */
    uint32_t vertex; /* that it names */
    uint32_t out;    /* edge it is left by; 0: the last step */
    uint32_t folded; /* vertices folded into `edge` */
    bool suspect;    /* the edge to cut is the one after this step: "~~>" */
    bool owner;      /* the object that owns the cycle (first, and again) */
};

struct cm_path {
    struct cm_path_step *steps; /* owned; none when no way was found */
    size_t count, capacity;
};

/* A zeroed path is a valid empty one. */
void cm_path_release(struct cm_path *self);

/* Finds paths in one document.  Not for use by two threads at once. */
struct cm_paths {
    const struct cm_leak *leak; /* borrowed, unchanged meanwhile */
    uint32_t *first;            /* owned: per vertex, where its edges start */
    uint32_t *by_tail;          /* owned: edge ids, ordered by tail */
    uint32_t *came_by;          /* owned: per vertex, edge of the search */
    uint32_t *seen;             /* owned: per vertex, stamp of the search */
    uint32_t *member;           /* owned: per vertex, stamp of the component */
    uint32_t *wanted;           /* owned: per storage, stamp of the payload */
    uint32_t *queue;            /* owned */
    uint32_t *route;            /* owned: edges, first to last */
    size_t route_count, route_capacity;
    size_t round_count;    /* edges of the route that go round the cycle */
    uint32_t stamp;        /* of this cycle's members and payload */
    uint32_t search_stamp; /* of this search's seen vertices */
};

/* Cost: O(vertices + edges) once.  `self` is zeroed before. */
enum cm_status cm_paths_init(struct cm_paths *self, const struct cm_leak *leak)
    CM_CHECKED;
void cm_paths_release(struct cm_paths *self);
/* Cost: O(what the cycle reaches), at most CM_PATH_MAX_VISITS vertices a
 * search.  `result` is zeroed before; empty after a failure. */
enum cm_status cm_paths_find(struct cm_paths *self, size_t cycle,
                             struct cm_path *result) CM_CHECKED;

#define CM_PATH_MAX_VISITS 100000

#endif
