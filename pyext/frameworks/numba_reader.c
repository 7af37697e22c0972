/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Numba-CUDA, all of it Python objects: DeviceNDArray -> .gpu_data, an
 * OwnedPointer -> ._mem, a proxy of the MemoryPointer that the context keeps
 * -> .size, .context.device.id.  Attributes are read as they lie there.
 *
 * Numba frees by weakref.finalize(): in a collection that may have happened
 * before we look.  Then the proxy is empty and the pointer's own weak
 * references are gone, and the array's .alloc_size still tells the bytes. */

#include "device_count.h"
#include "../tables/fields.h"
#include "../objects/objects_private.h"
#include "reader.h"
#include "tags.h"

#include <stdio.h>
#include <string.h>

#define ARRAYS "numba.cuda.cudadrv.devicearray"
#define DRIVER "numba.cuda.cudadrv.driver"

struct numba_state {
    const struct cm_objects *objects;     /* borrowed */
    PyTypeObject *array;                  /* owned, as all below */
    PyTypeObject *owned;                  /* OwnedPointer */
    PyTypeObject *memory;                 /* MemoryPointer */
    PyTypeObject *mapped;                 /* MappedMemory: the host's */
    PyTypeObject *device, *pointer;       /* cuda.bindings; may be NULL */
    PyTypeObject *c_pointer, *c_unsigned; /* ctypes; may be NULL */
};

static void
numba_begin(void *state, const struct cm_objects *objects)
{
    ((struct numba_state *)state)->objects = objects;
}

static void
numba_forget(void *state)
{
    struct numba_state *self = state;
    Py_CLEAR(self->array);
    Py_CLEAR(self->owned);
    Py_CLEAR(self->memory);
    Py_CLEAR(self->mapped);
    Py_CLEAR(self->device);
    Py_CLEAR(self->pointer);
    Py_CLEAR(self->c_pointer);
    Py_CLEAR(self->c_unsigned);
    cm_device_count_forget();
}

static PyTypeObject *
find_type(const char *module, const char *name)
{
    return (PyTypeObject *)cm_type_in(module, name);
}

/* The module's classes, the last one last: it may still be imported. */
static bool
tag_arrays(void)
{
    static const char *const names[] = {"DeviceRecord", "DeviceNDArray",
                                        "ManagedNDArray"};
    bool whole = true;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        PyTypeObject *type = find_type(ARRAYS, names[i]);
        if (type != NULL) {
            cm_tags_type(type);
        }
        whole = type != NULL;
        Py_XDECREF(type);
    }
    return whole;
}

static enum cm_learnt
numba_learn(void *state, PyObject *module, const char **reason)
{
    struct numba_state *self = state;
    (void)module;
    self->array = find_type(ARRAYS, "DeviceNDArrayBase");
    self->owned = find_type(DRIVER, "OwnedPointer");
    self->memory = find_type(DRIVER, "MemoryPointer");
    self->mapped = find_type(DRIVER, "MappedMemory");
    if (self->array == NULL || self->owned == NULL || self->memory == NULL
        || self->mapped == NULL || !tag_arrays()) {
        numba_forget(self);
        *reason = "numba.cuda not imported";
        return CM_LEARNT_LATER;
    }
    self->device = find_type("cuda.bindings.driver", "CUdevice");
    self->pointer = find_type("cuda.bindings.driver", "CUdeviceptr");
    self->c_pointer = find_type("ctypes", "c_void_p");
    self->c_unsigned = find_type("ctypes", "c_ulong");
    *reason = "instance attributes";
    return CM_LEARNT_READY;
}

static void
numba_notice(void *state)
{
    (void)state;
    cm_device_count_notice();
}

static bool
numba_claims(const void *state, PyTypeObject *type)
{
    const struct numba_state *self = state;
    return cm_type_derives(type, self->array);
}

/* ---- values */

/* Borrowed from who keeps it alive; NULL: gone. */
static PyObject *
behind_proxy(PyObject *object)
{
    if (object == NULL || !PyWeakref_CheckProxy(object)) {
        return object;
    }
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *referent = NULL;
    if (PyWeakref_GetRef(object, &referent) <= 0) {
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF(referent); /* somebody else's keeps it */
    return referent;
#else
    PyObject *referent = PyWeakref_GET_OBJECT(object);
    return referent == Py_None ? NULL : referent;
#endif
}

static PyObject *
attribute(const struct numba_state *self, PyObject *object, const char *name)
{
    return object != NULL
               ? behind_proxy(cm_attribute(self->objects, object, name))
               : NULL;
}

/* An int made in C is read by its slot; the exact types are known. */
static bool
read_binding(PyObject *value, uint64_t *number)
{
    PyNumberMethods *methods = Py_TYPE(value)->tp_as_number;
    PyObject *made =
        methods != NULL && methods->nb_int != NULL && Py_TYPE(value)->tp_dict
            ? PyDict_GetItemString(Py_TYPE(value)->tp_dict, "__int__")
            : NULL;
    made = made != NULL && Py_TYPE(made) == &PyWrapperDescr_Type
               ? methods->nb_int(value)
               : NULL;
    bool known = made != NULL && PyLong_CheckExact(made);
    if (known) {
        *number = PyLong_AsUnsignedLongLongMask(made);
    }
    PyErr_Clear();
    Py_XDECREF(made);
    return known;
}

/* ctypes lends its bytes without running Python. */
static bool
read_ctypes(PyObject *value, uint64_t *number)
{
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();
        return false;
    }
    bool known = view.len == (Py_ssize_t)sizeof(*number);
    if (known) {
        memcpy(number, view.buf, sizeof(*number));
    }
    PyBuffer_Release(&view);
    return known;
}

static bool
read_int(const struct numba_state *self, PyObject *value, uint64_t *number)
{
    if (value == NULL) {
        return false;
    }
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyLong_Type) {
        int overflow;
        long long read = PyLong_AsLongLongAndOverflow(value, &overflow);
        *number = (uint64_t)read;
        return overflow == 0 && read >= 0;
    }
    if (type == self->device || type == self->pointer) {
        return read_binding(value, number);
    }
    return (type == self->c_pointer || type == self->c_unsigned)
           && read_ctypes(value, number);
}

static bool
is_true(const struct numba_state *self, PyObject *object, const char *name)
{
    return attribute(self, object, name) == Py_True;
}

/* ---- memory */

static void
name_device(const struct numba_state *self, PyObject *memory,
            struct cm_device_memory *result)
{
    uint64_t index;
    result->accelerator = true;
    if (memory != NULL && cm_type_derives(Py_TYPE(memory), self->mapped)) {
        result->accelerator = false;
        strcpy(result->device, "cpu");
        return;
    }
    PyObject *context = attribute(self, memory, "context");
    PyObject *device = attribute(self, context, "device");
    bool known = read_int(self, attribute(self, device, "id"), &index);
    cm_cuda_name(known ? (long)(index & 0xff) : -1, result->device,
                 sizeof(result->device));
}

/* Before: `pointer` is an OwnedPointer.  Its finalizers have run: its weak
 * references are cleared before their callbacks are called. */
static bool
was_freed_just_now(PyObject *pointer)
{
    Py_ssize_t offset = Py_TYPE(pointer)->tp_weaklistoffset;
    PyObject *references = pointer; /* not NULL */
    if (offset != 0) {
        memcpy(&references, (const char *)pointer + offset,
               sizeof(references));
    }
    return references == NULL;
}

static bool
read_freed(const struct numba_state *self, PyObject *array, PyObject *pointer,
           struct cm_device_memory *result)
{
    result->storage_key = (uintptr_t)pointer;
    name_device(self, NULL, result);
    return was_freed_just_now(pointer)
           && read_int(self, attribute(self, array, "alloc_size"),
                       &result->bytes);
}

/* How many pointers share the memory, and how many objects the last one. */
static uint32_t
count_uses(const struct numba_state *self, PyObject *memory, PyObject *pointer)
{
    uint64_t pointers;
    if (pointer == memory
        || !read_int(self, attribute(self, memory, "refct"), &pointers)
        || pointers == 0 || pointers > INT32_MAX) {
        return 0;
    }
    return (uint32_t)(pointers - 1 + (uint64_t)Py_REFCNT(pointer));
}

/* Memory that Numba only points at is its owner's, and counts as nothing. */
static bool
read_memory(const struct numba_state *self, PyObject *memory,
            struct cm_device_memory *result)
{
    result->storage_key = (uintptr_t)memory;
    name_device(self, memory, result);
    if (!read_int(self, attribute(self, memory, "device_pointer"),
                  &result->device_address)) {
        result->device_address = 0;
    }
    return is_true(self, memory, "is_managed")
           && read_int(self, attribute(self, memory, "size"), &result->bytes);
}

static bool
read_pointer(const struct numba_state *self, PyObject *array,
             PyObject *pointer, struct cm_device_memory *result)
{
    PyObject *memory = pointer;
    if (cm_type_derives(Py_TYPE(pointer), self->owned)) {
        memory = attribute(self, pointer, "_mem");
        if (memory == NULL) {
            return read_freed(self, array, pointer, result);
        }
    }
    if (!cm_type_derives(Py_TYPE(memory), self->memory)
        || !read_memory(self, memory, result)) {
        return false;
    }
    result->use_count = count_uses(self, memory, pointer);
    return true;
}

static bool
numba_read(const void *state, PyObject *object,
           struct cm_device_memory *result)
{
    const struct numba_state *self = state;
    memset(result, 0, sizeof(*result));
    if (!cm_type_derives(Py_TYPE(object), self->array)) {
        return false;
    }
    PyObject *pointer = attribute(self, object, "gpu_data");
    return pointer != NULL && read_pointer(self, object, pointer, result)
           && result->bytes != 0
           && result->bytes >> CM_MAX_DEVICE_BYTES_LOG2 == 0;
}

static void
numba_shape(const void *state, PyObject *object, char *text, size_t room)
{
    const struct numba_state *self = state;
    PyObject *shape = attribute(self, object, "shape");
    PyObject *dtype = attribute(self, object, "dtype");
    if (shape != NULL && PyTuple_CheckExact(shape) && dtype != NULL) {
        size_t used = cm_write_sizes(shape, text, room);
        cm_write_dtype(dtype, text + used, room - used);
    }
}

const struct cm_reader cm_numba_reader = {
    .module = "numba",
    .state_bytes = sizeof(struct numba_state),
    .learn = numba_learn,
    .begin = numba_begin,
    .notice = numba_notice,
    .claims = numba_claims,
    .read = numba_read,
    .shape = numba_shape,
    .forget = numba_forget,
};
