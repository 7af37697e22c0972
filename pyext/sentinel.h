/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SENTINEL_H
#define CM_SENTINEL_H

#include <Python.h>

#include <stdbool.h>

/* The sentinel's own objects, which no report may name. */
bool cm_sentinel_owns(const PyObject *object);

#endif
