/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SIEVE_H
#define CM_SIEVE_H

/* Comprehensions whose condition leaves items out: what they make of x is a
 * part of x.  Some turns of such a loop end before they add an item, so more
 * than one jump goes back to its head.  From 3.12 on a comprehension is a loop
 * of the code that it stands in, between an instruction that puts the loop's
 * variables aside and one that takes them back; before, and a generator
 * expression always, it is code of its own.  Needs no GIL. */

#include <Python.h>

#include <stdbool.h>

#include "bytecode.h"

/* The loop within a code, the outer one of two.  A zeroed value is valid. */
struct cm_sieve {
    PyObject *of; /* what it goes over; NULL: that has no name */
    Py_ssize_t head, end;
    unsigned jumps; /* back to its head */
};

/* The loop's variables are put aside; `of` has just been pushed, or NULL. */
void cm_sieve_begin(struct cm_sieve *self, PyObject *of, Py_ssize_t unit);
/* An instruction that takes the next item, and where it jumps to after the
 * last one. */
void cm_sieve_turn(struct cm_sieve *self, Py_ssize_t unit, Py_ssize_t end);
void cm_sieve_jump(struct cm_sieve *self, Py_ssize_t target);
/* The variables are taken back: NULL, or what the result is a part of. */
PyObject *cm_sieve_end(struct cm_sieve *self, Py_ssize_t unit);

/* Code of a comprehension or a generator expression, by its name. */
bool cm_sieve_is_comprehension(PyObject *code);
/* And its condition leaves items out. */
bool cm_sieve_leaves_out(const struct cm_bytecode *tables, PyObject *code);

#endif
