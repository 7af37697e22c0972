/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* By the collector's own lists; where these are not known, by what gc shows of
 * them.  Cost: some 10 ns for each tracked object, and 8 bytes until they are
 * sorted out. */

#include "live.h"

#include "../detector/alloc.h"
#include "interceptor.h"

/* [new; raises] */
static PyObject *
ask_gc(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *all =
        gc != NULL ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
    Py_XDECREF(gc);
    return all;
}

/* The list is gone afterwards, what stood in it is not: all of it lives. */
static enum cm_status
list_publicly(struct cm_objects_array *result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *all = ask_gc();
    enum cm_status status =
        all != NULL && PyList_CheckExact(all) ? CM_OK : CM_NO_MEMORY;
    for (Py_ssize_t i = 0; status == CM_OK && i < PyList_GET_SIZE(all); i++) {
        status = cm_objects_array_add(result, PyList_GET_ITEM(all, i));
    }
    Py_XDECREF(all);
    PyErr_Restore(type, value, traceback);
    return status;
}

enum cm_status
cm_live_all(struct cm_objects_array *result)
{
    enum cm_status status = cm_scan_tracked(result);
    if (status == CM_UNSUPPORTED) {
        status = list_publicly(result);
    }
    if (status != CM_OK) {
        cm_free(result->items);
        *result = (struct cm_objects_array){0};
    }
    return status;
}

enum cm_status
cm_live_list(struct cm_devices *devices, struct cm_objects_array *result)
{
    enum cm_status status = cm_live_all(result);
    size_t kept = 0;
    for (size_t i = 0; i < result->count; i++) {
        PyObject *object = result->items[i];
        if (cm_devices_claim(devices, Py_TYPE(object))) {
            result->items[kept++] = object;
        }
    }
    result->count = kept;
    return status;
}
