/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_CUT_H
#define CM_CUT_H

/* Which reference of a cycle a person would cut, the line that made it, and
 * the sentence that says what to write instead. */

#include <stdint.h>

#include "made.h"
#include "suspect.h"

struct cm_cut {
    struct cm_suspect suspect;
    const char *rule; /* constant: name of the row */
    struct cm_made made;
    char *advice;  /* owned */
    char *library; /* owned; NULL: the user's own code */
};

/* Cost: O(nodes + edges) of the component.  `result` is empty after a
 * failure. */
enum cm_status cm_cut_find(struct cm_cycle *cycle, struct cm_cut *result)
    CM_CHECKED;
/* A zeroed value is valid and empty. */
void cm_cut_release(struct cm_cut *self);

#endif
