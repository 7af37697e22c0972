/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The collector's lists are read as for a scan, and trial deletion is made on
 * what is left of them.  O(tracked objects) time, 8 bytes for each. */

#include "unmet.h"

#include "../detector/alloc.h"
#include "gc_list.h"
#include "interceptor.h"
#include "trial.h"

#ifdef Py_GIL_DISABLED

enum cm_status
cm_unmet_visit(bool (*is_unmet)(void *context, PyObject *object), bool held,
               visitproc visit, void *context)
{
    (void)is_unmet;
    (void)held;
    (void)visit;
    (void)context;
    return CM_UNSUPPORTED;
}

#else

enum cm_status
cm_unmet_visit(bool (*is_unmet)(void *context, PyObject *object), bool held,
               visitproc visit, void *context)
{
    struct cm_objects_array objects = {0};
    struct cm_trial trial = {0};
    size_t count = 0;
    enum cm_status status = cm_scan_tracked(&objects);
    for (size_t i = 0; i < objects.count && status == CM_OK; i++) {
        PyObject *object = objects.items[i];
        if (is_unmet(context, object)) {
            objects.items[count++] = object;
            status = held ? cm_trial_add(&trial, object, 0) : CM_OK;
        }
    }
    if (status == CM_OK && held) {
        cm_trial_take_off(&trial, objects.items, count);
    }
    for (size_t i = 0; i < count && status == CM_OK; i++) {
        if (!held || cm_trial_held(&trial, objects.items[i])) {
            (void)visit(objects.items[i], context);
        }
    }
    cm_trial_release(&trial);
    cm_free(objects.items);
    return status;
}

#endif
