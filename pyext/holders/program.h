/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PROGRAM_H
#define CM_PROGRAM_H

/* The program's own code: what the walk has met or what runs, and is no
 * library's, with the functions that it makes.  The code of a module is there
 * only while it runs.  O(objects of the walk), once. */

#include "reach.h"

/* All that is asked after one walk.  Zeroed but for it, it is valid. */
struct cm_program {
    const struct cm_reach *reach; /* borrowed; the walk is over */
    PyCodeObject **codes;         /* owned, of borrowed ones */
    size_t count;
    bool failed; /* some are missing */
    /* Private. */
    size_t capacity;
    bool listed;
};

/* The code of a module that is a file runs.  That of the main one is gone at the
 * end of a run, and its lines with it. */
bool cm_program_has_main(const struct cm_program *self);
/* Before `codes` is read. */
void cm_program_list(struct cm_program *self);
void cm_program_release(struct cm_program *self);

#endif
