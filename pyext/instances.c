/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "instances.h"

#include <stdbool.h>

#include "../detector/alloc.h"
#include "live.h"
#include "session_private.h"

static bool
is_of(void *type, PyTypeObject *other)
{
    return PyType_IsSubtype(other, type) != 0;
}

/* [0 or -1; raises] */
static int
append_all(const struct cm_objects_array *objects, PyObject *list)
{
    for (size_t i = 0; i < objects->count; i++) {
        if (PyList_Append(list, objects->items[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* What nobody but C++ has is left out, and storages beside their tensors. */
static void
drop_unheld(struct cm_devices *devices, struct cm_objects_array *objects)
{
    size_t kept = 0;
    for (size_t i = 0; i < objects->count; i++) {
        struct cm_device_memory memory;
        PyObject *object = objects->items[i];
        if (cm_devices_read(devices, object, &memory) && !memory.is_storage
            && !(memory.preserved && Py_REFCNT(object) <= 1)) {
            objects->items[kept++] = object;
        }
    }
    objects->count = kept;
}

PyObject *
cm_session_held_tensors(struct cm_session *self)
{
    struct cm_objects_array objects = {0};
    PyObject *found = PyList_New(0); /* before: it may start a collection */
    if (found != NULL && cm_live_list(self->devices, &objects) != CM_OK) {
        Py_CLEAR(found);
        PyErr_NoMemory();
    }
    drop_unheld(self->devices, &objects);
    if (found != NULL && append_all(&objects, found) < 0) {
        Py_CLEAR(found);
    }
    cm_free(objects.items);
    return found;
}

PyObject *
cm_instances(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "a type was expected");
        return NULL;
    }
    struct cm_objects_array objects = {0};
    PyObject *found = PyList_New(0); /* before: it may start a collection */
    if (found != NULL && cm_live_of(is_of, type, &objects) != CM_OK) {
        Py_CLEAR(found);
        PyErr_NoMemory();
    }
    if (found != NULL && append_all(&objects, found) < 0) {
        Py_CLEAR(found);
    }
    cm_free(objects.items);
    return found;
}
