/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FILENAMES_H
#define CM_FILENAMES_H

/* Short names of source files: the base name, and where two different files
 * of a report share it, as many last components as tell them apart. */

#include <stddef.h>

#include "leak.h"
#include "walk.h"

struct cm_filenames {
    const struct cm_leak *leak; /* borrowed */
    struct cm_text_id *items;   /* owned: different names */
    size_t count, capacity;
};

/* All names are kept up to this many; with more, names are shown whole. */
#define CM_FILENAMES_MAX 2000

/* Of what is held without an object, so many are shown. */
#define CM_FILENAMES_HELD 40

/* Every name in the places and allocation frames of the user's that the
 * findings and what is held show.  `self` is zeroed before. */
enum cm_status cm_filenames_init(struct cm_filenames *self,
                                 const struct cm_leak *leak,
                                 const struct cm_leak_finding *findings,
                                 size_t count) CM_CHECKED;
void cm_filenames_release(struct cm_filenames *self);
/* Borrowed from the document. */
const char *cm_filenames_short(const struct cm_filenames *self,
                               struct cm_text_id filename);

#endif
