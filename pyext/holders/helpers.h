/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HELPERS_H
#define CM_HELPERS_H

/* The functions that a holding's code hands something to (graph/emptying.h),
 * wherever the program has them: by their names, in all modules that are a
 * user's (roots.h). */

#include "../../graph/holding.h"
#include "roots.h"

/* [none; never] Adds them behind the holding's codes, of which there is room
 * for so many. */
void cm_helpers_find(const struct cm_roots *roots, struct cm_holding *holding,
                     struct cm_code_id *codes, size_t capacity);
/* [none; never] Likewise all functions of these modules, and the methods of
 * their classes, and the functions that stand in them. */
void cm_helpers_add_all(const struct cm_roots *roots,
                        struct cm_holding *holding, struct cm_code_id *codes,
                        size_t capacity);

#endif
