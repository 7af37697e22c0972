/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DOMINATOR_H
#define CM_DOMINATOR_H

/* Who retains what.  A component dominates another component, or a storage,
 * when every way to it from the sources of the condensation passes through
 * it: would it go, so would they.  Above the sources stands a virtual root,
 * number 0.
 *
 * Invariant: the dominator of a component has a larger number, or is 0. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "component.h"

struct cm_dominators {
    /* Items are the components 1.., then the storages; [0] is the root. */
    uint32_t *parent; /* owned; immediate dominator, a component or 0 */
    uint32_t *depth;  /* owned; the root is 0 */
    uint32_t *jump;   /* owned; an ancestor far above, see dominator.c */
    uint64_t
        *retained; /* owned; [component_count + 1] bytes that go with it */
    size_t component_count;
};

/* Cost: O((nodes + edges) log nodes) time, O(components + storages) space.
 * On failure `result` is empty. */
enum cm_status cm_dominators_find(const struct cm_heap *heap,
                                  const struct cm_components *components,
                                  struct cm_dominators *result) CM_CHECKED;
/* A zeroed value is valid and empty. */
void cm_dominators_release(struct cm_dominators *self);

/* The component that immediately dominates the storage; 0: none does. */
static inline uint32_t
cm_dominators_of_storage(const struct cm_dominators *self, uint32_t storage)
{
    return self->parent[self->component_count + storage];
}

/* Would the storage be freed if all of this heap were? */
static inline bool
cm_storage_is_freed(const struct cm_storage *storage)
{
    return storage->use_count == 0 || storage->uses_here >= storage->use_count;
}

#endif
