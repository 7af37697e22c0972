/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_CPP_CLASS_H
#define CM_CPP_CLASS_H

/* What C++ object lies at an address: the word before a virtual table leads to
 * the type's record, with its name and its base (the Itanium C++ ABI).  So a
 * pointer that was found in torch's memory is proved, or is none.
 *
 * All reads go through the kernel; nothing is called.  Guarded by the GIL. */

#include <stdbool.h>
#include <stdint.h>

enum cm_cpp_kind {
    CM_CPP_OTHER = 0,
    CM_CPP_NODE,        /* torch::autograd::Node, or derived from it */
    CM_CPP_ACCUMULATE,  /* its AccumulateGrad */
    CM_CPP_PYTHON_NODE, /* its PyNode: a Function written in Python */
    CM_CPP_TENSOR,      /* c10::TensorImpl, or derived from it */
    CM_CPP_UNDEFINED,   /* the TensorImpl that stands for none */
    CM_CPP_META,        /* a tensor's AutogradMeta */
    CM_CPP_VIEW_META,   /* the same of a view */
    CM_CPP_HOOK,        /* holds a dict of Python hooks */
    CM_CPP_SAVED_HOOKS, /* holds pack, unpack and what was packed */
};

struct cm_cpp_class {
    uint64_t vtable;
    uint8_t kind;  /* enum cm_cpp_kind */
    bool known;    /* all that it may hold is known to us */
    char name[48]; /* the last part: "MulBackward0" */
};

/* Of the object whose first word this is; NULL: of none that concerns us.
 * Valid for ever. */
const struct cm_cpp_class *cm_cpp_class_of(uint64_t vtable);
/* The same for the object at an address. */
enum cm_cpp_kind cm_cpp_kind_at(uint64_t address);
static inline bool
cm_cpp_is_node(enum cm_cpp_kind kind)
{
    return kind == CM_CPP_NODE || kind == CM_CPP_ACCUMULATE
           || kind == CM_CPP_PYTHON_NODE;
}

/* May this word be an address at all? */
static inline bool
cm_cpp_may_point(uint64_t word)
{
    return word >= 65536 && word < (UINT64_C(1) << 47) && (word & 7) == 0;
}

#endif
