/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_INNER_H
#define CM_INNER_H

/* Code of functions within functions: a hook that a method makes, what a
 * decorator puts in the place of a function.  It is a constant of the code
 * around it. */

#include "../objects/objects_private.h"

/* [none; never] Adds that of the functions within this one, and within those;
 * the outer ones first, and at most 64. */
void cm_inner_of(struct cm_objects *self, PyCodeObject *outer,
                 struct cm_code_id *codes, size_t *count, size_t capacity);

/* [none; never] The same of the program's own functions among the values of
 * these names, a module's or a class's; NULL: none. */
void cm_inner_find(struct cm_objects *self, PyObject *names,
                   struct cm_code_id *codes, size_t *count, size_t capacity);

#endif
