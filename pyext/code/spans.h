/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SPANS_H
#define CM_SPANS_H

/* Which stores a jump spans, while bytecode.c reads them: those of a loop, and
 * those that a comparison decides on.  Needs no GIL. */

#include <Python.h>

#include <stdbool.h>

#include "../../detector/records.h"

enum {
    CM_SPANS_OPEN = 4,
    CM_SPANS_NAMES = 32,
    CM_SPANS_LOOPS = 16,
    CM_SPANS_EXITS = 32,
    CM_SPANS_RETURNS = 16,
    CM_SPANS_READ = 0,
    CM_SPANS_SET = 1
};

/* A zeroed value is valid. */
struct cm_spans {
    uint32_t marks;      /* stores that were looked at for loops */
    Py_ssize_t handlers; /* the first of them: all stand behind the rest */
    struct {
        Py_ssize_t first;  /* where it begins */
        Py_ssize_t next;   /* behind where it goes on, last */
        Py_ssize_t end;    /* of that and the loops that begin in it */
        Py_ssize_t behind; /* where the program goes on after it */
    } loops[CM_SPANS_LOOPS];
    uint32_t loop_count;
    struct {
        Py_ssize_t at, target;
        bool returns;        /* a value, there and at once */
    } exits[CM_SPANS_EXITS]; /* of loops and others: jumps ahead */
    uint32_t exit_count;
    Py_ssize_t returns[CM_SPANS_RETURNS]; /* where a value is returned */
    uint32_t return_count;
    Py_ssize_t straight; /* since here no jump */
    struct {
        Py_ssize_t target; /* where it jumps to */
        uint32_t store;    /* what was measured before that */
    } open[CM_SPANS_OPEN];
    uint32_t open_count;
    struct {
        const PyObject *name;
        uint32_t times[2]; /* the last one, 1 + the instruction; 0: none */
    } names[CM_SPANS_NAMES];
    uint32_t name_count;
};

/* A variable is read, or set by the store. */
void cm_spans_read(struct cm_spans *self, const PyObject *name,
                   Py_ssize_t unit);
void cm_spans_set(struct cm_spans *self, struct cm_store *store,
                  const PyObject *name);
/* Once the code is read: what the store kept for a loop to come. */
void cm_spans_forget(struct cm_store *store);

/* All stores from where it jumps to are repeated, and carry a variable over to
 * the next turn unless that sets it before it reads it. */
void cm_spans_loop(struct cm_spans *self, struct cm_store *stores,
                   uint32_t count, Py_ssize_t next, unsigned argument);
/* What stands between here and the target depends on the last store. */
void cm_spans_branch(struct cm_spans *self, uint32_t count, Py_ssize_t target);
/* A jump ahead, perhaps out of a loop. */
void cm_spans_exit(struct cm_spans *self, Py_ssize_t at, Py_ssize_t target);
/* A value is returned here. */
void cm_spans_return(struct cm_spans *self, Py_ssize_t unit);
/* Once the code is read, before the first cm_spans_find(). */
void cm_spans_close(struct cm_spans *self);
/* How many loops are around this store, and whether the innermost may return a
 * value behind it. */
void cm_spans_find(const struct cm_spans *self, struct cm_store *store);
/* This instruction is reached; `leaves`: not by the one before, which returns,
 * raises or continues. */
void cm_spans_reach(struct cm_spans *self, struct cm_store *stores,
                    uint32_t count, Py_ssize_t unit, bool leaves);

#endif
