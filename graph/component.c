/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Tarjan's strongly connected components ("Depth-first search and linear
 * graph algorithms", 1972) with an explicit stack: a list of a million nodes
 * is a path of a million steps.  A component is numbered when its root is
 * left, after everything it reaches; that gives the topological order for
 * nothing.  O(nodes + edges) time, five words a node of scratch space. */

#include "component.h"

#include "../detector/alloc.h"

struct search {
    const struct cm_heap *heap;
    uint32_t *of_node; /* borrowed from the result; 0: not yet numbered */
    uint32_t *order;   /* 0: not yet seen */
    uint32_t *low;     /* smallest order known to be reachable */
    uint32_t *cursor;  /* next edge to follow */
    uint32_t *pending; /* seen, not yet numbered */
    uint32_t *path;    /* from the start to the node at hand */
    uint32_t seen, pending_count, path_count, component_count;
};

static void
search_enter(struct search *self, uint32_t node)
{
    self->order[node] = self->low[node] = ++self->seen;
    self->cursor[node] = self->heap->nodes[node].first_edge;
    self->pending[self->pending_count++] = node;
    self->path[self->path_count++] = node;
}

static void
search_number(struct search *self, uint32_t root)
{
    uint32_t node;

    self->component_count++;
    do {
        node = self->pending[--self->pending_count];
        self->of_node[node] = self->component_count;
    } while (node != root);
}

static void
search_leave(struct search *self, uint32_t node)
{
    self->path_count--;
    if (self->low[node] == self->order[node]) {
        search_number(self, node);
    }
    else {
        uint32_t parent = self->path[self->path_count - 1];

        if (self->low[parent] > self->low[node]) {
            self->low[parent] = self->low[node];
        }
    }
}

static void
search_from(struct search *self, uint32_t start)
{
    search_enter(self, start);
    while (self->path_count > 0) {
        uint32_t node = self->path[self->path_count - 1];
        const struct cm_node *record = &self->heap->nodes[node];

        if (self->cursor[node] == record->first_edge + record->edge_count) {
            search_leave(self, node);
            continue;
        }
        uint32_t head = self->heap->edges[self->cursor[node]++].head;
        if (self->order[head] == 0) {
            search_enter(self, head);
        }
        else if (self->of_node[head] == 0
                 && self->low[node] > self->order[head]) {
            self->low[node] = self->order[head];
        }
    }
}

static enum cm_status
search_run(const struct cm_heap *heap, struct cm_components *result)
{
    size_t words = heap->node_count + 1;
    uint32_t *scratch = cm_calloc(words, 5 * sizeof *scratch);
    struct search self = {.heap = heap, .of_node = result->of_node};

    if (scratch == NULL) {
        return CM_NO_MEMORY;
    }
    self.order = scratch;
    self.low = scratch + words;
    self.cursor = scratch + 2 * words;
    self.pending = scratch + 3 * words;
    self.path = scratch + 4 * words;
    for (uint32_t node = 1; node <= heap->node_count; node++) {
        if (self.order[node] == 0) {
            search_from(&self, node);
        }
    }
    result->count = self.component_count;
    cm_free(scratch);
    return CM_OK;
}

/* A counting sort of the nodes by component. */
static enum cm_status
group_nodes(const struct cm_heap *heap, struct cm_components *self)
{
    self->first = cm_calloc(self->count + 3, sizeof *self->first);
    if (self->first == NULL) {
        return CM_NO_MEMORY;
    }
    for (uint32_t node = 1; node <= heap->node_count; node++) {
        self->first[self->of_node[node] + 2]++;
    }
    for (size_t component = 1; component <= self->count + 2; component++) {
        self->first[component] += self->first[component - 1];
    }
    /* first[c + 1] is now where c begins; it ends as where c + 1 begins. */
    for (uint32_t node = 1; node <= heap->node_count; node++) {
        uint32_t place = self->first[self->of_node[node] + 1]++;

        self->nodes[place] = node;
        self->position[node] = place;
    }
    return CM_OK;
}

static void
mark_cyclic(const struct cm_heap *heap, struct cm_components *self)
{
    for (uint32_t component = 1; component <= self->count; component++) {
        self->cyclic[component] = cm_components_size(self, component) > 1;
    }
    for (size_t edge = 1; edge <= heap->edge_count; edge++) {
        if (heap->edges[edge].tail == heap->edges[edge].head) {
            self->cyclic[self->of_node[heap->edges[edge].tail]] = true;
        }
    }
}

enum cm_status
cm_components_find(const struct cm_heap *heap, struct cm_components *result)
{
    size_t words = heap->node_count + 1;
    enum cm_status status = CM_NO_MEMORY;

    *result = (struct cm_components){0};
    result->of_node = cm_calloc(words, sizeof *result->of_node);
    result->nodes = cm_calloc(words, sizeof *result->nodes);
    result->position = cm_calloc(words, sizeof *result->position);
    if (result->of_node == NULL || result->nodes == NULL
        || result->position == NULL) {
        goto done;
    }
    status = search_run(heap, result);
    if (status != CM_OK) {
        goto done;
    }
    status = group_nodes(heap, result);
    if (status != CM_OK) {
        goto done;
    }
    result->cyclic = cm_calloc(result->count + 1, sizeof *result->cyclic);
    if (result->cyclic == NULL) {
        status = CM_NO_MEMORY;
        goto done;
    }
    mark_cyclic(heap, result);
done:
    if (status != CM_OK) {
        cm_components_release(result);
    }
    return status;
}

void
cm_components_release(struct cm_components *self)
{
    cm_free(self->of_node);
    cm_free(self->nodes);
    cm_free(self->position);
    cm_free(self->first);
    cm_free(self->cyclic);
    *self = (struct cm_components){0};
}
