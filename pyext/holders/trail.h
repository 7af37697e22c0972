/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TRAIL_H
#define CM_TRAIL_H

/* The way from a named root to an object, in the words of a person: objects
 * that only stand between a name and its value (instance dicts, tuples of
 * cells, the nodes of a context) are left out, and the middle of a long way.
 *
 * Steps borrow their objects: valid as long as the walk's (reach.h). */

#include "reach.h"

enum { CM_TRAIL_END = 24 }; /* steps kept at each end of a long way */

struct cm_step {
    struct cm_text_id annotation; /* what it is: "list of 17" */
    struct cm_text_id edge;       /* how the step before holds it: "[3]" */
    PyObject *object;             /* NULL: the root, or steps left out */
    uint32_t node;                /* of the walk; 0: as above */
    struct cm_type_id type;
    struct cm_code_id code; /* of a function, a frame or a generator */
    uint8_t species, role;
    bool counted;  /* `items` says something */
    bool bounded;  /* and the program has said how many at most */
    bool full;     /* so many are there; known of a deque alone */
    uint8_t cache; /* enum cm_holding_cache, or-ed */
    uint64_t items;
    uint64_t shown_bytes, memory_bytes; /* as graph/holding.h has them */
};

struct cm_trail {
    struct cm_step *steps; /* owned; [0] is the root */
    size_t count, capacity;
    const struct cm_root *root; /* borrowed */
};

/* A zeroed trail is a valid empty one.  After a failure it is empty. */
enum cm_status cm_trail_find(struct cm_trail *self,
                             const struct cm_reach *reach, uint32_t parent,
                             PyObject *target) CM_CHECKED;
void cm_trail_release(struct cm_trail *self);

/* Fills in the annotation "Tensor [64, 512] ...", the species and the bytes of a
 * step's object; false, and all is as it was, for what holds no device memory. */
bool cm_device_step(struct cm_devices *devices, struct cm_texts *texts,
                    struct cm_step *step);

/* What a container holds; false for what is none. */
bool cm_item_count(PyObject *object, uint64_t *items);

/* A deque that has as many items as it may have. */
bool cm_trail_is_full(PyObject *object);

#endif
