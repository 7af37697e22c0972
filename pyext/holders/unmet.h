/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_UNMET_H
#define CM_UNMET_H

/* What a walk from named roots did not meet: C code holds it, or it is dead. */

#include <Python.h>

#include <stdbool.h>

#include "../collector/gc_list.h"
#include "../collector/interceptor.h"

enum cm_unmet_part {
    CM_UNMET_HELD, /* that have more references than the others account for */
    CM_UNMET_OWNERS, /* that are no plain containers: what a person knows */
    CM_UNMET_ALL,
};

/* Shows each tracked object of `part` that `is_unmet` says yes to.  `unmet` is
 * empty at first; with what it is left with the next call, which only fewer
 * answer yes in, does not list the heap again.  It is the caller's to free.
 * Cost: about half a full collection, then a part of it.  CM_UNSUPPORTED where
 * the heap cannot be listed. */
enum cm_status cm_unmet_visit(struct cm_objects_array *unmet,
                              cm_scan_pick *is_unmet, enum cm_unmet_part part,
                              visitproc visit, void *context) CM_CHECKED;

#endif
