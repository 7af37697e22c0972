/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_INSTANCES_H
#define CM_INSTANCES_H

#include <Python.h>

#include "../session/session.h"

/* [new; raises] the live objects of a type and of its subclasses, as a list.
 * Asks the types alone, never an object what it says it is. */
PyObject *cm_instances(PyObject *module, PyObject *type);
/* [new; raises] the live objects with device memory that somebody in Python
 * holds: autograd alone has what it saved, and torch an object for that. */
PyObject *cm_session_held_tensors(struct cm_session *self);

#endif
