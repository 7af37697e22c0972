/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FREEZE_H
#define CM_FREEZE_H

/* From a collection's garbage to a frozen heap: what leads to device memory,
 * and nothing else.  Native memory only; bounded in objects and in time; what
 * a bound left out is counted in the heap. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "../../detector/heap.h"
#include "../frameworks/devices.h"
#include "../collector/interceptor.h"
#include "../objects/objects.h"

struct cm_freeze_bounds {
    size_t max_objects;   /* garbage objects whose references are read */
    size_t max_nodes;     /* objects copied with names */
    uint64_t max_time_ns; /* with what the garbage costs besides */
};

/* A collection, or a look that nobody asked for, may be held up by at most this
 * much (DESIGN.md section 7). */
extern const struct cm_freeze_bounds cm_freeze_in_collection;

struct cm_freezer;

/* All arguments are borrowed and outlive the result. */
struct cm_freezer *cm_freezer_new(struct cm_objects *objects,
                                  struct cm_devices *devices,
                                  struct cm_records *records);
void cm_freezer_free(struct cm_freezer *self);

/* Before: `heap` is zeroed.  After: empty (node_count 0) when no garbage object
 * holds device memory; else sealed.  CM_NO_MEMORY: heap is empty. */
enum cm_status cm_freeze(struct cm_freezer *self,
                         const struct cm_garbage *garbage,
                         const struct cm_freeze_bounds *bounds,
                         struct cm_heap *heap) CM_CHECKED;

/* Was this object among the dead of the freeze done last?  Valid until the
 * next one; for cm_fate_foretell(). */
bool cm_freezer_knows_dead(void *freezer, PyObject *object);
/* Is all in its heap that C++ holds on behalf of these dead?  In the same way. */
bool cm_freezer_saw_all(void *freezer);

#endif
