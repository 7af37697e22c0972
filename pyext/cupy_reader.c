/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* CuPy: ndarray -> MemoryPointer -> memory -> pointer, bytes, device.  The
 * fields are read through the C getters of Cython's descriptors (they copy a
 * field and run no Python); the memory objects are not tracked by the
 * collector.  A memory object is used once by each MemoryPointer, which its
 * reference count tells. */

#include "reader.h"
#include "tags.h"

#if PY_VERSION_HEX < 0x030c0000
#include <structmember.h> // PyMember_GetOne()
#endif

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

/* [new; never] NULL also when it is no C getter. */
static PyObject *
read_field(PyObject *descriptor, PyObject *object)
{
    if (Py_TYPE(descriptor) == &PyGetSetDescr_Type) {
        PyGetSetDef *def = ((PyGetSetDescrObject *)descriptor)->d_getset;
        PyObject *value = def->get(object, def->closure);
        PyErr_Clear();
        return value;
    }
    if (Py_TYPE(descriptor) == &PyMemberDescr_Type) {
        PyMemberDef *def = ((PyMemberDescrObject *)descriptor)->d_member;
        PyObject *value = PyMember_GetOne((const char *)object, def);
        PyErr_Clear();
        return value;
    }
    return NULL;
}

static uint64_t
read_number(PyObject *descriptor, PyObject *object)
{
    PyObject *value = read_field(descriptor, object);
    uint64_t number = 0;
    if (value != NULL && PyLong_CheckExact(value)) {
        number = PyLong_AsUnsignedLongLongMask(value);
    }
    PyErr_Clear();
    Py_XDECREF(value);
    return number;
}

/* [new; never] a descriptor of a type, as it stands in its dictionary. */
static PyObject *
descriptor_of(PyObject *type, const char *name)
{
    PyObject *found = NULL;
    PyObject *mro = ((PyTypeObject *)type)->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        found = base->tp_dict != NULL && PyDict_CheckExact(base->tp_dict)
                    ? PyDict_GetItemString(base->tp_dict, name)
                    : NULL;
        if (found != NULL) {
            return Py_NewRef(found);
        }
    }
    return NULL;
}

/* [new; never] an attribute of a module in sys.modules, if it is a type. */
static PyObject *
type_in(const char *module, const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *found =
        modules != NULL ? PyDict_GetItemString(modules, module) : NULL;
    PyObject *dict = found != NULL && PyModule_Check(found)
                         ? PyModule_GetDict(found)
                         : NULL;
    PyObject *type = dict != NULL ? PyDict_GetItemString(dict, name) : NULL;
    return type != NULL && PyType_Check(type) ? Py_NewRef(type) : NULL;
}

static bool
is_c_getter(PyObject *descriptor)
{
    return descriptor != NULL
           && (Py_TYPE(descriptor) == &PyGetSetDescr_Type
               || Py_TYPE(descriptor) == &PyMemberDescr_Type);
}

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
    PyObject *array = type_in("cupy._core.core", "_ndarray_base");
    PyObject *pointer = type_in("cupy.cuda.memory", "MemoryPointer");
    PyObject *memory = type_in("cupy.cuda.memory", "BaseMemory");
    PyObject *made = type_in("cupy._core.core", "ndarray"); /* users' class */
    bool whole =
        array != NULL && pointer != NULL && memory != NULL && made != NULL;
    if (whole) {
        self->array_data = descriptor_of(array, "data");
        self->array_shape = descriptor_of(array, "shape");
        self->array_dtype = descriptor_of(array, "dtype");
        self->pointer_mem = descriptor_of(pointer, "mem");
        self->memory_ptr = descriptor_of(memory, "ptr");
        self->memory_size = descriptor_of(memory, "size");
        self->memory_device = descriptor_of(memory, "device_id");
    }
    self->array = (PyTypeObject *)array;
    self->memory = (PyTypeObject *)memory;
    Py_XDECREF(pointer);
    bool readable =
        is_c_getter(self->array_data) && is_c_getter(self->pointer_mem)
        && is_c_getter(self->memory_ptr) && is_c_getter(self->memory_size)
        && is_c_getter(self->memory_device);
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
    result->device_address = read_number(self->memory_ptr, memory);
    result->bytes = read_number(self->memory_size, memory);
    result->accelerator = true;
    int device = (int)(read_number(self->memory_device, memory) & 0xff);
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
    PyObject *pointer = read_field(self->array_data, object);
    PyObject *memory = pointer != NULL && pointer != Py_None
                           ? read_field(self->pointer_mem, pointer)
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

/* [new; never] a field of an object that is not CuPy's, by its C getter. */
static PyObject *
read_named(PyObject *object, const char *name)
{
    PyObject *descriptor = descriptor_of((PyObject *)Py_TYPE(object), name);
    PyObject *value =
        is_c_getter(descriptor) ? read_field(descriptor, object) : NULL;
    Py_XDECREF(descriptor);
    return value;
}

/* "float32" from a NumPy dtype's kind and size. */
static void
write_dtype(PyObject *dtype, char *text, size_t room)
{
    static const char *const kinds[] = {"ffloat", "iint", "uuint", "ccomplex"};
    PyObject *kind = read_named(dtype, "kind");
    PyObject *size = read_named(dtype, "itemsize");
    bool known = kind != NULL && PyUnicode_CheckExact(kind)
                 && PyUnicode_GET_LENGTH(kind) == 1 && size != NULL
                 && PyLong_CheckExact(size);
    for (size_t i = 0; known && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (PyUnicode_READ_CHAR(kind, 0) == (Py_UCS4)kinds[i][0]) {
            snprintf(text, room, " %s%ld", kinds[i] + 1,
                     PyLong_AsLong(size) * 8);
        }
    }
    if (known && PyUnicode_READ_CHAR(kind, 0) == 'b') {
        snprintf(text, room, " bool");
    }
    Py_XDECREF(kind);
    Py_XDECREF(size);
}

/* The shape is a fresh tuple, gone again at once. */
static size_t
write_sizes(PyObject *shape, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "[");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape) && used + 32 < room;
         i++) {
        PyObject *size = PyTuple_GET_ITEM(shape, i);
        used += (size_t)snprintf(
            text + used, room - used, "%s%ld", i == 0 ? "" : ", ",
            PyLong_CheckExact(size) ? PyLong_AsLong(size) : -1);
    }
    return used + (size_t)snprintf(text + used, room - used, "]");
}

static void
cupy_shape(const void *state, PyObject *object, char *text, size_t room)
{
    const struct cupy_state *self = state;
    if (!is_c_getter(self->array_shape) || !is_c_getter(self->array_dtype)
        || !PyType_IsSubtype(Py_TYPE(object), self->array)) {
        return;
    }
    PyObject *shape = read_field(self->array_shape, object);
    PyObject *dtype = read_field(self->array_dtype, object);
    if (shape != NULL && PyTuple_CheckExact(shape) && dtype != NULL) {
        size_t used = write_sizes(shape, text, room);
        write_dtype(dtype, text + used, room - used);
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
