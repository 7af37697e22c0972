/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Three passes over the condensation.  Upwards (ascending numbers): the
 * largest storage within reach, and whether something survived.  Downwards: a
 * cyclic component above.  Then the dominator tree: its nearest cyclic
 * ancestor carries the storage.  All arrays are one word a component or a
 * storage. */

#include "payload.h"

#include "dominator.h"
#include "fingerprint.h"
#include "../detector/alloc.h"

struct passes {
    const struct cm_heap *heap;
    const struct cm_records *records;
    const struct cm_components *components;
    struct cm_dominators dominators;
    uint32_t *above; /* [components + storages + 1] first cyclic above it */
    uint32_t *cyclic_ancestor; /* [components + 1] in the tree, or itself */
    struct cm_payloads *result;
};

static void
find_origins(struct passes *self)
{
    const struct cm_heap *heap = self->heap;

    for (uint32_t node = 1; node <= heap->node_count; node++) {
        uint32_t storage = heap->nodes[node].storage.index;
        struct cm_site_id site;
        uint64_t origin;

        if (storage == 0) {
            continue;
        }
        site = heap->storages[storage].site;
        site = site.index != 0 ? site : heap->nodes[node].site;
        origin = cm_fingerprint_origin(self->records, site);
        /* Of several users the largest hash: the order must not matter. */
        if (origin > self->result->origin[storage]) {
            self->result->origin[storage] = origin;
        }
    }
}

/* The storage that a person would call the payload. */
static uint32_t
larger(const struct passes *self, uint32_t a, uint32_t b)
{
    const struct cm_storage *left, *right;

    if (a == 0 || b == 0) {
        return a != 0 ? a : b;
    }
    left = &self->heap->storages[a];
    right = &self->heap->storages[b];
    if (cm_storage_is_freed(left) != cm_storage_is_freed(right)) {
        return cm_storage_is_freed(left) ? a : b;
    }
    if (left->bytes != right->bytes) {
        return left->bytes > right->bytes ? a : b;
    }
    return self->result->origin[a] >= self->result->origin[b] ? a : b;
}

static void
look_down_from(struct passes *self, uint32_t component, uint32_t node)
{
    const struct cm_node *record = &self->heap->nodes[node];
    struct cm_payloads *result = self->result;
    uint32_t largest =
        larger(self, result->largest[component], record->storage.index);
    bool survived = result->survived[component] || record->survived;

    for (uint32_t i = 0; i < record->edge_count; i++) {
        uint32_t head = self->heap->edges[record->first_edge + i].head;
        uint32_t below = self->components->of_node[head];

        largest = larger(self, largest, result->largest[below]);
        survived = survived || result->survived[below];
    }
    result->largest[component] = largest;
    result->survived[component] = survived;
}

static void
look_down(struct passes *self)
{
    for (uint32_t component = 1; component <= self->components->count;
         component++) {
        const uint32_t *nodes =
            cm_components_nodes(self->components, component);
        uint32_t size = cm_components_size(self->components, component);

        for (uint32_t i = 0; i < size; i++) {
            look_down_from(self, component, nodes[i]);
        }
    }
}

/* Of two cyclic components the one that comes first in the heap. */
static uint32_t
earlier(const struct passes *self, uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0) {
        return a != 0 ? a : b;
    }
    return cm_components_nodes(self->components, a)[0]
                   <= cm_components_nodes(self->components, b)[0]
               ? a
               : b;
}

static void
look_up_from(struct passes *self, uint32_t component, uint32_t node)
{
    const struct cm_node *record = &self->heap->nodes[node];
    uint32_t above = self->above[component];
    uint32_t *of_storage =
        self->above + self->components->count + record->storage.index;

    for (uint32_t i = 0; i < record->edge_count; i++) {
        uint32_t head = self->heap->edges[record->first_edge + i].head;
        uint32_t below = self->components->of_node[head];

        if (below != component) {
            self->above[below] = earlier(self, self->above[below], above);
        }
    }
    if (record->storage.index != 0) {
        *of_storage = earlier(self, *of_storage, above);
    }
}

static void
look_up(struct passes *self)
{
    uint32_t count = (uint32_t)self->components->count;

    for (uint32_t component = count; component > 0; component--) {
        const uint32_t *nodes =
            cm_components_nodes(self->components, component);
        uint32_t size = cm_components_size(self->components, component);
        uint32_t parent = self->dominators.parent[component];
        bool cyclic = self->components->cyclic[component];

        if (cyclic) {
            self->above[component] = component;
        }
        self->cyclic_ancestor[component] =
            cyclic ? component : self->cyclic_ancestor[parent];
        for (uint32_t i = 0; i < size; i++) {
            look_up_from(self, component, nodes[i]);
        }
    }
}

/* A counting sort of the storages by carrier. */
static void
assign_carriers(struct passes *self)
{
    struct cm_payloads *result = self->result;
    size_t components = self->components->count;
    uint32_t storages = (uint32_t)self->heap->storage_count;

    for (uint32_t storage = 1; storage <= storages; storage++) {
        uint32_t parent = cm_dominators_of_storage(&self->dominators, storage);
        uint32_t carrier = self->cyclic_ancestor[parent];

        carrier = carrier != 0 ? carrier : self->above[components + storage];
        result->carrier[storage] = carrier;
        result->first[carrier + 2]++;
    }
    for (size_t i = 1; i < components + 3; i++) {
        result->first[i] += result->first[i - 1];
    }
    for (uint32_t storage = 1; storage <= storages; storage++) {
        uint32_t carrier = result->carrier[storage];

        result->carried[result->first[carrier + 1]++] = storage;
    }
}

static enum cm_status
allocate(struct passes *self)
{
    struct cm_payloads *result = self->result;
    size_t components = self->components->count + 1;
    size_t storages = self->heap->storage_count + 1;

    self->above = cm_calloc(components + storages, sizeof *self->above);
    self->cyclic_ancestor =
        cm_calloc(components, sizeof *self->cyclic_ancestor);
    result->origin = cm_calloc(storages, sizeof *result->origin);
    result->carrier = cm_calloc(storages, sizeof *result->carrier);
    result->carried = cm_calloc(storages, sizeof *result->carried);
    result->largest = cm_calloc(components, sizeof *result->largest);
    result->survived = cm_calloc(components, sizeof *result->survived);
    result->first = cm_calloc(components + 2, sizeof *result->first);
    return self->above != NULL && self->cyclic_ancestor != NULL
                   && result->origin != NULL && result->carrier != NULL
                   && result->carried != NULL && result->largest != NULL
                   && result->survived != NULL && result->first != NULL
               ? CM_OK
               : CM_NO_MEMORY;
}

enum cm_status
cm_payloads_find(const struct cm_heap *heap, const struct cm_records *records,
                 const struct cm_components *components,
                 struct cm_payloads *result)
{
    struct passes self = {.heap = heap,
                          .records = records,
                          .components = components,
                          .result = result};
    enum cm_status status;

    *result = (struct cm_payloads){0};
    status = allocate(&self);
    if (status != CM_OK) {
        goto done;
    }
    status = cm_dominators_find(heap, components, &self.dominators);
    if (status != CM_OK) {
        goto done;
    }
    find_origins(&self);
    look_down(&self);
    look_up(&self);
    assign_carriers(&self);
done:
    cm_dominators_release(&self.dominators);
    cm_free(self.above);
    cm_free(self.cyclic_ancestor);
    if (status != CM_OK) {
        cm_payloads_release(result);
    }
    return status;
}

void
cm_payloads_release(struct cm_payloads *self)
{
    cm_free(self->origin);
    cm_free(self->carrier);
    cm_free(self->carried);
    cm_free(self->largest);
    cm_free(self->survived);
    cm_free(self->first);
    *self = (struct cm_payloads){0};
}

bool
cm_payloads_frees(const struct cm_payloads *self, const struct cm_heap *heap,
                  uint32_t component, uint32_t storage)
{
    return !self->survived[component]
           && cm_storage_is_freed(&heap->storages[storage]);
}

uint64_t
cm_payloads_bytes(const struct cm_payloads *self, const struct cm_heap *heap,
                  uint32_t component)
{
    const uint32_t *carried = cm_payloads_carried(self, component);
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < cm_payloads_count(self, component); i++) {
        if (cm_payloads_frees(self, heap, component, carried[i])) {
            bytes += heap->storages[carried[i]].bytes;
        }
    }
    return bytes;
}
