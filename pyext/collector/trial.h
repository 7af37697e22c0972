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

#include "../tables/page_table.h"
#include "many.h"

enum { CM_DELAY = 32 };

/* A reference whose slot was asked for, and is looked at some references
 * later, when it has come from memory. */
struct cm_delayed {
    uint8_t *slot;
    PyObject *object;
};

/* References that tp_traverse does not show.  False: go by that alone. */
struct cm_trial_more {
    bool (*traverse)(void *context, PyObject *object, visitproc visit,
                     void *argument);
    void *context;
};

/* A zeroed trial is a valid empty one.  Use: add each object, then take_off,
 * then mark_held (and mark), then ask. */
struct cm_trial {
    struct cm_page_table table;
    struct cm_page_cursor cursor; /* of cm_trial_add */
    struct cm_many many;          /* whose count takes more than its slot */
    const PyObject *last_many;    /* of these, who was met last; or NULL */
    int64_t *last_left;
    PyObject **pending; /* owned: marked, not yet traversed */
    size_t pending_count, pending_capacity;
    struct cm_delayed delayed[CM_DELAY]; /* a ring */
    unsigned delayed_at;
    size_t count, marked;             /* objects in the set, and marked ones */
    const struct cm_trial_more *more; /* borrowed; may be NULL */
    uint64_t negative; /* objects shown more often than they are counted */
    bool no_memory;
};

void cm_trial_release(struct cm_trial *self);

/* Adds an object to the set; `bias` references to it are the caller's own. */
enum cm_status cm_trial_add(struct cm_trial *self, PyObject *object,
                            Py_ssize_t bias) CM_CHECKED;
/* The same for one whose references are counted by somebody else, and who need
 * be no Python object when `more` knows it.  Below 0: not known, it stays. */
enum cm_status cm_trial_add_counted(struct cm_trial *self, PyObject *object,
                                    int64_t references) CM_CHECKED;
/* Takes the references from inside the set off each count.  Before:
 * `objects` are those that were added. */
void cm_trial_take_off(struct cm_trial *self, PyObject *const *objects,
                       size_t count);
/* Does something outside the set refer to this object of it?  Before:
 * cm_trial_take_off, and nothing is marked. */
bool cm_trial_held(const struct cm_trial *self, PyObject *object);
/* Marks what something outside the set refers to (or may), and all that this
 * reaches.  Before: cm_trial_take_off with the same objects; once. */
enum cm_status cm_trial_mark_held(struct cm_trial *self,
                                  PyObject *const *objects, size_t count)
    CM_CHECKED;
/* Marks this object and all that it reaches inside the set.  Before:
 * cm_trial_mark_held. */
enum cm_status cm_trial_mark(struct cm_trial *self, PyObject *object)
    CM_CHECKED;
bool cm_trial_marked(const struct cm_trial *self, PyObject *object);

#endif
