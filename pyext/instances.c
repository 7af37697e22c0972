/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "instances.h"

#include <stdbool.h>

PyObject *
cm_live_objects(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *all =
        gc != NULL ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
    Py_XDECREF(gc);
    return all;
}

/* [0 or -1; raises] Neighbours are often of one type. */
static int
pick(PyObject *all, PyTypeObject *type, PyObject *found)
{
    PyTypeObject *last = NULL;
    bool fits = false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all); i++) {
        PyObject *object = PyList_GET_ITEM(all, i);
        if (Py_TYPE(object) != last) {
            last = Py_TYPE(object);
            fits = PyType_IsSubtype(last, type) != 0;
        }
        if (fits && PyList_Append(found, object) < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *
cm_instances(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "a type was expected");
        return NULL;
    }
    PyObject *all = cm_live_objects();
    PyObject *found =
        all != NULL && PyList_CheckExact(all) ? PyList_New(0) : NULL;
    if (found != NULL && pick(all, (PyTypeObject *)type, found) < 0) {
        Py_CLEAR(found);
    }
    Py_XDECREF(all);
    return found != NULL || PyErr_Occurred() ? found : PyList_New(0);
}
