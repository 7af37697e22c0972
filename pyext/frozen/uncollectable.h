/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_UNCOLLECTABLE_H
#define CM_UNCOLLECTABLE_H

/* What nothing outside reaches, and yet no collection will ever free: cycles
 * that go through C++.  Python's collector is not told that a backward step
 * holds a hook, a context or a packed tensor, and takes those for reachable.
 * Here the references of C++ (autograd.h) are put beside those of Python, and
 * the same trial deletion is made again.
 *
 * Errs on the side of "reachable": a use of a node or a tensor that was not
 * found makes it stay.  Frees nothing, calls nothing. */

#include "../collector/gc_list.h"
#include "../collector/trial.h"

#ifndef Py_GIL_DISABLED
/* Before: `collector` has its marks over the same objects; nothing has run
 * since.  After: `result` has those that it marked and that are dead all the
 * same.  Costs one look at each object where torch is not in use or nothing
 * in its graphs refers to Python, else another trial. */
enum cm_status cm_uncollectable_find(const struct cm_trial *collector,
                                     PyObject *const *objects, size_t count,
                                     struct cm_objects_array *result)
    CM_CHECKED;
#endif

#endif
