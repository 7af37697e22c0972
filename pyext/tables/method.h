/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_METHOD_H
#define CM_METHOD_H

/* A C function that Python calls through a PyMethodDef in a library's writable
 * data: every call reads the pointer there, also specialised ones, so that
 * another function can stand in its place.  Guarded by the GIL. */

#include <Python.h>

#include <stdbool.h>

/* Puts `ours` there; *original is what stood there.  False: it cannot be
 * written, and nothing is changed.  Before: ours has the same signature. */
bool cm_method_replace(PyMethodDef *method, PyCFunction ours,
                       PyCFunction *original);

#endif
