/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Stand-ins for classes that frameworks make with Cython: RMM's DeviceBuffer
 * and cuda.core's Buffer and resources, with the same fields in the same
 * places.  A getter that may not be called says so in `calls`. */

#include <Python.h>

#include <stdint.h>

static long calls; /* of getters with side effects */

/* ---- rmm.DeviceBuffer */

struct allocation {
    uint64_t data, size;
};

struct device_buffer {
    PyObject_HEAD
    const void *functions;
    struct allocation *allocation;
    PyObject *memory, *stream;
};

static PyObject *
device_buffer_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    (void)names;
    unsigned long long data, size;
    PyObject *memory = Py_None;
    if (!PyArg_ParseTuple(args, "KK|O", &data, &size, &memory)) {
        return NULL;
    }
    struct device_buffer *self =
        (struct device_buffer *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->functions = &calls;
    self->memory = Py_NewRef(memory);
    if (data == 0) { /* half-built */
        return (PyObject *)self;
    }
    self->allocation = PyMem_Malloc(sizeof(*self->allocation));
    if (self->allocation != NULL) {
        *self->allocation = (struct allocation){data, size};
    }
    return (PyObject *)self;
}

static void
device_buffer_dealloc(PyObject *object)
{
    struct device_buffer *self = (struct device_buffer *)object;
    PyObject_GC_UnTrack(object);
    PyMem_Free(self->allocation);
    Py_CLEAR(self->memory);
    Py_TYPE(object)->tp_free(object);
}

static int
device_buffer_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((struct device_buffer *)object)->memory);
    return 0;
}

static PyObject *
device_buffer_size(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(
        ((struct device_buffer *)object)->allocation->size);
}

static PyObject *
device_buffer_ptr(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(
        ((struct device_buffer *)object)->allocation->data);
}

static PyObject *
counted(PyObject *object, void *unused)
{
    (void)object;
    (void)unused;
    calls++;
    PyErr_SetString(PyExc_RuntimeError, "a getter was called");
    return NULL;
}

static PyGetSetDef device_buffer_fields[] = {
    {"size", device_buffer_size, NULL, NULL, NULL},
    {"ptr", device_buffer_ptr, NULL, NULL, NULL},
    {"__cuda_array_interface__", counted, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject device_buffer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name =
        "rmm.pylibrmm.device_buffer.DeviceBuffer",
    .tp_basicsize = sizeof(struct device_buffer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = device_buffer_new,
    .tp_dealloc = device_buffer_dealloc,
    .tp_traverse = device_buffer_traverse,
    .tp_getset = device_buffer_fields,
};

/* ---- cuda.core.Buffer, MemoryResource, DeviceMemoryResource */

struct buffer {
    PyObject_HEAD
    uint64_t size;
    PyObject *memory;
};

static PyObject *
buffer_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    (void)names;
    unsigned long long size;
    PyObject *memory = Py_None;
    if (!PyArg_ParseTuple(args, "K|O", &size, &memory)) {
        return NULL;
    }
    struct buffer *self = (struct buffer *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->size = size;
        self->memory = memory == Py_Ellipsis ? NULL : Py_NewRef(memory);
    }
    return (PyObject *)self;
}

static void
buffer_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_CLEAR(((struct buffer *)object)->memory);
    Py_TYPE(object)->tp_free(object);
}

static int
buffer_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((struct buffer *)object)->memory);
    return 0;
}

static PyObject *
buffer_size(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct buffer *)object)->size);
}

static PyObject *
buffer_memory(PyObject *object, void *unused)
{
    (void)unused;
    return Py_XNewRef(((struct buffer *)object)->memory);
}

static PyGetSetDef buffer_fields[] = {
    {"size", buffer_size, NULL, NULL, NULL},
    {"memory_resource", buffer_memory, NULL, NULL, NULL},
    {"handle", counted, NULL, NULL, NULL},
    {"device_id", counted, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject buffer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name =
        "cuda.core._memory._buffer.Buffer",
    .tp_basicsize = sizeof(struct buffer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = buffer_new,
    .tp_dealloc = buffer_dealloc,
    .tp_traverse = buffer_traverse,
    .tp_getset = buffer_fields,
};

static PyGetSetDef resource_fields[] = {
    {"device_id", counted, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject resource_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name =
        "cuda.core._memory._buffer.MemoryResource",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_getset = resource_fields,
};

static PyObject *
device_three(PyObject *object, void *unused)
{
    (void)object;
    (void)unused;
    return PyLong_FromLong(3);
}

static PyGetSetDef device_resource_fields[] = {
    {"device_id", device_three, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject device_resource_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cuda.core.DeviceMemoryResource",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_base = &resource_type,
    .tp_new = PyType_GenericNew,
    .tp_getset = device_resource_fields,
};

/* ---- the module */

static PyObject *
count_calls(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(calls);
}

static PyMethodDef methods[] = {
    {"calls", count_calls, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "frameworks_probe",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_frameworks_probe(void);

PyMODINIT_FUNC
PyInit_frameworks_probe(void)
{
    PyTypeObject *types[] = {&device_buffer_type, &buffer_type, &resource_type,
                             &device_resource_type};
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module != NULL && i < Py_ARRAY_LENGTH(types); i++) {
        if (PyModule_AddType(module, types[i]) < 0) {
            Py_CLEAR(module);
        }
    }
    return module;
}
