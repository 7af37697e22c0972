/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PRIVATE_POOLS_H
#define CM_PRIVATE_POOLS_H

/* The stretches of memory that only a CUDA graph or a MemPool uses, as torch's
 * last snapshot showed them.  Guarded by the GIL. */

#include <Python.h>

#include <stdint.h>

/* Borrowed until the next snapshot; NULL: the common pool, as far as is known.
 * May run in a collection. */
const char *cm_private_pools_at(uint64_t address);
/* Stretches that there was no memory for; they count as of the common pool. */
uint64_t cm_private_pools_lost(void);

/* [none; raises] a list of (address, bytes, name of the pool), in any order,
 * instead of what was known. */
PyObject *cm_private_pools_set(PyObject *module, PyObject *pools);

#endif
