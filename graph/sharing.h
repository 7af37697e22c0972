/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SHARING_H
#define CM_SHARING_H

/* Which groups of equal cycles reach the same storages.  Groups are numbers
 * from 1; a set of them is bounded, what is beyond is left out. */

#include <stdbool.h>
#include <stdint.h>

#include "payload.h"

#define CM_MAX_SHARED 8

struct cm_group_set {
    uint32_t count;
    uint32_t groups[CM_MAX_SHARED];
};

struct cm_sharing {
    struct cm_group_set *with; /* owned; [groups + 1] the other groups */
    bool *carries;             /* owned; [groups + 1] it counts the bytes */
};

/* `group_of` gives the group of each component, 0: none.  Cost: O(nodes +
 * edges) unions of bounded sets.  On failure `result` is empty. */
enum cm_status cm_sharing_find(const struct cm_heap *heap,
                               const struct cm_components *components,
                               const struct cm_payloads *payloads,
                               const uint32_t *group_of, uint32_t groups,
                               struct cm_sharing *result) CM_CHECKED;
/* A zeroed value is valid and empty. */
void cm_sharing_release(struct cm_sharing *self);

#endif
