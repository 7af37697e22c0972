/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FATE_H
#define CM_FATE_H

/* Which of a frozen heap's storages go with its garbage.  A framework's use
 * count tells it only when every use is a garbage object; autograd and views
 * hold storages from C++ as well.  So:
 *   after a collection  it is looked at: the storage is gone or it is not;
 *   after a scan        it is foretold: a storage that a live object shares
 *                       stays.  Of others all uses are known where autograd
 *                       could be read to its end: one use more than those stays
 *                       too.  Where it could not, C++ is taken for garbage's.
 * Both leave the answer in use_count: 0 (goes) or more than uses_here. */

#include <Python.h>

#include "../../detector/heap.h"
#include "../frameworks/devices.h"

/* Outside the unreachable phase, with the GIL.  Marks the nodes that live on
 * as survivors too. */
void cm_fate_observe(struct cm_heap *heap, const struct cm_devices *devices);
/* What the freeze knows, for foretelling. */
struct cm_fate_known {
    bool (*is_dead)(void *context, PyObject *object); /* of the heap's */
    /* Is all that C++ holds on their behalf in the heap too? */
    bool (*is_whole)(void *context);
    void *context;
};
/* May allocate GC objects. */
void cm_fate_foretell(struct cm_heap *heap, struct cm_devices *devices,
                      const struct cm_fate_known *known);

#endif
