/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HELPERS_H
#define CM_HELPERS_H

/* The functions that a holding's code hands something to (graph/emptying.h),
 * wherever the program has them: by their names, in all modules that are no
 * library's. */

#include "objects.h"

#include "../graph/holding.h"

/* [none; never] Adds them behind the holding's codes, of which there is room
 * for so many. */
void cm_helpers_find(struct cm_objects *self, struct cm_holding *holding,
                     struct cm_code_id *codes, size_t capacity);

#endif
