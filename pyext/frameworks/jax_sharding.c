/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* NamedSharding -> Mesh -> .devices, a NumPy array of the Device objects, and
 * .axis_names; -> PartitionSpec -> for each dimension None, a name, or a tuple
 * of names: it is cut into as many parts as these axes have devices. */

#include "jax_sharding.h"

#include "../tables/fields.h"
#include "../tables/phrase.h" // cm_str_equals()
#include "../objects/numpy_array.h"
#include "../objects/objects_private.h"
#include "../torch/torch_layout.h" // cm_word_at()

#define MOST_DEVICES 65536
#define C_CONTIGUOUS 1

void
cm_jax_named_release(struct cm_jax_named *self)
{
    Py_CLEAR(self->type);
    Py_CLEAR(self->mesh_type);
    Py_CLEAR(self->spec_type);
    Py_CLEAR(self->numbers);
}

static PyObject *
object_at(PyObject *object, Py_ssize_t offset)
{
    return (PyObject *)(uintptr_t)cm_word_at((uintptr_t)object,
                                             (size_t)offset);
}

/* NULL: they do not lie in a row. */
static const struct cm_numpy_array *
devices_of(const struct cm_jax_named *self, const struct cm_objects *objects,
           PyObject *mesh)
{
    PyObject *devices = cm_attribute(objects, mesh, "devices");
    const struct cm_numpy_array *array =
        (const struct cm_numpy_array *)devices;
    return devices != NULL && Py_TYPE(devices) == self->numbers
                   && array->dim_count >= 0
                   && array->dim_count <= CM_JAX_MOST_DIMS
                   && (array->flags & C_CONTIGUOUS) != 0
               ? array
               : NULL;
}

bool
cm_jax_mesh_of(const struct cm_jax_named *self,
               const struct cm_objects *objects, PyObject *sharding,
               struct cm_jax_mesh *result)
{
    if (self->type == NULL || Py_TYPE(sharding) != self->type) {
        return false;
    }
    PyObject *mesh = object_at(sharding, self->mesh);
    if (mesh == NULL || Py_TYPE(mesh) != self->mesh_type) {
        return false;
    }
    const struct cm_numpy_array *devices = devices_of(self, objects, mesh);
    PyObject *axes = cm_attribute(objects, mesh, "axis_names");
    if (devices == NULL || axes == NULL || !PyTuple_CheckExact(axes)
        || PyTuple_GET_SIZE(axes) != devices->dim_count) {
        return false;
    }
    uint64_t count = 1;
    for (int i = 0; i < devices->dim_count; i++) {
        if (devices->sizes[i] < 1
            || (count *= (uint64_t)devices->sizes[i]) > MOST_DEVICES) {
            return false;
        }
    }
    result->devices = (PyObject **)(uintptr_t)devices->data;
    result->device_count = (size_t)count;
    result->axes = axes;
    result->sizes = devices->sizes;
    return true;
}

/* 0: there is no such axis. */
static uint64_t
axis_size(const struct cm_jax_mesh *mesh, PyObject *name)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mesh->axes); i++) {
        if (cm_str_equals(PyTuple_GET_ITEM(mesh->axes, i), name)) {
            return (uint64_t)mesh->sizes[i];
        }
    }
    return 0;
}

static uint64_t
cuts_by(const struct cm_jax_mesh *mesh, PyObject *entry)
{
    if (entry == Py_None) {
        return 1;
    }
    if (entry == NULL || !PyTuple_CheckExact(entry)) {
        return axis_size(mesh, entry);
    }
    uint64_t cuts = 1;
    Py_ssize_t count = PyTuple_GET_SIZE(entry);
    for (Py_ssize_t i = 0; count <= CM_JAX_MOST_DIMS && i < count; i++) {
        cuts *= axis_size(mesh, PyTuple_GET_ITEM(entry, i));
    }
    /* An axis twice is no sharding; with more devices than there are, no. */
    return cuts <= mesh->device_count ? cuts : 0;
}

bool
cm_jax_cuts_of(const struct cm_jax_named *self, const struct cm_jax_mesh *mesh,
               PyObject *sharding, uint64_t cuts[CM_JAX_MOST_DIMS])
{
    PyObject *spec = object_at(sharding, self->spec);
    if (spec == NULL || Py_TYPE(spec) != self->spec_type) {
        return false;
    }
    PyObject *entries = object_at(spec, self->entries);
    if (entries == NULL || !PyTuple_CheckExact(entries)
        || PyTuple_GET_SIZE(entries) > CM_JAX_MOST_DIMS) {
        return false;
    }
    for (int i = 0; i < CM_JAX_MOST_DIMS; i++) {
        cuts[i] = i < PyTuple_GET_SIZE(entries)
                      ? cuts_by(mesh, PyTuple_GET_ITEM(entries, i))
                      : 1;
        if (cuts[i] == 0) {
            return false;
        }
    }
    return true;
}
