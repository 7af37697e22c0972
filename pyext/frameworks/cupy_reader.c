/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* CuPy: ndarray -> MemoryPointer -> memory -> pointer, bytes, device.  The
 * fields are read through the C getters of Cython's descriptors (they copy a
 * field and run no Python); the memory objects are not tracked by the
 * collector.  A memory object is used once by each MemoryPointer, which its
 * reference count tells. */

#include "../tables/fields.h"
#include "reader.h"
#include "tags.h"

#include <stdio.h>
#include <string.h>

struct cupy_state {
    PyTypeObject *array;  /* owned: cupy._core.core._ndarray_base */
    PyObject *array_data; /* owned: getset descriptors, as those below */
    PyObject *array_shape, *array_dtype; /* may be no C getters */
    PyObject *pointer_mem;
    PyTypeObject *memory; /* owned: cupy.cuda.memory.BaseMemory */
    PyObject *memory_ptr, *memory_size, *memory_device;
};

static void
cupy_forget(void *state)
{
    struct cupy_state *self = state;
    Py_CLEAR(self->array);
    Py_CLEAR(self->array_data);
    Py_CLEAR(self->array_shape);
    Py_CLEAR(self->array_dtype);
    Py_CLEAR(self->pointer_mem);
    Py_CLEAR(self->memory);
    Py_CLEAR(self->memory_ptr);
    Py_CLEAR(self->memory_size);
    Py_CLEAR(self->memory_device);
}

static enum cm_learnt
cupy_learn(void *state, PyObject *module, const char **reason)
{
    struct cupy_state *self = state;
    (void)module;
    PyObject *array = cm_type_in("cupy._core.core", "_ndarray_base");
    PyObject *pointer = cm_type_in("cupy.cuda.memory", "MemoryPointer");
    PyObject *memory = cm_type_in("cupy.cuda.memory", "BaseMemory");
    PyObject *made =
        cm_type_in("cupy._core.core", "ndarray"); /* users' class */
    bool whole =
        array != NULL && pointer != NULL && memory != NULL && made != NULL;
    if (whole) {
        self->array_data = cm_field_of(array, "data");
        self->array_shape = cm_field_of(array, "shape");
        self->array_dtype = cm_field_of(array, "dtype");
        self->pointer_mem = cm_field_of(pointer, "mem");
        self->memory_ptr = cm_field_of(memory, "ptr");
        self->memory_size = cm_field_of(memory, "size");
        self->memory_device = cm_field_of(memory, "device_id");
    }
    self->array = (PyTypeObject *)array;
    self->memory = (PyTypeObject *)memory;
    Py_XDECREF(pointer);
    bool readable =
        cm_field_is_c(self->array_data) && cm_field_is_c(self->pointer_mem)
        && cm_field_is_c(self->memory_ptr) && cm_field_is_c(self->memory_size)
        && cm_field_is_c(self->memory_device);
    if (readable) {
        cm_tags_type((PyTypeObject *)made);
        Py_DECREF(made);
        *reason = "C getters";
        return CM_LEARNT_READY;
    }
    Py_XDECREF(made);
    cupy_forget(self);
    *reason = whole ? "unsupported: the fields of ndarray have no C getters"
                    : "not fully imported";
    return whole ? CM_LEARNT_UNSUPPORTED : CM_LEARNT_LATER;
}

static bool
cupy_claims(const void *state, PyTypeObject *type)
{
    const struct cupy_state *self = state;
    return PyType_IsSubtype(type, self->array)
           || PyType_IsSubtype(type, self->memory);
}

static bool
read_memory(const struct cupy_state *self, PyObject *memory,
            struct cm_device_memory *result)
{
    result->storage_key = (uintptr_t)memory;
    result->device_address = cm_field_number(self->memory_ptr, memory);
    result->bytes = cm_field_number(self->memory_size, memory);
    result->accelerator = true;
    int device = (int)(cm_field_number(self->memory_device, memory) & 0xff);
    snprintf(result->device, sizeof(result->device), "cuda:%d", device);
    return result->device_address != 0 && result->bytes != 0;
}

static bool
cupy_read(const void *state, PyObject *object, struct cm_device_memory *result)
{
    const struct cupy_state *self = state;
    memset(result, 0, sizeof(*result));
    if (PyType_IsSubtype(Py_TYPE(object), self->memory)) {
        result->is_storage = true;
        return read_memory(self, object, result);
    }
    if (!PyType_IsSubtype(Py_TYPE(object), self->array)) {
        return false;
    }
    PyObject *pointer = cm_field_read(self->array_data, object);
    PyObject *memory = pointer != NULL && pointer != Py_None
                           ? cm_field_read(self->pointer_mem, pointer)
                           : NULL;
    bool known = memory != NULL
                 && PyType_IsSubtype(Py_TYPE(memory), self->memory)
                 && read_memory(self, memory, result);
    if (known) { /* ours is one of the references */
        result->use_count = (uint32_t)(Py_REFCNT(memory) - 1);
    }
    Py_XDECREF(memory);
    Py_XDECREF(pointer);
    return known;
}

static void
cupy_shape(const void *state, PyObject *object, char *text, size_t room)
{
    const struct cupy_state *self = state;
    if (!cm_field_is_c(self->array_shape) || !cm_field_is_c(self->array_dtype)
        || !PyType_IsSubtype(Py_TYPE(object), self->array)) {
        return;
    }
    PyObject *shape = cm_field_read(self->array_shape, object);
    PyObject *dtype = cm_field_read(self->array_dtype, object);
    if (shape != NULL && PyTuple_CheckExact(shape) && dtype != NULL) {
        size_t used = cm_write_sizes(shape, text, room);
        cm_write_dtype(dtype, text + used, room - used);
    }
    PyErr_Clear();
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
}

const struct cm_reader cm_cupy_reader = {
    .module = "cupy",
    .state_bytes = sizeof(struct cupy_state),
    .learn = cupy_learn,
    .claims = cupy_claims,
    .read = cupy_read,
    .shape = cupy_shape,
    .forget = cupy_forget,
    .untracked = true,
};
