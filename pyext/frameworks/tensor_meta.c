/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "tensor_meta.h"

#include "../tables/fields.h"

/* Guarded by the GIL. */
static struct {
    PyTypeObject *root; /* borrowed from torch, which is never unloaded */
    initproc init;
    void (*on_class)(PyTypeObject *);
} metas;

static int
telling_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    int result = metas.init(self, args, kwargs);
    if (result == 0 && PyType_Check(self)) {
        metas.on_class((PyTypeObject *)self);
    }
    return result;
}

/* `super().__init__(...)` of a metaclass in Python calls what this has, and a
 * metaclass derived later takes its tp_init from it.  NULL: there is none. */
static PyWrapperDescrObject *
descriptor_of(PyTypeObject *type)
{
    PyObject *found = type->tp_dict != NULL
                          ? PyDict_GetItemString(type->tp_dict, "__init__")
                          : NULL;
    return found != NULL && Py_IS_TYPE(found, &PyWrapperDescr_Type)
               ? (PyWrapperDescrObject *)found
               : NULL;
}

static void
exchange(PyTypeObject *type, initproc old, initproc new)
{
    PyWrapperDescrObject *descriptor = descriptor_of(type);
    if (type->tp_init == old) {
        type->tp_init = new;
    }
    if (descriptor != NULL && descriptor->d_wrapped == (void *)old) {
        descriptor->d_wrapped = (void *)new;
    }
}

void
cm_tensor_meta_wrap(PyTypeObject *type, void (*on_class)(PyTypeObject *))
{
    if (metas.root == NULL && type->tp_init != NULL
        && !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        metas.root = type;
        metas.init = type->tp_init;
    }
    metas.on_class = on_class;
    if (metas.root != NULL && cm_type_derives(type, metas.root)) {
        exchange(type, metas.init, telling_init);
    }
}

void
cm_tensor_meta_unwrap(PyTypeObject *type)
{
    if (metas.root != NULL) {
        exchange(type, telling_init, metas.init);
    }
}
