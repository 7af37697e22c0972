/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TRIAL_H
#define CM_TRIAL_H

/* Trial deletion over a set of objects: which of them are referenced only
 * from each other?  The collector's own method, with the counts kept beside
 * the heap and nothing changed in it.
 *
 * Errs on the side of "referenced from outside": references that tp_traverse
 * does not show, objects at odd addresses and counts that cannot be right all
 * make an object stay.
 *
 * Before: the GIL is held, from cm_trial_begin to the last question. */

#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "page_table.h"

/* A zeroed trial is a valid empty one. */
struct cm_trial {
    struct cm_page_table table;
    PyObject **pending; /* owned: marked, not yet traversed */
    size_t pending_count, pending_capacity;
    uint64_t negative; /* objects shown more often than they are counted */
    bool no_memory;
};

void cm_trial_release(struct cm_trial *self);

/* Counts what is left of each object's references after those from inside the
 * set and `bias` (references of the caller's own) are taken off. */
enum cm_status cm_trial_begin(struct cm_trial *self, PyObject *const *objects,
                              size_t count, Py_ssize_t bias) CM_CHECKED;
/* True when something outside the set refers to it (or may). */
bool cm_trial_held(const struct cm_trial *self, PyObject *object);
/* Marks this object and all that it reaches inside the set. */
enum cm_status cm_trial_mark(struct cm_trial *self, PyObject *object)
    CM_CHECKED;
/* cm_trial_mark for every object that is held. */
enum cm_status cm_trial_mark_held(struct cm_trial *self,
                                  PyObject *const *objects, size_t count)
    CM_CHECKED;
bool cm_trial_marked(const struct cm_trial *self, PyObject *object);

#endif
