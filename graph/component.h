/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_COMPONENT_H
#define CM_COMPONENT_H

/* The strongly connected components of a heap, and through their numbers the
 * condensation: an edge between two components always leads from the larger
 * number to the smaller one, so descending numbers are a topological order.
 *
 * Invariants: component numbers are 1..count; every node is in one; the nodes
 * of a component are contiguous in `nodes` and ascend. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/heap.h"

struct cm_components {
    uint32_t *of_node;  /* owned; [node_count + 1] component of a node */
    uint32_t *nodes;    /* owned; [node_count] nodes by component */
    uint32_t *position; /* owned; [node_count + 1] of a node in `nodes` */
    uint32_t *first;    /* owned; [count + 2] where its nodes begin */
    bool *cyclic; /* owned; [count + 1] two nodes, or an edge to itself */
    size_t count;
};

/* Cost: O(nodes + edges) time, 40 bytes a node while it runs, 16 after.  On
 * failure `result` is empty. */
enum cm_status cm_components_find(const struct cm_heap *heap,
                                  struct cm_components *result) CM_CHECKED;
/* A zeroed value is valid and empty. */
void cm_components_release(struct cm_components *self);

static inline const uint32_t *
cm_components_nodes(const struct cm_components *self, uint32_t component)
{
    return self->nodes + self->first[component];
}

static inline uint32_t
cm_components_size(const struct cm_components *self, uint32_t component)
{
    return self->first[component + 1] - self->first[component];
}

#endif
