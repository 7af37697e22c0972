/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_UNNAMED_H
#define CM_UNNAMED_H

/* Names for references that C code holds and no reader of edges.c names: what
 * is in an lru_cache, in a context, in threading.local, in a function's
 * defaults.  Everything is borrowed. */

#include "objects_private.h"

/* Constants; NULL: not known. */
const char *cm_unnamed_field(PyObject *tail, PyObject *head);
/* The field of a threading.local that has a dict for each thread. */
extern const char cm_unnamed_threads[];
/* A node of a context's table, or the table. */
bool cm_unnamed_is_hamt(const PyObject *object);
/* "contextvar trace"; id 0: `tail` is no part of a context. */
struct cm_text_id cm_unnamed_variable(struct cm_texts *texts, PyObject *tail,
                                      PyObject *head);
/* The function whose results an lru_cache keeps; NULL: it is none, or wraps
 * something else. */
PyObject *cm_unnamed_cached(const struct cm_objects *objects,
                            PyObject *object);
/* What is known of an lru_cache: enum cm_holding_cache, or-ed. */
uint8_t cm_unnamed_cache(const struct cm_objects *objects, PyObject *object);
/* Whether it keeps results up to a number that the program has given; a
 * method's keeps every self besides, and is told where they are many. */
bool cm_unnamed_is_bounded(const struct cm_objects *objects, PyObject *object);
/* The parameter that has this value of the function's __defaults__. */
PyObject *cm_unnamed_parameter(PyObject *function, PyObject *defaults,
                               PyObject *value);

#endif
