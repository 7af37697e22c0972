/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FREEZER_H
#define CM_FREEZER_H

/* The freezer's own state, for choose.c (what is worth copying) and freeze.c
 * (copying it) alone. */

#include "autograd.h"
#include "freeze.h"

#include <string.h>
#include <time.h>

#define CM_NOT_CHOSEN UINT32_MAX

/* PRESERVED: a device-backed object that garbage refers to and the collector
 * takes for reachable: it is in an older generation, or its framework's C++
 * side holds a reference to it.  DOUBTED: dead if what C++ holds of it is: only
 * the walk through autograd tells. */
enum { CM_DEVICE = 1, CM_KEPT = 2, CM_PRESERVED = 4, CM_DOUBTED = 8 };

struct place {
    PyObject *object;
    uint32_t position;
};

struct link {
    uint32_t tail, head;
};

struct cm_freezer {
    struct cm_objects *objects; /* borrowed, as the two below */
    struct cm_devices *devices;
    struct cm_records *records;
    /* Scratch of one freeze, kept for the next.  Owned. */
    PyObject **chosen;
    size_t chosen_count, chosen_capacity;
    uint8_t *flags;
    size_t flag_capacity;
    struct place *map;
    size_t map_capacity; /* in use: a power of two, or 0 */
    size_t map_room;     /* of the memory behind it */
    struct link *links;
    size_t link_count, link_capacity;
    uint32_t *starts, *tails, *queue, *node_of;
    size_t start_capacity, tail_capacity, queue_capacity, node_capacity;
    size_t kept_count, device_count;
    size_t device_total; /* device-backed in all the garbage */
    /* What stands in C++ behind the kept ones: autograd_freeze.c. */
    struct cm_grad_graph grad;
    uint8_t *vertex_marks;
    uint32_t *vertex_node; /* in the heap; 0: not copied */
    size_t mark_capacity, vertex_capacity;
    uint32_t *orders; /* per storage: order of its first object */
    size_t order_count, order_capacity;
    /* Of the freeze under way. */
    struct cm_heap *heap;
    const struct cm_freeze_bounds *bounds;
    uint64_t start_ns;
    bool limited;           /* by time */
    uint64_t bytes_at_hand; /* of the device-backed among the chosen */
    uint64_t bytes_copied;
    uint32_t current;
    PyObject *tail; /* borrowed: whose references are being copied */
    enum cm_status status;
};

/* Percent of the time after which each pass must leave the rest to the next. */
enum {
    CM_CHOOSE_UNTIL = 15, /* later passes always look at some objects */
    CM_CONNECT_UNTIL = 35,
    CM_NODES_UNTIL = 70,
    CM_EDGES_UNTIL = 100
};
/* Once there is something to look at: asking the kernel for a thread's own time
 * takes as long as a collection without. */
void cm_freezer_begin(struct cm_freezer *self,
                      const struct cm_garbage *garbage);
bool cm_freezer_out_of_time(const struct cm_freezer *self, size_t done,
                            uint64_t percent);

/* Passes 1 to 3: fills chosen, flags and map, and queue[0..kept_count).
 * device_count is 0 when there is nothing to copy. */
enum cm_status cm_freezer_choose(struct cm_freezer *self,
                                 const struct cm_garbage *garbage) CM_CHECKED;
uint32_t cm_freezer_position(const struct cm_freezer *self, PyObject *object);

/* Follows autograd from the kept objects; before their nodes are copied. */
enum cm_status cm_freezer_walk(struct cm_freezer *self) CM_CHECKED;
/* Once it was walked: C++ has no use of this tensor but by what is dead. */
bool cm_freezer_is_dying(const struct cm_freezer *self, PyObject *object);
/* Takes back the doubted that live on and keeps anew; how many those were. */
enum cm_status cm_freezer_settle(struct cm_freezer *self, size_t *lived_on)
    CM_CHECKED;
/* Once the kept objects have their nodes: those behind them in C++. */
enum cm_status cm_freezer_copy_vertices(struct cm_freezer *self) CM_CHECKED;
/* The references that C++ has on this object's behalf. */
enum cm_status cm_freezer_copy_links(struct cm_freezer *self, PyObject *object)
    CM_CHECKED;
/* Of all that is no object, whose nodes come after this one. */
enum cm_status cm_freezer_copy_all_links(struct cm_freezer *self,
                                         uint32_t last_of_python) CM_CHECKED;
/* Label, bytes and storage of a TensorImpl that no object stands for. */
enum cm_status cm_freezer_describe_memory(
    struct cm_freezer *self, uint64_t impl,
    const struct cm_device_memory *memory, struct cm_node *node) CM_CHECKED;

#endif
