/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Dominators over the condensation.  It has no cycles, so one pass in
 * topological order is exact: the dominator of an item is the nearest common
 * ancestor, in the tree built so far, of all its predecessors (the step of
 * Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", 2001).
 * Their walk up the tree is linear in its depth and quadratic on long lists;
 * here each item has a jump pointer (Myers, "An applicative random-access
 * stack", 1983), which makes it logarithmic in one extra word. */

#include "dominator.h"

#include "../detector/alloc.h"

#define ROOT 0u
#define NOT_REACHED UINT32_MAX

static void
place_below(struct cm_dominators *self, uint32_t item, uint32_t parent)
{
    uint32_t jump = self->jump[parent];
    uint32_t first = self->depth[parent] - self->depth[jump];
    uint32_t second = self->depth[jump] - self->depth[self->jump[jump]];

    self->parent[item] = parent;
    self->depth[item] = self->depth[parent] + 1;
    self->jump[item] = first == second ? self->jump[jump] : parent;
}

static uint32_t
lift(const struct cm_dominators *self, uint32_t item, uint32_t depth)
{
    while (self->depth[item] > depth) {
        uint32_t jump = self->jump[item];

        item = self->depth[jump] >= depth ? jump : self->parent[item];
    }
    return item;
}

static uint32_t
common_ancestor(const struct cm_dominators *self, uint32_t a, uint32_t b)
{
    a = lift(self, a, self->depth[b]);
    b = lift(self, b, self->depth[a]);
    while (a != b) {
        bool far = self->jump[a] != self->jump[b];

        a = far ? self->jump[a] : self->parent[a];
        b = far ? self->jump[b] : self->parent[b];
    }
    return a;
}

/* `item` is referred to from `component`, whose own place is final. */
static void
reach(struct cm_dominators *self, uint32_t item, uint32_t component)
{
    uint32_t known = self->parent[item];

    self->parent[item] = known == NOT_REACHED
                             ? component
                             : common_ancestor(self, known, component);
}

static void
reach_from_node(struct cm_dominators *self, const struct cm_heap *heap,
                const struct cm_components *components, uint32_t node)
{
    const struct cm_node *record = &heap->nodes[node];
    uint32_t component = components->of_node[node];

    for (uint32_t i = 0; i < record->edge_count; i++) {
        uint32_t head = heap->edges[record->first_edge + i].head;

        if (components->of_node[head] != component) {
            reach(self, components->of_node[head], component);
        }
    }
    if (record->storage.index != 0) {
        reach(self, (uint32_t)components->count + record->storage.index,
              component);
    }
}

static void
build_tree(struct cm_dominators *self, const struct cm_heap *heap,
           const struct cm_components *components)
{
    uint32_t count = (uint32_t)components->count;
    uint32_t items = count + (uint32_t)heap->storage_count;

    self->parent[ROOT] = self->depth[ROOT] = self->jump[ROOT] = ROOT;
    for (uint32_t item = 1; item <= items; item++) {
        self->parent[item] = NOT_REACHED;
    }
    for (uint32_t component = count; component > 0; component--) {
        const uint32_t *nodes = cm_components_nodes(components, component);
        uint32_t size = cm_components_size(components, component);
        uint32_t parent = self->parent[component];

        place_below(self, component, parent == NOT_REACHED ? ROOT : parent);
        for (uint32_t i = 0; i < size; i++) {
            reach_from_node(self, heap, components, nodes[i]);
        }
    }
    for (uint32_t item = count + 1; item <= items; item++) {
        uint32_t parent = self->parent[item];

        place_below(self, item, parent == NOT_REACHED ? ROOT : parent);
    }
}

static void
add_retained(struct cm_dominators *self, const struct cm_heap *heap)
{
    for (uint32_t i = 1; i <= heap->storage_count; i++) {
        if (cm_storage_is_freed(&heap->storages[i])) {
            self->retained[cm_dominators_of_storage(self, i)] +=
                heap->storages[i].bytes;
        }
    }
    for (uint32_t item = 1; item <= self->component_count; item++) {
        self->retained[self->parent[item]] += self->retained[item];
    }
}

enum cm_status
cm_dominators_find(const struct cm_heap *heap,
                   const struct cm_components *components,
                   struct cm_dominators *result)
{
    size_t items = components->count + heap->storage_count + 1;

    *result = (struct cm_dominators){.component_count = components->count};
    result->parent = cm_calloc(items, sizeof *result->parent);
    result->depth = cm_calloc(items, sizeof *result->depth);
    result->jump = cm_calloc(items, sizeof *result->jump);
    result->retained =
        cm_calloc(components->count + 1, sizeof *result->retained);
    if (result->parent == NULL || result->depth == NULL || result->jump == NULL
        || result->retained == NULL) {
        cm_dominators_release(result);
        return CM_NO_MEMORY;
    }
    build_tree(result, heap, components);
    add_retained(result, heap);
    return CM_OK;
}

void
cm_dominators_release(struct cm_dominators *self)
{
    cm_free(self->parent);
    cm_free(self->depth);
    cm_free(self->jump);
    cm_free(self->retained);
    *self = (struct cm_dominators){0};
}
