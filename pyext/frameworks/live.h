/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LIVE_H
#define CM_LIVE_H

/* The live objects that may hold device memory, found among all that the
 * collector tracks: nothing is asked of them while the program runs. */

#include "devices.h"
#include "../collector/gc_list.h"

/* All that the collector tracks of the types that `wanted` says yes to (asked
 * for a type more than once), behind gc.freeze() too where its lists are known;
 * no count of references is touched.  Borrowed, valid until the GIL is given
 * away; the array is the caller's to free with cm_free(), and empty after a
 * failure.  O(tracked objects). */
enum cm_status cm_live_of(bool (*wanted)(void *context, PyTypeObject *type),
                          void *context, struct cm_objects_array *result)
    CM_CHECKED;
/* What may hold device memory, in the same way. */
enum cm_status cm_live_list(struct cm_devices *devices,
                            struct cm_objects_array *result) CM_CHECKED;

#endif
