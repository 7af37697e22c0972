/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_AUTOGRAD_BEHIND_H
#define CM_AUTOGRAD_BEHIND_H

/* How much stands behind a tensor, and what of it goes with the tensor. */

#include "autograd.h"
#include "../frameworks/reader.h"

struct cm_autograd_storage {
    struct cm_device_memory memory;
    uint32_t uses_here; /* by tensors that go */
    bool leaf; /* of a variable that gradients are made for, or its gradient */
};

struct cm_autograd_behind {
    uint64_t nodes;  /* steps of the backward pass, each once */
    uint64_t length; /* of them, on the longest way from the tensor to a leaf;
                      * torch counts it, so it is whole when the rest is cut */
    struct cm_autograd_storage *storages; /* owned; without the tensor's own */
    size_t storage_count;
    uint64_t bytes;    /* of storages that are no leaf's */
    uint64_t retained; /* of these, what goes when the tensor goes */
    bool cut;          /* a bound was met, or something was not understood */
};

struct cm_autograd_bounds {
    size_t max_vertices;
    uint64_t max_time_ns; /* of this thread's own time; 0: no end */
};

/* False: nothing can be read on this torch (cm_autograd_learnt() says why), or
 * the object is no tensor and no grad_fn, or no memory was left. */
bool cm_autograd_behind(PyObject *object,
                        const struct cm_autograd_bounds *bounds,
                        struct cm_autograd_behind *result);
void cm_autograd_behind_release(struct cm_autograd_behind *self);

/* Marks in `dying` ([vertex_count + 1], zeroed) each vertex all of whose uses
 * come from vertices that are dying, or from objects that are dead: is_dead
 * says so.  What is not known, or not read, lives. */
enum cm_status cm_grad_find_dying(const struct cm_grad_graph *graph,
                                  bool (*is_dead)(void *context,
                                                  uint64_t object),
                                  void *context, uint8_t *dying) CM_CHECKED;

/* [new; raises] (tensor, most_vertices=4000000) -> {"nodes", "length",
 * "bytes", "retained", "cut", "storages": [(address, bytes, device, leaf,
 * goes)]}; None: see status(). */
PyObject *cm_autograd_behind_of(PyObject *module, PyObject *args);

#endif
