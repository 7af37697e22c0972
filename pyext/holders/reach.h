/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_REACH_H
#define CM_REACH_H

/* How objects are reached from named roots: breadth first over what
 * tp_traverse shows, all of the user's roots before any library's, those
 * before the interpreter's own.  The first way that is found to an object is
 * a shortest one among those of its rank.
 *
 * Runs no code of the program, writes nothing to its heap, keeps no object;
 * everything is borrowed and holds until the GIL is given away.  A node is an
 * object that was met, in the order of meeting: the parent of a node has a
 * smaller number.  Node 0 is none. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../frameworks/devices.h"
#include "../collector/gc_list.h"
#include "links.h"
#include "../tables/page_table.h"
#include "roots.h"
#include "seconds.h"
#include "wave.h"

/* One of what lies between two objects, and how the one before holds it. */
typedef void cm_between(void *argument, struct cm_text_id what,
                        struct cm_text_id edge);

/* References that no tp_traverse shows: those of autograd. */
struct cm_more {
    void *context;
    void (*show)(void *context, PyObject *object, visitproc visit,
                 void *argument);
    /* Tells what lies between these two, and what the last of it (or `object`
     * itself) calls `referent`; false: the reference is none of these. */
    bool (*between)(void *context, PyObject *object, PyObject *referent,
                    cm_between *tell, void *argument,
                    struct cm_text_id *label);
};

struct cm_reach_bounds {
    size_t max_nodes;
    size_t max_edges;     /* 0: references are not kept */
    uint64_t max_time_ns; /* of this thread */
};

struct cm_reach_hit {
    uint32_t target; /* index into the targets */
    uint32_t parent; /* a node, or CM_FROM_ROOT */
    uint8_t rank;    /* of the root */
    bool passed;     /* a variable of the code that asks */
};

enum { CM_REACH_DELAY = 32 };

struct cm_reach {
    /* Set before cm_reach_run(). */
    const struct cm_roots *roots; /* borrowed, as all here */
    struct cm_devices *devices;   /* may be NULL */
    const struct cm_more *more;   /* may be NULL */
    struct cm_reach_bounds bounds;
    PyObject *const *targets;
    uint32_t target_count;
    uint32_t ways; /* wanted of each target, by different referrers */
    /* A person asks after one target: it is not looked into, and variables of
     * the code that asks are no answer (`passed`). */
    bool asked;
    PyObject *const *hidden; /* not looked into: the asker's own lists */
    size_t hidden_count;

    /* What was found. */
    PyObject **objects; /* owned; [node_count + 1] */
    uint32_t *parents;  /* owned; the same */
    uint32_t node_count;
    uint32_t *target_nodes;    /* owned; [target_count]; 0: not reached */
    struct cm_reach_hit *hits; /* owned; nearest first in each rank */
    size_t hit_count;
    struct cm_links links;
    uint32_t nodes_left; /* met, not looked into */
    bool cut;            /* a bound was met */

    /* Private to reach.c. */
    size_t object_capacity, parent_capacity, hit_capacity;
    struct cm_seconds seconds; /* of some nodes: see cm_reach_second() */
    struct cm_page_table table;
    struct cm_page_cursor cursor;  /* of the referent before */
    struct cm_objects_array unmet; /* owned; see unmet.h */
    struct cm_wave waves[CM_RANKS];
    uint32_t *target_ways; /* owned */
    uint32_t *met_targets; /* owned: those met, in order of their nodes */
    uint32_t met_count;
    uint32_t *next_same; /* owned: next target of the same address */
    struct {
        uint32_t *slot;
        PyObject *object;
        uint32_t parent;
    } delayed[CM_REACH_DELAY];
    unsigned delayed_at;
    uint32_t rank, parent, met;
    uint32_t module_nodes;         /* modules and their dicts: nodes 1.. */
    const PyTypeObject *last_type; /* the one asked for last, and the answer */
    bool claimed;
    PyTypeObject
        *arrays; /* numpy.ndarray, which no collector walks; or NULL */
    bool passed;
    uint64_t start_ns;
    enum cm_status status;
};

/* Before: `self` is zeroed but for what is set.  After a failure: empty. */
enum cm_status cm_reach_run(struct cm_reach *self) CM_CHECKED;
void cm_reach_release(struct cm_reach *self);
/* Of a node that a variable refers to, the first object that does so too; else
 * 0. */
uint32_t cm_reach_second(const struct cm_reach *self, uint32_t node);

#endif
