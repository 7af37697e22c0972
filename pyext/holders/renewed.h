/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_RENEWED_H
#define CM_RENEWED_H

/* Whether the program sets anew, and reads only afterwards, what an object
 * holds by a name: a variable of a module, an attribute, a dict's item.  Then
 * it is not made of what was there before.
 *
 * All code of the program's that the walk has met, or that runs, is read for
 * it (code/touch.h): one of which reads it first is enough to say no.
 * O(objects of the walk) for the first one that is asked for; then O(the
 * program's functions). */

#include "reach.h"

/* All that is asked after one walk.  Zeroed but for it, it is valid. */
struct cm_renewed {
    const struct cm_reach *reach; /* borrowed; the walk is over */
    /* Private. */
    PyCodeObject **codes; /* owned, of borrowed ones */
    size_t count, capacity;
    bool listed, failed;
};

void cm_renewed_release(struct cm_renewed *self);
/* By each name that the node, which has it, calls it.  `site`: that allocated
 * it; 0: not known. */
bool cm_renewed_is(struct cm_renewed *self, uint32_t node, PyObject *target,
                   struct cm_site_id site);

#endif
