/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LURE_H
#define CM_LURE_H

/* Two objects that refer only to themselves: tracked, they are garbage in the
 * next collection of their generation.  The first has a weak reference, whose
 * callback the collector calls when it has found the unreachable set, before
 * any finalizer or tp_clear; the twin proves a walk of that set.
 *
 * Not for free-threaded builds, which have none of it.  Guarded by the GIL. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "gc_hook.h"
#include "gc_list.h"

/* Ours, which no report may name. */
bool cm_lure_owns(const PyObject *object);

#ifndef Py_GIL_DISABLED

struct cm_lure {
    /* Called within a collection, when the pair is garbage in it. */
    void (*caught)(struct cm_lure *self);
    void *context;
    PyObject *first, *twin; /* owned by themselves; NULL: not made yet */
    PyObject *waker;        /* owned: the weak reference's callback */
    PyObject *weak;         /* owned; NULL: never armed */
    bool awake;             /* `weak` has not been called yet */
    bool keeps_time;        /* cm_lure_traversed() will be asked */
};

struct cm_lure_types {
    PyTypeObject *pair, *waker; /* owned */
};

/* [0 or -1; raises] */
int cm_lure_types_make(struct cm_lure_types *self, PyObject *module);
void cm_lure_types_release(struct cm_lure_types *self);

/* Before: `caught`, `context` and `keeps_time` are set, all else is zeroed, or
 * made before.
 * [0 or -1; raises] */
int cm_lure_make(struct cm_lure *self, const struct cm_lure_types *types);
/* The weak reference, tracked, will be called the next time that the pair is
 * garbage.  It is always the same one: the collector may be just calling it, or
 * be about to, and goes on with it as with any that lives on.  (On 3.12 another
 * collection that begins before it is called takes it away from the first one,
 * which then never drops its reference: it and the waker outlive us.)
 * [0 or -1; raises] */
int cm_lure_wake(struct cm_lure *self);
/* Tracks the pair, also anew: first in the list of `head`, NULL: last in the
 * youngest. */
void cm_lure_track(struct cm_lure *self, struct cm_gc_head *head);
void cm_lure_untrack(struct cm_lure *self);
void cm_lure_release(struct cm_lure *self);

static inline bool
cm_lure_is_first(const struct cm_lure *self, const struct cm_gc_head *head)
{
    return cm_gc_next(head) == cm_gc_of(self->first);
}

/* When the collection began that caught the pair, in ticks. */
uint64_t cm_lure_traversed(const struct cm_lure *self);

#endif
#endif
