/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "instances.h"

#include <stdbool.h>

#include "../../detector/alloc.h"
#include "../frameworks/live.h"
#include "../session/session_private.h"

static bool
is_of(void *type, PyTypeObject *other)
{
    return PyType_IsSubtype(other, type) != 0;
}

/* [new; raises] What was found, or that there was no memory. */
static PyObject *
list_of(enum cm_status status, struct cm_objects_array *objects,
        PyObject *list)
{
    if (list != NULL && status != CM_OK) {
        Py_CLEAR(list);
        PyErr_NoMemory();
    }
    for (size_t i = 0; list != NULL && i < objects->count; i++) {
        if (PyList_Append(list, objects->items[i]) < 0) {
            Py_CLEAR(list);
        }
    }
    cm_objects_array_release(objects);
    return list;
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
            && !cm_device_memory_unheld(&memory, object)) {
            objects->items[kept++] = object;
        }
    }
    objects->count = kept;
}

PyObject *
cm_session_held_tensors(struct cm_session *self)
{
    struct cm_objects_array objects = {0};
    PyObject *list = PyList_New(0); /* before: it may start a collection */
    enum cm_status status = cm_live_list(self->devices, &objects);
    drop_unheld(self->devices, &objects);
    return list_of(status, &objects, list);
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
    PyObject *list = PyList_New(0); /* before: it may start a collection */
    enum cm_status status = cm_live_of(is_of, type, &objects);
    return list_of(status, &objects, list);
}
