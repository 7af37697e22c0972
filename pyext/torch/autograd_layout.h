/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_AUTOGRAD_LAYOUT_H
#define CM_AUTOGRAD_LAYOUT_H

/* Where torch keeps the graph of a backward pass: learnt from small tensors on
 * the CPU by cumem._autograd, for the walk (autograd.h).  Offsets are in bytes.
 *
 * Objects are told by their C++ types (cpp_class.h), so that only the places
 * of what has no type of its own are learnt. */

#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CM_GRAD_META_WORDS = 32,
    CM_GRAD_NODE_WORDS = 128, /* with what its class adds */
    CM_GRAD_NONE = 0xFFFF,    /* an offset: torch has no such place */
    CM_GRAD_HOOK_WORDS = 10,  /* of a hook, at most */
};

struct cm_autograd_layout {
    size_t object_node; /* Python's view of a node -> Node */
    size_t impl_meta, impl_object;
    size_t meta_grad_fn, meta_grad;
    size_t view_base; /* of a view's meta; CM_GRAD_NONE */
    size_t edges, edge_bytes;
    size_t node_object, python_node_object;
    size_t node_depth; /* number of nodes on the longest way down */
    size_t node_end; /* where a class's own fields begin; a leaf's variable */
    size_t saved_bytes, saved_hooks, saved_grad_fn, saved_accumulator;
    size_t hook_bytes; /* from one object of a hook's three to the next: a
                        * pointer, or an optional (torch 2.15) */
    size_t function_node, function_saved; /* of a Function's context */
    bool counted_in_node;    /* the uses of a node, else beside the pointer */
    bool sized;              /* a block's size stands before it */
    bool has_uses;           /* uses of nodes and tensors are both known */
    bool tensors_are_mutual; /* a TensorImpl with more uses than its object's
                              * holds the object too; else one of the two
                              * holds the other */
    bool nodes_are_mutual;
    bool functions_count; /* as a use of their node; else, up to torch 2.12, a
                           * Function's context refers to it weakly, and is
                           * held by it */
    PyTypeObject *function;     /* owned: torch._C._FunctionBase */
    traverseproc node_traverse; /* of every other grad_fn */
};

static inline size_t
cm_grad_hook_words(size_t hook_bytes)
{
    return 1 + 3 * hook_bytes / 8;
}

/* What packs (0), what unpacks (1) and what was packed (2), by the words of a
 * hook; 0: an optional that holds nothing, whose value nobody wrote. */
static inline uint64_t
cm_grad_hook_object(const uint64_t *words, size_t hook_bytes, size_t which)
{
    size_t each = hook_bytes / 8;
    const uint64_t *at = words + 1 + which * each;
    return each == 1 || (at[each - 1] & 0xFF) == 1 ? at[0] : 0;
}

/* NULL: not learnt, and why. */
const struct cm_autograd_layout *cm_autograd_learnt(const char **reason);
void cm_autograd_unlearn(void);

/* [new or none; raises] for cumem._autograd:
 *   ("learn", {name: number}, function_type)  finds the layout or raises
 *   ("uses", grad_fn)        uses of the node that its first edge leads to
 *   ("ready", uses, tensors_are_mutual, nodes_are_mutual,
 *    functions_count)
 *   ("layout")               what was learnt, by name
 *   ("doubt")                forgets it, and raises */
PyObject *cm_autograd_probe(PyObject *module, PyObject *args);

#endif
