/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The collector's lists are read as for a scan, and trial deletion is made on
 * what is left of them.  O(tracked objects) time, 8 bytes for each unmet. */

#include "unmet.h"

#include "../../detector/alloc.h"
#include "../collector/trial.h"

#ifdef Py_GIL_DISABLED

enum cm_status
cm_unmet_visit(struct cm_objects_array *unmet, cm_scan_pick *is_unmet,
               enum cm_unmet_part part, visitproc visit, void *context)
{
    (void)unmet;
    (void)is_unmet;
    (void)part;
    (void)visit;
    (void)context;
    return CM_UNSUPPORTED;
}

#else

static enum cm_status
list(struct cm_objects_array *unmet, cm_scan_pick *is_unmet, void *context)
{
    size_t count = 0;
    if (unmet->items == NULL) {
        return cm_scan_tracked(is_unmet, context, unmet);
    }
    for (size_t i = 0; i < unmet->count; i++) {
        if (is_unmet(context, unmet->items[i])) {
            unmet->items[count++] = unmet->items[i];
        }
    }
    unmet->count = count;
    return CM_OK;
}

static bool
is_owner(const PyObject *object)
{
    return !PyDict_CheckExact(object) && !PyList_CheckExact(object)
           && !PyTuple_CheckExact(object) && !PyCell_Check(object);
}

enum cm_status
cm_unmet_visit(struct cm_objects_array *unmet, cm_scan_pick *is_unmet,
               enum cm_unmet_part part, visitproc visit, void *context)
{
    bool held = part == CM_UNMET_HELD;
    struct cm_trial trial = {0};
    enum cm_status status = list(unmet, is_unmet, context);
    for (size_t i = 0; held && i < unmet->count && status == CM_OK; i++) {
        status = cm_trial_add(&trial, unmet->items[i], 0);
    }
    if (status == CM_OK && held) {
        cm_trial_take_off(&trial, unmet->items, unmet->count);
    }
    for (size_t i = 0; i < unmet->count && status == CM_OK; i++) {
        if (part == CM_UNMET_ALL
            || (held ? cm_trial_held(&trial, unmet->items[i])
                     : is_owner(unmet->items[i]))) {
            (void)visit(unmet->items[i], context);
        }
    }
    cm_trial_release(&trial);
    return status;
}

#endif
