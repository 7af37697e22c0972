/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_AUTOGRAD_H
#define CM_AUTOGRAD_H

/* What stands behind tensors in C++: the graph of the backward pass, and what
 * its nodes keep.  Tensors and nodes are vertices; references of C++ are edges:
 *   grad_fn, next_functions[i], a leaf's variable, .grad, a view's base,
 *   saved tensors, hooks, and what hooks packed.
 *
 * Read from memory alone, through the kernel: nothing is called, unpacked or
 * computed again, and no object is made.  Bounded in vertices and in time, and
 * iterative.  What is not understood is no edge, and its vertex is `cut`.
 * Before each call: the GIL is held. */

#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../detector/heap.h"
#include "../../detector/index.h"
#include "../../detector/text.h"
#include "../torch/cpp_class.h"

enum cm_grad_link {
    CM_GRAD_FUNCTION = 0, /* tensor -> node */
    CM_GRAD_NEXT,         /* node -> node */
    CM_GRAD_SAVED,        /* node -> tensor */
    CM_GRAD_VARIABLE,
    CM_GRAD_GRADIENT,
    CM_GRAD_BASE,
    CM_GRAD_HOOKS,  /* C++ -> dict of Python hooks */
    CM_GRAD_TABLE,  /* the same, of a tensor's Python object */
    CM_GRAD_PACKED, /* -> what a pack hook made of a saved tensor */
    CM_GRAD_PACKER, /* -> the two hooks of saved tensors */
    CM_GRAD_LINKS
};

struct cm_grad_vertex {
    uint64_t address; /* of the TensorImpl or Node: identity */
    uint64_t counter; /* where its uses are counted; 0: not known */
    uint64_t object;  /* the Python object that stands for it; 0: none */
    uint64_t storage; /* of a tensor: its StorageImpl; 0: none */
    const struct cm_cpp_class *class; /* NULL: it is none of ours */
    uint32_t uses;                    /* by C++, the object's own too */
    uint32_t depth; /* of a node: how many on the longest way down */
    uint32_t first_edge, edge_count;
    bool cut; /* it may hold more than was seen */
};

struct cm_grad_edge {
    uint32_t tail;
    uint32_t head;   /* vertex; 0: a Python object that is neither */
    uint64_t object; /* the reference is to this object; 0: to C++'s own */
    uint32_t number; /* of next_functions */
    uint8_t link;    /* enum cm_grad_link */
};

/* A zeroed graph is a valid empty one. */
struct cm_grad_graph {
    struct cm_grad_vertex *vertices; /* owned; vertices[0] is unused */
    size_t vertex_count, vertex_capacity;
    struct cm_grad_edge *edges; /* owned; in order of their tails */
    size_t edge_count, edge_capacity;
    struct cm_index index;  /* of the vertices, by address */
    struct cm_index owners; /* of the vertices, by Python object */
    size_t read;            /* vertices whose edges are there */
    size_t max_vertices;
    uint64_t duration_ns; /* of this thread's own time; 0: no end */
    uint64_t until_ns;    /* 0: the clock was not asked yet */
    bool cut;             /* a bound was met */
};

/* Whether anything can be read here. */
bool cm_grad_ready(void);
void cm_grad_release(struct cm_grad_graph *self);
/* Every vertex and its memory is given up; the room is kept. */
void cm_grad_clear(struct cm_grad_graph *self);
/* The walk ends when this thread has worked for so long; 0: no end. */
void cm_grad_until(struct cm_grad_graph *self, uint64_t duration_ns);

/* The vertex of a tensor or of a grad_fn (a Function's context too); 0 when it
 * is neither, or beyond the bound. */
enum cm_status cm_grad_add(struct cm_grad_graph *self, PyObject *object,
                           uint32_t *result) CM_CHECKED;
/* Reads all that was added and all that is behind it. */
enum cm_status cm_grad_walk(struct cm_grad_graph *self) CM_CHECKED;
/* The vertex that this object stands for; 0: none.  Before: it was walked. */
uint32_t cm_grad_of(const struct cm_grad_graph *self, uint64_t object);
/* The vertex at this address of C++; 0: none. */
uint32_t cm_grad_at(const struct cm_grad_graph *self, uint64_t address);
/* May cm_grad_add() have an answer for objects of this type? */
bool cm_grad_concerns(PyTypeObject *type);
/* Is it worth adding?  A tensor that autograd knows nothing of has nothing
 * behind it: one look tells, where reading it would be a system call. */
bool cm_grad_leads(PyObject *object);
/* Is it a tensor that an operation made, which a backward pass would undo?  As
 * cheap as that. */
bool cm_grad_has_step(PyObject *object);
/* A tensor that nothing in Python holds any more: C++ does, as a graph that has
 * saved it, and keeps the object for whoever asks for it again. */
bool cm_grad_kept_by_cpp(PyObject *object);
/* References to this vertex from outside Python and outside the pair of it and
 * its object; -1: not known.  Those of Python are counted when `python`. */
int64_t cm_grad_uses(const struct cm_grad_vertex *vertex, bool python);
/* What such an edge is called. */
struct cm_text_id cm_grad_label(const struct cm_grad_edge *edge,
                                struct cm_texts *texts);

#endif
