/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_AUTOGRAD_PRIVATE_H
#define CM_AUTOGRAD_PRIVATE_H

/* For autograd.c (the graph) and autograd_read.c (one vertex) alone. */

#include "autograd.h"
#include "../torch/autograd_layout.h"
#include "../torch/torch_layout.h"

enum { CM_GRAD_MOST_EDGES = 1 << 16 };

/* One vertex under way. */
struct cm_grad_reading {
    struct cm_grad_graph *graph;
    const struct cm_autograd_layout *layout;
    const struct cm_torch_layout *torch;
    uint32_t tail;
    enum cm_status status;
};

/* Finds the vertex or adds it; 0: beyond the bound. */
enum cm_status cm_grad_vertex_add(struct cm_grad_graph *self, uint64_t address,
                                  uint64_t counter, uint32_t *result)
    CM_CHECKED;
/* The vertex under way is what this object stands for. */
void cm_grad_set_object(struct cm_grad_reading *self, uint64_t object);
uint64_t cm_grad_tensor_counter(const struct cm_grad_reading *self,
                                uint64_t impl);
/* `control` is the word after the pointer. */
uint64_t cm_grad_node_counter(const struct cm_grad_reading *self,
                              uint64_t node, uint64_t control);
bool cm_grad_is_subtype(PyTypeObject *type, PyTypeObject *base);
/* The C++ object behind this one; 0: it is no tensor's and no node's. */
uint64_t cm_grad_behind(const struct cm_grad_reading *self, PyObject *object,
                        uint64_t *counter);
/* Reads the vertex `tail`, and adds its edges and what they lead to. */
void cm_grad_read(struct cm_grad_reading *self);

#endif
