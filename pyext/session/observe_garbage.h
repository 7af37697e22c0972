/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_OBSERVE_GARBAGE_H
#define CM_OBSERVE_GARBAGE_H

/* torch's observe_garbage: an observer in Python that gets the dead objects
 * themselves.  The only place where user code meets garbage, because the user
 * asked for just that; it rides on the saveall interceptor, whose rules decide
 * afterwards what may still be cleared. */

#include <Python.h>

/* [new; raises] (observer) -> callable that takes it back. */
PyObject *cm_observe_garbage(PyObject *module, PyObject *observer);

#endif
