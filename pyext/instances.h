/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_INSTANCES_H
#define CM_INSTANCES_H

#include <Python.h>

/* [new; raises] the live objects of a type and of its subclasses, as a list.
 * Asks the types alone, never an object what it says it is. */
PyObject *cm_instances(PyObject *module, PyObject *type);

#endif
