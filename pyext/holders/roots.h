/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ROOTS_H
#define CM_ROOTS_H

/* Where a person starts to look for what keeps an object alive: modules, the
 * running functions of every thread, exceptions, contexts.  Each root has a
 * name and a rank: what a user wrote comes first, libraries next, the
 * interpreter's own tables and cumem last.
 *
 * Borrows everything and is valid only as long as the GIL is not given away.
 * A running frame is read only where its layout is proven (objects.h); its own
 * frames cumem leaves out. */

#include "../objects/objects_private.h"

enum cm_rank {
    CM_RANK_USER = 0,
    CM_RANK_LIBRARY,
    CM_RANK_INTERNAL,
    CM_RANK_C,    /* what no other root leads to: C code holds it, */
    CM_RANK_DEAD, /* or nobody does */
    CM_RANKS
};

enum cm_root_kind {
    CM_ROOT_MODULE,    /* `object` is the module */
    CM_ROOT_FRAME,     /* the variables of a running frame */
    CM_ROOT_TEMPORARY, /* what that frame is computing with */
    CM_ROOT_VALUE,     /* `object`, known as `edge` */
    CM_ROOT_UNMET,     /* the last two roots: C code, and nobody */
};

struct cm_root {
    enum cm_root_kind kind;
    enum cm_rank rank;
    PyObject *object;                 /* NULL for a frame */
    const struct cm_raw_frame *frame; /* of a frame */
    struct cm_text_id name;           /* "module train", "train.py:80 main" */
    struct cm_text_id edge;           /* of a value: "last exception" */
    struct cm_code_id code;           /* of a frame */
};

/* A zeroed value is valid and empty. */
struct cm_roots {
    struct cm_objects *objects; /* borrowed */
    struct cm_root *items;      /* owned */
    size_t count, capacity;
    size_t caller;          /* 1 + the frame that called us; 0: none */
    PyObject *caller_names; /* its dict where that holds its variables */
    uint32_t frames_unread; /* threads whose stack could not be read */
};

/* After a failure `self` is empty. */
enum cm_status cm_roots_find(struct cm_roots *self, struct cm_objects *objects)
    CM_CHECKED;
void cm_roots_release(struct cm_roots *self);

/* [borrowed] The first variable from *at on of a frame that refers to it, *at
 * is then the next one; NULL: none. */
PyObject *cm_root_variable(const struct cm_root *self, PyObject *referent,
                           Py_ssize_t *at);
/* Shows each object that the root refers to. */
void cm_root_visit(const struct cm_root *self, visitproc visit, void *context);
/* What the root calls it.  Before: cm_root_visit() shows it. */
struct cm_text_id cm_root_edge(const struct cm_roots *self,
                               const struct cm_root *root, PyObject *referent,
                               enum cm_role *role);
/* [borrowed; never] The module of this name; NULL: it is not imported. */
PyObject *cm_roots_module(const struct cm_roots *self, const char *name);
/* Whether a class is one of the user's: by the module that it names. */
bool cm_roots_own_type(const struct cm_roots *self, PyTypeObject *type);

#endif
