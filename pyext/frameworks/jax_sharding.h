/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_JAX_SHARDING_H
#define CM_JAX_SHARDING_H

/* How a jax NamedSharding splits an array, read from it, its PartitionSpec and
 * its Mesh as they lie in memory: no code of JAX's runs.  With the GIL. */

#include <Python.h>

#include <stdbool.h>

#include "../objects/objects.h"

enum { CM_JAX_MOST_DIMS = 32 };

/* Found by cumem._jax, which checks NumPy's layout too. */
struct cm_jax_named {
    PyTypeObject *type; /* owned, as all four; or NULL: not known */
    PyTypeObject *mesh_type, *spec_type, *numbers; /* numpy.ndarray */
    Py_ssize_t mesh, spec, memory_kind;            /* of the sharding */
    Py_ssize_t entries; /* of the PartitionSpec: a tuple */
};

void cm_jax_named_release(struct cm_jax_named *self);

/* A mesh of devices: borrowed from the sharding. */
struct cm_jax_mesh {
    PyObject **devices; /* in the order of an array's buffers */
    size_t device_count;
    PyObject *axes;          /* a tuple of names */
    const Py_ssize_t *sizes; /* of each axis */
};

/* False: not such a sharding, or anything about it is not as known. */
bool cm_jax_mesh_of(const struct cm_jax_named *self,
                    const struct cm_objects *objects, PyObject *sharding,
                    struct cm_jax_mesh *result);
/* Into how many parts each dimension is cut.  False: it cannot be told. */
bool cm_jax_cuts_of(const struct cm_jax_named *self,
                    const struct cm_jax_mesh *mesh, PyObject *sharding,
                    uint64_t cuts[CM_JAX_MOST_DIMS]);

#endif
