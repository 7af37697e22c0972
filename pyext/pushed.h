/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PUSHED_H
#define CM_PUSHED_H

#include <Python.h>

#include <stdbool.h>

/* What an instruction pushed: at most one of the first two is set. */
struct pushed {
    PyObject *name;
    PyObject *constant;
    PyObject *within; /* of an item: the name of what it was taken from */
    bool fresh;       /* it opens a statement */
    bool attribute;   /* the name is no variable's: the last one of y.x */
    bool empty;       /* a new container without items */
    bool made;        /* by a call, or a container that is written out */
    bool slice;       /* a:b */
    bool part;        /* x[a:b] of `of` */
    bool few;         /* 0 or 1 */
    bool length;      /* len(x) of `of` */
    PyObject *of;     /* x of these two; NULL: what has no name */
    PyObject *called; /* a method: its name */
};

/* From 3.14 on a constant one is a constant. */
static inline bool
cm_is_slice(const struct pushed *key)
{
    return key->slice
           || (key->constant != NULL && PySlice_Check(key->constant));
}

/* 0 or 1; needs no GIL. */
static inline bool
cm_is_few(PyObject *constant)
{
    int overflow = 0;
    long number = constant != NULL && PyLong_CheckExact(constant)
                      ? PyLong_AsLongAndOverflow(constant, &overflow)
                      : 2;
    return overflow == 0 && number < 2;
}

#endif
