/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Three arrays that grow by doubling, and an index from a storage's key to
 * its place.  Edges arrive in order of their tails, so that sealing is two
 * passes of counting: O(nodes + edges).  Ids are 32 bits wide and the arrays
 * refuse what would not fit. */

#include "heap.h"

#include "alloc.h"

void
cm_heap_release(struct cm_heap *self)
{
    cm_free(self->nodes);
    cm_free(self->edges);
    cm_free(self->storages);
    cm_index_release(&self->storage_index);
    *self = (struct cm_heap){0};
}

void
cm_heap_clear(struct cm_heap *self)
{
    cm_index_clear(&self->storage_index);
    *self = (struct cm_heap){
        .nodes = self->nodes,
        .node_capacity = self->node_capacity,
        .edges = self->edges,
        .edge_capacity = self->edge_capacity,
        .storages = self->storages,
        .storage_capacity = self->storage_capacity,
        .storage_index = self->storage_index,
    };
}

/* Room for one more item after `count` items that start at place 1. */
static enum cm_status
grow_by_one(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count >= UINT32_MAX - 1) {
        return CM_LIMIT;
    }
    return cm_grow(items, capacity, count + 2, item_bytes);
}

enum cm_status
cm_heap_add_node(struct cm_heap *self, const struct cm_node *node,
                 struct cm_node_id *result)
{
    enum cm_status status =
        grow_by_one((void **)&self->nodes, &self->node_capacity,
                    self->node_count, sizeof(*self->nodes));
    if (status != CM_OK) {
        return status;
    }
    self->node_count++;
    self->nodes[self->node_count] = *node;
    self->nodes[self->node_count].first_edge = 0;
    self->nodes[self->node_count].edge_count = 0;
    result->index = (uint32_t)self->node_count;
    return CM_OK;
}

struct wanted {
    const struct cm_storage *storages;
    uint64_t key;
};

static bool
is_wanted(const void *context, uint32_t number)
{
    const struct wanted *wanted = context;
    return wanted->storages[number].key == wanted->key;
}

static enum cm_status
add_new_storage(struct cm_heap *self, const struct cm_storage *storage,
                uint32_t hash, uint32_t *number)
{
    enum cm_status status = cm_index_reserve(&self->storage_index);
    if (status != CM_OK) {
        return status;
    }
    status = grow_by_one((void **)&self->storages, &self->storage_capacity,
                         self->storage_count, sizeof(*self->storages));
    if (status != CM_OK) {
        return status;
    }
    self->storage_count++;
    *number = (uint32_t)self->storage_count;
    self->storages[*number] = *storage;
    self->storages[*number].uses_here = 0;
    cm_index_put(&self->storage_index, hash, *number);
    return CM_OK;
}

enum cm_status
cm_heap_add_storage(struct cm_heap *self, const struct cm_storage *storage,
                    struct cm_storage_id *result)
{
    struct wanted wanted = {self->storages, storage->key};
    uint32_t hash = cm_hash(0, &storage->key, sizeof(storage->key));
    uint32_t number =
        cm_index_find(&self->storage_index, hash, is_wanted, &wanted);
    if (number == 0) {
        enum cm_status status = add_new_storage(self, storage, hash, &number);
        if (status != CM_OK) {
            return status;
        }
    }
    struct cm_storage *known = &self->storages[number];
    known->uses_here++;
    if (known->site.index == 0) {
        known->site = storage->site;
    }
    if (known->block_bytes == 0) {
        known->block_bytes = storage->block_bytes;
        known->stream = storage->stream;
        known->pool = storage->pool;
        known->thread = storage->thread;
        known->awaited = storage->awaited;
    }
    result->index = number;
    return CM_OK;
}

static bool
is_node(const struct cm_heap *self, uint32_t index)
{
    return index >= 1 && index <= self->node_count;
}

enum cm_status
cm_heap_add_edge(struct cm_heap *self, const struct cm_edge *edge)
{
    if (!is_node(self, edge->tail) || !is_node(self, edge->head)) {
        return CM_MISUSE;
    }
    if (self->edge_count > 0
        && edge->tail < self->edges[self->edge_count].tail) {
        return CM_MISUSE;
    }
    enum cm_status status =
        grow_by_one((void **)&self->edges, &self->edge_capacity,
                    self->edge_count, sizeof(*self->edges));
    if (status != CM_OK) {
        return status;
    }
    self->edge_count++;
    self->edges[self->edge_count] = *edge;
    return CM_OK;
}

/* A node without edges gets the place where its edges would begin. */
enum cm_status
cm_heap_seal(struct cm_heap *self)
{
    size_t edge = 1;
    for (size_t index = 1; index <= self->node_count; index++) {
        struct cm_node *node = &self->nodes[index];
        node->first_edge = (uint32_t)edge;
        while (edge <= self->edge_count && self->edges[edge].tail == index) {
            edge++;
        }
        node->edge_count = (uint32_t)edge - node->first_edge;
    }
#ifdef CM_DEBUG
    if (cm_heap_check(self) != NULL) {
        return CM_MISUSE;
    }
#endif
    return CM_OK;
}

static const char *
check_node(const struct cm_heap *self, size_t index, size_t first_edge)
{
    const struct cm_node *node = &self->nodes[index];
    if (node->species >= CM_SPECIES_COUNT) {
        return "a node has no known species";
    }
    if (node->storage.index > self->storage_count) {
        return "a node names a storage that does not exist";
    }
    if (node->first_edge != first_edge) {
        return "the edges of a node do not follow those of the node before";
    }
    if (node->edge_count > self->edge_count - (first_edge - 1)) {
        return "a node has more edges than there are";
    }
    for (size_t edge = first_edge; edge < first_edge + node->edge_count;
         edge++) {
        if (self->edges[edge].tail != index) {
            return "an edge stands under another node than its tail";
        }
        if (!is_node(self, self->edges[edge].head)) {
            return "an edge leads to a node that does not exist";
        }
        if (self->edges[edge].role >= CM_ROLE_COUNT) {
            return "an edge has no known role";
        }
    }
    return NULL;
}

static const char *
check_storages(const struct cm_heap *self)
{
    for (size_t index = 1; index <= self->storage_count; index++) {
        const struct cm_storage *storage = &self->storages[index];
        struct wanted wanted = {self->storages, storage->key};
        uint32_t hash = cm_hash(0, &storage->key, sizeof(storage->key));
        if (cm_index_find(&self->storage_index, hash, is_wanted, &wanted)
            != index) {
            return "a storage is not found by its key";
        }
        if (storage->uses_here == 0) {
            return "a storage has no use in this heap";
        }
    }
    return NULL;
}

const char *
cm_heap_check(const struct cm_heap *self)
{
    size_t first_edge = 1;
    for (size_t index = 1; index <= self->node_count; index++) {
        const char *wrong = check_node(self, index, first_edge);
        if (wrong != NULL) {
            return wrong;
        }
        first_edge += self->nodes[index].edge_count;
    }
    if (first_edge - 1 != self->edge_count) {
        return "an edge stands under no node";
    }
    return check_storages(self);
}

size_t
cm_heap_footprint(const struct cm_heap *self)
{
    return self->node_capacity * sizeof(*self->nodes)
           + self->edge_capacity * sizeof(*self->edges)
           + self->storage_capacity * sizeof(*self->storages)
           + self->storage_index.capacity * sizeof(struct cm_index_slot);
}
