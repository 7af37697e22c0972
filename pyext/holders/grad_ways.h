/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GRAD_WAYS_H
#define CM_GRAD_WAYS_H

/* Ways through autograd for a walk over the heap (reach.h): which Python
 * objects a tensor or a step of the backward pass holds in C++, and what lies
 * between.  One graph for the whole walk, read as it is met; a step that no
 * Python object stands for leads on from the first one that holds it.
 *
 * As autograd.h: reads memory, calls nothing, unpacks nothing. */

#include "../frozen/autograd.h"
#include "reach.h"

/* Zeroed, but for the texts; then cm_grad_ways_more(). */
struct cm_grad_ways {
    struct cm_texts *texts; /* borrowed */
    struct cm_grad_graph graph;
    uint8_t *shown; /* owned; by vertex */
    size_t shown_capacity;
    uint32_t *waiting; /* owned */
    size_t waiting_capacity;
    const PyTypeObject *last_type; /* the one asked for last, and the answer */
    bool concerns;
    enum cm_status status;
};

/* What reach.h wants; `self` stays where it is as long as that is used. */
struct cm_more cm_grad_ways_more(struct cm_grad_ways *self);
void cm_grad_ways_release(struct cm_grad_ways *self);

#endif
