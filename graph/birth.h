/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_BIRTH_H
#define CM_BIRTH_H

/* How memory came to be, by the code on the stack that allocated it.  A guess
 * from names of functions and files: not for what must be certain. */

#include "../detector/records.h"

enum cm_birth {
    CM_BIRTH_OTHER = 0,
    CM_BIRTH_LOADED,   /* from a file of weights */
    CM_BIRTH_COPIED,   /* by copy.deepcopy() */
    CM_BIRTH_INPUT,    /* a batch: by a data loader, or moved to a device */
    CM_BIRTH_COMPUTED, /* while a module was called */
};

/* O(frames). */
enum cm_birth cm_birth_of(const struct cm_records *records,
                          struct cm_site_id site);

#endif
