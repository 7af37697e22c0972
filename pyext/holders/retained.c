/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Against the references, from the targets, the nodes that lead to one are
 * found; only these become nodes of the heap, behind them one for each root.
 * Links come in the order of their tails' turn, so one sweep from the last to
 * the first finds all that lead there by ways that the walk itself went; ways
 * back need further sweeps, and where a few do not suffice a queue over links
 * that are sorted by their heads.  A heap wants its edges by tail: those few
 * are sorted by counting.  O(nodes + links) before the dominators. */

#include "retained.h"

#include "../../detector/alloc.h"

void
cm_retained_release(struct cm_retained *self)
{
    cm_dominators_release(&self->dominators);
    cm_components_release(&self->components);
    cm_heap_release(&self->heap);
    cm_free(self->heap_nodes);
    *self = (struct cm_retained){0};
}

enum { SWEEPS = 4 };

/* Roots come behind the nodes. */
static size_t
ends_of(const struct cm_reach *reach)
{
    return (size_t)reach->node_count + reach->roots->count + 1;
}

static inline uint32_t
end_of(const struct cm_reach *reach, uint32_t tail)
{
    return tail < CM_FROM_ROOT
               ? tail
               : reach->node_count + 1 + (tail & ~CM_FROM_ROOT);
}

/* The other ends of links, by a number of the one end, which is 0 for those
 * that are left out: those of number n stand from first[n]. */
struct sorted {
    uint32_t *first; /* owned; [most + 3] */
    uint32_t *ends;  /* owned */
};

static void
sorted_release(struct sorted *self)
{
    cm_free(self->first);
    cm_free(self->ends);
}

/* By the heap's number of their tail (numbers[end]), else by their head. */
static inline uint32_t
number_of(const struct cm_reach *reach, const struct cm_link *link,
          const uint32_t *numbers)
{
    return numbers != NULL ? numbers[end_of(reach, link->tail)] : link->head;
}

static enum cm_status
sort_links(const struct cm_reach *reach, const uint32_t *numbers, size_t most,
           struct sorted *result)
{
    size_t kept = 0;
    result->first = cm_calloc(most + 3, sizeof(*result->first));
    if (result->first == NULL) {
        return CM_NO_MEMORY;
    }
    struct cm_link link = {.links = &reach->links};
    while (cm_link_next(&link)) {
        uint32_t number = number_of(reach, &link, numbers);
        result->first[number + 2] += number != 0;
        kept += number != 0;
    }
    result->ends = cm_calloc(kept + 1, sizeof(*result->ends));
    if (result->ends == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 2; i < most + 3; i++) {
        result->first[i] += result->first[i - 1];
    }
    link = (struct cm_link){.links = &reach->links};
    while (cm_link_next(&link)) {
        uint32_t number = number_of(reach, &link, numbers);
        if (number != 0) {
            result->ends[result->first[number + 1]++] =
                numbers != NULL ? link.head : end_of(reach, link.tail);
        }
    }
    return CM_OK;
}

/* ---- what leads to a target: a mark for each end */

/* Marks more; false: there was no more.  Backwards, heads come first. */
static bool
sweep(const struct cm_reach *reach, bool *leads)
{
    bool more = false, leading = false;
    for (size_t i = reach->links.word_count; i-- > 0;) {
        uint32_t word = reach->links.words[i];
        if (!cm_link_is_tail(word)) {
            leading |= leads[word];
            continue;
        }
        bool *tail = &leads[end_of(reach, cm_link_tail(word))];
        more |= leading && !*tail;
        *tail |= leading;
        leading = false;
    }
    return more;
}

/* From those that are marked by now, each once. */
static enum cm_status
follow_back(const struct cm_reach *reach, bool *leads)
{
    size_t next = 0, count = 0;
    struct sorted by_head = {0};
    enum cm_status status =
        sort_links(reach, NULL, reach->node_count, &by_head);
    uint32_t *queue = cm_calloc(ends_of(reach) + 1, sizeof(*queue));
    if (queue == NULL) {
        status = CM_NO_MEMORY;
    }
    for (uint32_t node = 1; status == CM_OK && node <= reach->node_count;
         node++) {
        if (leads[node]) {
            queue[count++] = node;
        }
    }
    while (next < count) {
        uint32_t head = queue[next++];
        for (uint32_t i = by_head.first[head];
             head <= reach->node_count && i < by_head.first[head + 1]; i++) {
            uint32_t tail = by_head.ends[i];
            if (!leads[tail]) {
                leads[tail] = true;
                queue[count++] = tail;
            }
        }
    }
    sorted_release(&by_head);
    cm_free(queue);
    return status;
}

static enum cm_status
find_leading(const struct cm_reach *reach, bool *leads)
{
    for (uint32_t i = 0; i < reach->target_count; i++) {
        leads[reach->target_nodes[i]] = true;
    }
    leads[0] = false; /* of targets that were not reached */
    for (int i = 0; i < SWEEPS; i++) {
        if (!sweep(reach, leads)) {
            return CM_OK;
        }
    }
    return follow_back(reach, leads);
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
    size_t ends = ends_of(reach);
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
add_edges(struct cm_retained *self, const struct cm_reach *reach)
{
    struct sorted by_tail = {0};
    uint32_t count = (uint32_t)self->heap.node_count;
    enum cm_status status =
        sort_links(reach, self->heap_nodes, count, &by_tail);
    for (uint32_t tail = 1; tail <= count && status == CM_OK; tail++) {
        uint32_t last = by_tail.first[tail + 1];
        for (uint32_t i = by_tail.first[tail]; i < last && status == CM_OK;
             i++) {
            struct cm_edge edge = {.tail = tail,
                                   .head = self->heap_nodes[by_tail.ends[i]]};
            if (edge.head != 0) {
                status = cm_heap_add_edge(&self->heap, &edge);
            }
        }
    }
    sorted_release(&by_tail);
    return status;
}

static enum cm_status
make_heap(struct cm_retained *self, const struct cm_reach *reach,
          struct cm_records *records)
{
    bool *leads = cm_calloc(ends_of(reach) + 1, sizeof(*leads));
    self->heap_nodes =
        cm_calloc(ends_of(reach) + 1, sizeof(*self->heap_nodes));
    enum cm_status status = leads == NULL || self->heap_nodes == NULL
                                ? CM_NO_MEMORY
                                : find_leading(reach, leads);
    if (status == CM_OK) {
        status = add_nodes(self, reach, records, leads);
    }
    if (status == CM_OK && self->heap.node_count != 0) {
        status = add_edges(self, reach);
    }
    if (status == CM_OK) {
        status = cm_heap_seal(&self->heap);
    }
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
