/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FILLERS_H
#define CM_FILLERS_H

/* The code that may have filled a place, or set it: the methods of its owner,
 * or of the class that it is an attribute of; the function whose variable leads
 * there (or is it: then first); the stacks that made what is held there and the
 * objects (which, of several that set an attribute, set it last: then before
 * these); the functions of the module, and those within functions. */

#include "trail.h"

enum { CM_MOST_FILLERS = 512 };

struct cm_fillers {
    struct cm_code_id ids[CM_MOST_FILLERS]; /* one may be there twice */
    size_t count;
};

/* `self` is empty.  The place is step `at` of the trail; `own` made the object
 * at its end, and `site` allocated what that holds, which may lie behind it. */
void cm_fillers_find(struct cm_fillers *self, struct cm_objects *objects,
                     const struct cm_trail *trail, size_t at,
                     struct cm_site_id own, struct cm_site_id site);

#endif
