/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Against the references, from the targets, the nodes that lead to one are
 * found; only these become nodes of the heap, before them one for each root.
 * Links come in the order of their tails' turn, but a heap wants them by tail:
 * they are sorted by counting.  O(nodes + links) before the dominators. */

#include "retained.h"

#include "../detector/alloc.h"

void
cm_retained_release(struct cm_retained *self)
{
    cm_dominators_release(&self->dominators);
    cm_components_release(&self->components);
    cm_heap_release(&self->heap);
    cm_free(self->heap_nodes);
    *self = (struct cm_retained){0};
}

/* Links by one of their ends: those of end e stand from first[e]. */
struct sorted {
    uint32_t *first; /* owned; [ends + 2] */
    uint32_t *links; /* owned; indices */
};

static void
sorted_release(struct sorted *self)
{
    cm_free(self->first);
    cm_free(self->links);
}

/* Roots come behind the nodes. */
static uint32_t
end_of(const struct cm_reach *reach, size_t link, bool by_tail)
{
    uint32_t end = by_tail ? reach->links[link].tail : reach->links[link].head;
    return end < CM_FROM_ROOT ? end
                              : reach->node_count + 1 + (end & ~CM_FROM_ROOT);
}

static enum cm_status
sort_links(const struct cm_reach *reach, bool by_tail, struct sorted *result)
{
    size_t ends = (size_t)reach->node_count + reach->roots->count + 1;
    result->first = cm_calloc(ends + 2, sizeof(*result->first));
    result->links = cm_calloc(reach->link_count + 1, sizeof(*result->links));
    if (result->first == NULL || result->links == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < reach->link_count; i++) {
        result->first[end_of(reach, i, by_tail) + 2]++;
    }
    for (size_t i = 2; i < ends + 2; i++) {
        result->first[i] += result->first[i - 1];
    }
    for (size_t i = 0; i < reach->link_count; i++) {
        result->links[result->first[end_of(reach, i, by_tail) + 1]++] =
            (uint32_t)i;
    }
    return CM_OK;
}

/* Marks in `leads` (by end, as end_of() counts) what leads to a target. */
static enum cm_status
find_leading(const struct cm_reach *reach, const struct sorted *by_head,
             bool *leads)
{
    size_t ends = (size_t)reach->node_count + reach->roots->count + 1;
    uint32_t *queue = cm_calloc(ends + 1, sizeof(*queue));
    size_t next = 0, count = 0;
    if (queue == NULL) {
        return CM_NO_MEMORY;
    }
    for (uint32_t i = 0; i < reach->target_count; i++) {
        uint32_t node = reach->target_nodes[i];
        if (node != 0 && !leads[node]) {
            leads[node] = true;
            queue[count++] = node;
        }
    }
    while (next < count) {
        uint32_t head = queue[next++];
        for (uint32_t i = by_head->first[head]; i < by_head->first[head + 1];
             i++) {
            uint32_t tail = end_of(reach, by_head->links[i], true);
            if (!leads[tail]) {
                leads[tail] = true;
                queue[count++] = tail;
            }
        }
    }
    cm_free(queue);
    return CM_OK;
}

/* ---- the heap */

static enum cm_status
add_storage(struct cm_retained *self, const struct cm_reach *reach,
            struct cm_records *records, uint32_t from, struct cm_node *node)
{
    struct cm_device_memory memory = {0};
    PyObject *object = reach->objects[from];
    if (reach->devices == NULL
        || !cm_devices_claim(reach->devices, Py_TYPE(object))
        || !cm_devices_read(reach->devices, object, &memory)) {
        return CM_OK;
    }
    struct cm_storage storage = {
        .key = memory.storage_key,
        .device_address = memory.device_address,
        .bytes = memory.bytes,
        .device = cm_texts_intern(cm_records_texts(records), memory.device),
        .use_count = memory.use_count,
        .reader = memory.reader,
    };
    while (cm_devices_next(reach->devices, object, &memory)) {
        storage.bytes += memory.bytes; /* all of them go with the object */
    }
    return cm_heap_add_storage(&self->heap, &storage, &node->storage);
}

/* heap_nodes[] has room for the roots too while this runs. */
static enum cm_status
add_nodes(struct cm_retained *self, const struct cm_reach *reach,
          struct cm_records *records, const bool *leads)
{
    size_t ends = (size_t)reach->node_count + reach->roots->count + 1;
    enum cm_status status = CM_OK;
    for (uint32_t end = 1; end < ends && status == CM_OK; end++) {
        struct cm_node node = {.address = end};
        struct cm_node_id id;
        if (!leads[end]) {
            continue;
        }
        if (end <= reach->node_count) {
            status = add_storage(self, reach, records, end, &node);
        }
        if (status == CM_OK) {
            status = cm_heap_add_node(&self->heap, &node, &id);
        }
        if (status == CM_OK) {
            self->heap_nodes[end] = id.index;
        }
    }
    return status;
}

static enum cm_status
add_edges(struct cm_retained *self, const struct cm_reach *reach,
          const struct sorted *by_tail)
{
    size_t ends = (size_t)reach->node_count + reach->roots->count + 1;
    enum cm_status status = CM_OK;
    for (size_t end = 1; end < ends && status == CM_OK; end++) {
        uint32_t last = by_tail->first[end + 1];
        for (uint32_t i = by_tail->first[end];
             i < last && self->heap_nodes[end] != 0 && status == CM_OK; i++) {
            struct cm_edge edge = {.tail = self->heap_nodes[end]};
            edge.head = self->heap_nodes[reach->links[by_tail->links[i]].head];
            if (edge.head != 0) {
                status = cm_heap_add_edge(&self->heap, &edge);
            }
        }
    }
    return status;
}

static enum cm_status
make_heap(struct cm_retained *self, const struct cm_reach *reach,
          struct cm_records *records)
{
    size_t ends = (size_t)reach->node_count + reach->roots->count + 1;
    struct sorted by_head = {0}, by_tail = {0};
    bool *leads = cm_calloc(ends + 1, sizeof(*leads));
    self->heap_nodes = cm_calloc(ends + 1, sizeof(*self->heap_nodes));
    enum cm_status status =
        leads == NULL || self->heap_nodes == NULL ? CM_NO_MEMORY : CM_OK;
    if (status == CM_OK) {
        status = sort_links(reach, false, &by_head);
    }
    if (status == CM_OK) {
        status = find_leading(reach, &by_head, leads);
    }
    if (status == CM_OK) {
        status = sort_links(reach, true, &by_tail);
    }
    if (status == CM_OK) {
        status = add_nodes(self, reach, records, leads);
    }
    if (status == CM_OK) {
        status = add_edges(self, reach, &by_tail);
    }
    if (status == CM_OK) {
        status = cm_heap_seal(&self->heap);
    }
    sorted_release(&by_head);
    sorted_release(&by_tail);
    cm_free(leads);
    return status;
}

enum cm_status
cm_retained_find(struct cm_retained *self, const struct cm_reach *reach,
                 struct cm_records *records)
{
    *self = (struct cm_retained){0};
    if (reach->cut || reach->bounds.max_edges == 0) {
        return CM_OK;
    }
    enum cm_status status = make_heap(self, reach, records);
    if (status == CM_OK) {
        status = cm_components_find(&self->heap, &self->components);
    }
    if (status == CM_OK) {
        status = cm_dominators_find(&self->heap, &self->components,
                                    &self->dominators);
    }
    if (status != CM_OK) {
        cm_retained_release(self);
    }
    self->known = status == CM_OK;
    return status;
}

/* ---- questions */

static uint32_t
component_of(const struct cm_retained *self, uint32_t node)
{
    uint32_t id = self->heap_nodes[node];
    return id == 0 ? 0 : self->components.of_node[id];
}

uint64_t
cm_retained_bytes(const struct cm_retained *self, uint32_t node)
{
    uint32_t component = component_of(self, node);
    return component == 0 ? 0 : self->dominators.retained[component];
}

struct cm_storage_id
cm_retained_storage(const struct cm_retained *self, uint32_t node)
{
    return self->heap.nodes[self->heap_nodes[node]].storage;
}

bool
cm_retained_goes(const struct cm_retained *self, uint32_t node,
                 struct cm_storage_id storage)
{
    uint32_t component = component_of(self, node);
    uint32_t above =
        cm_dominators_of_storage(&self->dominators, storage.index);
    while (above != 0 && above != component) {
        above = self->dominators.parent[above];
    }
    return component != 0 && above == component
           && cm_storage_is_freed(&self->heap.storages[storage.index]);
}
