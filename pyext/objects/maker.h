/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MAKER_H
#define CM_MAKER_H

#include <Python.h>

/* [borrowed; never] The code of the function or method within which the
 * function `object` was made, where its module has that by the name it goes
 * by; NULL: none. */
PyCodeObject *cm_maker_code(PyObject *object);

#endif
