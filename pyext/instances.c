/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "instances.h"

#include <stdbool.h>

#include "../detector/alloc.h"
#include "live.h"

/* [0 or -1; raises] Neighbours are often of one type. */
static int
pick(const struct cm_objects_array *all, PyTypeObject *type, PyObject *found)
{
    PyTypeObject *last = NULL;
    bool fits = false;
    for (size_t i = 0; i < all->count; i++) {
        PyObject *object = all->items[i];
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
    struct cm_objects_array all = {0};
    PyObject *found = PyList_New(0); /* before: it may start a collection */
    if (found != NULL && cm_live_all(&all) != CM_OK) {
        Py_CLEAR(found);
        PyErr_NoMemory();
    }
    if (found != NULL && pick(&all, (PyTypeObject *)type, found) < 0) {
        Py_CLEAR(found);
    }
    cm_free(all.items);
    return found;
}
