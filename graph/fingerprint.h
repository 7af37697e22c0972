/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FINGERPRINT_H
#define CM_FINGERPRINT_H

/* A number that equal cycles share: in one heap, in the next one, in another
 * process.  It depends on the structure of a component, on the names of
 * types, attributes, variables and functions, on the file (without its
 * folder) of code, and on the function that allocated the payload.  It does
 * not depend on the order of nodes or edges, nor on lines, addresses, values,
 * shapes, indices, or keys that are data. */

#include <stdbool.h>
#include <stdint.h>

#include "component.h"
#include "../detector/records.h"

struct cm_hashed_text {
    uint32_t text;
    uint64_t hash;
};

struct cm_fingerprints {
    const struct cm_heap *heap;
    const struct cm_records *records;
    const struct cm_components *components;
    uint64_t *colors;             /* owned; [node_count] by position */
    uint64_t *sums;               /* owned; the same, of the round at hand */
    struct cm_hashed_text *texts; /* owned; labels seen lately */
    uint32_t text_places;         /* a power of two */
};

/* `self` is zeroed before, empty after a failure. */
enum cm_status cm_fingerprints_init(struct cm_fingerprints *self,
                                    const struct cm_heap *heap,
                                    const struct cm_records *records,
                                    const struct cm_components *components)
    CM_CHECKED;
void cm_fingerprints_release(struct cm_fingerprints *self);

/* Cost: O(nodes + edges) of the component.  `origin` says where the payload
 * comes from, `kind` tells apart what must not be folded.  Never 0. */
uint64_t cm_fingerprint_of(struct cm_fingerprints *self, uint32_t component,
                           uint64_t origin, uint64_t kind);

/* The function that allocated: the first frame outside of libraries, else the
 * innermost; 0 when the stack is not known. */
uint64_t cm_fingerprint_origin(const struct cm_records *records,
                               struct cm_site_id site);

#endif
