/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_UNMET_H
#define CM_UNMET_H

/* What a walk from named roots did not meet: C code holds it, or it is dead. */

#include <Python.h>

#include <stdbool.h>

#include "../detector/status.h"

/* Shows each tracked object that `is_unmet` says yes to; with `held` only those
 * that have more references than the others account for.  Cost: about one full collection.  CM_UNSUPPORTED where
 * the heap cannot be listed. */
enum cm_status cm_unmet_visit(bool (*is_unmet)(void *context,
                                               PyObject *object),
                              bool held, visitproc visit, void *context)
    CM_CHECKED;

#endif
