/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_WALK_H
#define CM_WALK_H

/* The findings of a document, in the order in which they are told. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leak.h"

/* Both kinds of finding, those that cost most first; of a fault's lines
 * (fault.h) the first alone.  Before: cm_leak_sort() was called.  A zeroed walk
 * with `leak` set is at the start. */
struct cm_leak_finding {
    bool growth; /* of leak->growth, else of leak->cycles */
    size_t index;
};
struct cm_leak_walk {
    const struct cm_leak *leak; /* borrowed */
    size_t cycle, growth;       /* the next ones */
};
bool cm_leak_walk_next(struct cm_leak_walk *self,
                       struct cm_leak_finding *result);

/* Linear in the fingerprints. */
bool cm_fingerprint_is_among(uint64_t fingerprint,
                             const uint64_t *fingerprints, size_t count);

#endif
