/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LINECACHE_H
#define CM_LINECACHE_H

/* Code that is in no file, as a notebook's cells: Python's own `linecache` has
 * its text, put there by who compiled it.  The report's lines are read without
 * the GIL, and later; so the texts are copied while it is held.  Nothing of
 * linecache is called. */

#include <stdint.h>

#include "../../detector/records.h"

/* [none; never] Of all code behind `*seen`, which is moved on.  With the GIL.
 * Cost: one comparison where no code is new, else some look-ups each. */
void cm_linecache_copy(struct cm_records *records, uint32_t *seen);

#endif
