/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_INNER_H
#define CM_INNER_H

/* Code of functions within functions: a hook that a method makes, what a
 * decorator puts in the place of a function.  It is a constant of the code
 * around it. */

#include "../objects/objects_private.h"

enum { CM_MOST_INNER = 65 };

/* [borrowed; never] This one, then that of the functions within it, and within
 * those; the outer ones first.  Answers how many. */
size_t cm_inner_codes(PyCodeObject *outer, PyCodeObject *found[CM_MOST_INNER]);

/* [none; never] Adds those within. */
void cm_inner_of(struct cm_objects *self, PyCodeObject *outer,
                 struct cm_code_id *codes, size_t *count, size_t capacity);

/* [none; never] The same of the program's own functions among the values of
 * these names, a module's or a class's; NULL: none. */
void cm_inner_find(struct cm_objects *self, PyObject *names,
                   struct cm_code_id *codes, size_t *count, size_t capacity);

#endif
