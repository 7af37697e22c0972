/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_RETAINED_H
#define CM_RETAINED_H

/* What goes with an object: the walk's references that lead to targets, as a
 * heap of detector/ with the roots as its sources, and the dominators of it.
 * Storages count once; one that is held elsewhere too goes with nobody. */

#include "../../graph/dominator.h"
#include "reach.h"

/* A zeroed value is valid and empty. */
struct cm_retained {
    struct cm_heap heap;
    struct cm_components components;
    struct cm_dominators dominators;
    uint32_t *heap_nodes; /* owned; [reach.node_count + 1]; 0: leads nowhere */
    bool known;
};

/* Before: the walk kept its references.  `known` is false where it was cut.
 * After a failure: empty. */
enum cm_status cm_retained_find(struct cm_retained *self,
                                const struct cm_reach *reach,
                                struct cm_records *records) CM_CHECKED;
void cm_retained_release(struct cm_retained *self);

/* Bytes that go with this node of the walk. */
uint64_t cm_retained_bytes(const struct cm_retained *self, uint32_t node);
/* The storage of a target's node; id 0: none. */
struct cm_storage_id cm_retained_storage(const struct cm_retained *self,
                                         uint32_t node);
/* Whether the storage goes with the node. */
bool cm_retained_goes(const struct cm_retained *self, uint32_t node,
                      struct cm_storage_id storage);

#endif
