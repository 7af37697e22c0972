/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* By the collector's own lists; where these are not known, by what gc shows of
 * them.  Cost: some 10 ns for each tracked object. */

#include "live.h"

#include "../../detector/alloc.h"
#include "../collector/interceptor.h"
#include "../tables/fields.h"

/* [new; raises] */
static PyObject *
ask_gc(void)
{
    PyObject *gc = cm_module_of("gc");
    PyObject *all =
        gc != NULL ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
    Py_XDECREF(gc);
    return all;
}

struct types {
    bool (*wanted)(void *context, PyTypeObject *type);
    void *context;
    PyTypeObject *last; /* neighbours are often of one */
    bool last_wanted;
};

static bool
pick(void *context, PyObject *object)
{
    struct types *types = context;
    if (Py_TYPE(object) != types->last) {
        types->last = Py_TYPE(object);
        types->last_wanted = types->wanted(types->context, types->last);
    }
    return types->last_wanted;
}

/* The list is gone afterwards, what stood in it is not: all of it lives. */
static enum cm_status
list_publicly(struct types *types, struct cm_objects_array *result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *all = ask_gc();
    enum cm_status status =
        all != NULL && PyList_CheckExact(all) ? CM_OK : CM_NO_MEMORY;
    for (Py_ssize_t i = 0; status == CM_OK && i < PyList_GET_SIZE(all); i++) {
        PyObject *object = PyList_GET_ITEM(all, i);
        if (pick(types, object)) {
            status = cm_objects_array_add(result, object);
        }
    }
    Py_XDECREF(all);
    PyErr_Restore(type, value, traceback);
    return status;
}

enum cm_status
cm_live_of(bool (*wanted)(void *context, PyTypeObject *type), void *context,
           struct cm_objects_array *result)
{
    struct types types = {.wanted = wanted, .context = context};
    enum cm_status status = cm_scan_tracked(pick, &types, result);
    if (status == CM_UNSUPPORTED) {
        status = list_publicly(&types, result);
    }
    if (status != CM_OK) {
        cm_objects_array_release(result);
    }
    return status;
}

static bool
is_claimed(void *devices, PyTypeObject *type)
{
    return cm_devices_claim(devices, type);
}

enum cm_status
cm_live_list(struct cm_devices *devices, struct cm_objects_array *result)
{
    return cm_live_of(is_claimed, devices, result);
}
