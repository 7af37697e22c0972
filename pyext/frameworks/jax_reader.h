/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_JAX_READER_H
#define CM_JAX_READER_H

/* The JAX reader's own: what cumem._jax looks at, and the layout it found. */

#include <Python.h>

/* [new; raises] ("words", object), ("peek", address, count) or ("layout",
 * facts). */
PyObject *cm_jax_probe(PyObject *module, PyObject *facts);

#endif
