/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Copying a representative: its objects, references, storages and words, each
 * appended to the document and taken back when a later one fails.  Cost:
 * linear in the finding's objects that are kept and their references. */
#include "representative.h"

#include <string.h>

#include "../detector/alloc.h"
#include "../detector/number.h"
#include "libraries.h"

enum cm_status
cm_copy_init(struct cm_copy *self, struct cm_leak *leak,
             const struct cm_heap *heap, const struct cm_records *records)
{
    size_t nodes = heap->node_count + 1;

    self->leak = leak;
    self->heap = heap;
    self->records = records;
    self->vertex_of = cm_calloc(nodes, sizeof(uint32_t));
    self->storage_of = cm_calloc(heap->storage_count + 1, sizeof(uint32_t));
    return self->vertex_of != NULL && self->storage_of != NULL ? CM_OK
                                                               : CM_NO_MEMORY;
}

void
cm_copy_release(struct cm_copy *self)
{
    cm_free(self->vertex_of);
    cm_free(self->storage_of);
    cm_free(self->order);
    cm_sources_release(&self->sources);
    cm_buffer_release(&self->text);
    *self = (struct cm_copy){0};
}

static const char *
kind_of(const struct cm_node *node)
{
    switch ((enum cm_species)node->species) {
    case CM_DICT:
    case CM_LIST:
    case CM_TUPLE:
    case CM_SET: return "container";
    case CM_FUNCTION:
    case CM_BOUND_METHOD:
    case CM_BUILTIN_METHOD: return "function";
    case CM_CELL: return "cell";
    case CM_FRAME: return "frame";
    case CM_TRACEBACK: return "traceback";
    case CM_MODULE: return "module";
    case CM_TENSOR: return "tensor";
    case CM_STORAGE: return "storage";
    case CM_GRAD_FN: return "grad_fn";
    case CM_OBJECT:
    case CM_EXCEPTION:
    case CM_GENERATOR:
    case CM_COROUTINE:
    case CM_ASYNC_GENERATOR:
    case CM_PARTIAL:
    case CM_TYPE:
    case CM_WEAKREF:
    case CM_SPECIES_COUNT: break;
    }
    return "object";
}

static enum cm_status
copy_vertex(struct cm_copy *self, uint32_t node_index)
{
    struct cm_leak *leak = self->leak;
    const struct cm_node *node = &self->heap->nodes[node_index];
    const struct cm_type *type = cm_records_type(self->records, node->type);
    struct cm_leak_vertex vertex = {.bytes = node->bytes,
                                    .storage =
                                        self->storage_of[node->storage.index]};
    enum cm_status status =
        cm_grow((void **)&leak->vertices, &leak->vertex_capacity,
                leak->vertex_count + 1, sizeof(vertex));

    if (status == CM_OK) {
        status = cm_copy_text_id(self, node->label, &vertex.annotation);
    }
    if (status == CM_OK) {
        status = cm_copy_text_id(self, type->name, &vertex.type);
    }
    if (status == CM_OK) {
        status = cm_copy_text(self, kind_of(node), &vertex.kind);
    }
    if (status == CM_OK) {
        status = cm_copy_site(self, node->site, &vertex.site);
    }
    if (status == CM_OK) {
        leak->vertices[leak->vertex_count++] = vertex;
        self->vertex_of[node_index] = (uint32_t)leak->vertex_count;
    }
    return status;
}

/* Those that are not copied yet. */
static enum cm_status
copy_vertices(struct cm_copy *self, const uint32_t *nodes, size_t count)
{
    enum cm_status status =
        cm_grow((void **)&self->order, &self->order_capacity,
                self->order_count + count, sizeof(self->order[0]));

    for (size_t i = 0; status == CM_OK && i < count; i++) {
        if (self->vertex_of[nodes[i]] == 0) {
            self->order[self->order_count++] = nodes[i];
            status = copy_vertex(self, nodes[i]);
        }
    }
    return status;
}

static enum cm_status
copy_component(struct cm_copy *self, const struct cm_finding *finding,
               struct cm_leak_cycle *cycle)
{
    enum cm_status status =
        copy_vertices(self, finding->component, finding->component_count);

    if (status == CM_OK) {
        status = copy_vertices(self, finding->via, finding->via_count);
    }
    if (status == CM_OK) {
        status = copy_vertices(self, finding->payload, finding->payload_count);
    }
    cycle->vertices =
        cm_calloc(finding->component_count + 1, sizeof(uint32_t));
    if (cycle->vertices == NULL || status != CM_OK) {
        return status != CM_OK ? status : CM_NO_MEMORY;
    }
    for (size_t i = 0; i < finding->component_count; i++) {
        cycle->vertices[cycle->vertex_count++] =
            self->vertex_of[finding->component[i]];
    }
    return CM_OK;
}

static const char *
edge_kind(const struct cm_copy *self, const struct cm_edge *edge)
{
    const char *label = cm_records_text(self->records, edge->label);

    if (edge->role == CM_AUTOGRAD) {
        return strncmp(label, "saved", 5) == 0 ? "saved" : "autograd";
    }
    return edge->role == CM_HOOK ? "hook" : "python";
}

static enum cm_status
copy_edge(struct cm_copy *self, uint32_t heap_edge)
{
    struct cm_leak *leak = self->leak;
    const struct cm_edge *from = &self->heap->edges[heap_edge];
    struct cm_leak_edge edge = {.tail = self->vertex_of[from->tail],
                                .head = self->vertex_of[from->head]};
    enum cm_status status =
        cm_grow((void **)&leak->edges, &leak->edge_capacity,
                leak->edge_count + 1, sizeof(edge));

    if (status == CM_OK) {
        status = cm_copy_text_id(self, from->label, &edge.annotation);
    }
    if (status == CM_OK) {
        status = cm_copy_text(self, edge_kind(self, from), &edge.kind);
    }
    if (status == CM_OK) {
        leak->edges[leak->edge_count++] = edge;
    }
    return status;
}

static enum cm_status
copy_places(struct cm_copy *self, const struct cm_finding *finding,
            struct cm_leak_edge *edge)
{
    enum cm_status status = CM_OK;

    if (finding->place_count == 0) {
        return CM_OK;
    }
    edge->made_at = cm_calloc(finding->place_count, sizeof(edge->made_at[0]));
    if (edge->made_at == NULL) {
        return CM_NO_MEMORY;
    }
    edge->made_at_count = finding->place_count;
    for (uint32_t i = 0; status == CM_OK && i < finding->place_count; i++) {
        status = cm_copy_frame(self, finding->places[i].code,
                               finding->places[i].line, &edge->made_at[i]);
        edge->made_at[i].certain = finding->places[i].certain;
    }
    return status;
}

static bool
keeps_edge(const struct cm_copy *self, const struct cm_finding *finding,
           uint32_t edge, size_t kept)
{
    return self->vertex_of[self->heap->edges[edge].head] != 0
           && (kept < CM_COPY_MAX_EDGES || edge == finding->cut_edge);
}

static enum cm_status
copy_edges(struct cm_copy *self, const struct cm_finding *finding,
           struct cm_leak_cycle *cycle)
{
    struct cm_leak *leak = self->leak;
    size_t start = leak->edge_count;
    enum cm_status status = CM_OK;

    cycle->cut = cm_calloc(1, sizeof(uint32_t));
    if (cycle->cut == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < self->order_count; i++) {
        const struct cm_node *node = &self->heap->nodes[self->order[i]];

        for (uint32_t j = 0; status == CM_OK && j < node->edge_count; j++) {
            uint32_t edge = node->first_edge + j;

            if (!keeps_edge(self, finding, edge, leak->edge_count - start)) {
                continue;
            }
            status = copy_edge(self, edge);
            if (status == CM_OK && edge == finding->cut_edge) {
                cycle->cut[cycle->cut_count++] = (uint32_t)leak->edge_count;
                status = copy_places(self, finding,
                                     &leak->edges[leak->edge_count - 1]);
            }
        }
    }
    return status;
}

/* What its allocator said of it, if anything. */
static enum cm_status
copy_block(struct cm_copy *self, const struct cm_storage *from,
           struct cm_leak_storage *storage)
{
    if (from->block_bytes == 0) {
        return CM_OK;
    }
    storage->block_bytes = cm_number_capped(from->block_bytes);
    if (from->stream <= INT64_MAX) {
        storage->stream = (int64_t)from->stream;
    }
    storage->thread = from->thread <= INT32_MAX ? from->thread : 0;
    storage->awaited = from->awaited;
    return cm_copy_text_id(self, from->pool, &storage->pool);
}

/* The document's id of a storage, copied at first sight in this heap. */
static enum cm_status
copy_storage(struct cm_copy *self, uint32_t heap_storage)
{
    struct cm_leak *leak = self->leak;
    const struct cm_storage *from = &self->heap->storages[heap_storage];
    struct cm_leak_storage storage = {
        .address = from->device_address, .bytes = from->bytes, .stream = -1};
    enum cm_status status;

    if (self->storage_of[heap_storage] != 0) {
        return CM_OK;
    }
    status = cm_grow((void **)&leak->storages, &leak->storage_capacity,
                     leak->storage_count + 1, sizeof(storage));
    if (status == CM_OK) {
        status = cm_copy_text_id(self, from->device, &storage.device);
    }
    if (status == CM_OK) {
        status = copy_block(self, from, &storage);
    }
    if (status == CM_OK) {
        status = cm_copy_site(self, from->site, &storage.site);
    }
    if (status == CM_OK) {
        leak->storages[leak->storage_count++] = storage;
        self->storage_of[heap_storage] = (uint32_t)leak->storage_count;
    }
    return status;
}

static enum cm_status
copy_storages(struct cm_copy *self, const uint32_t *from, size_t count,
              uint32_t **result, size_t *result_count)
{
    enum cm_status status = CM_OK;

    *result = cm_calloc(count + 1, sizeof(uint32_t));
    if (*result == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        status = copy_storage(self, from[i]);
        (*result)[i] = self->storage_of[from[i]];
        *result_count = i + (status == CM_OK);
    }
    return status;
}

/* Tells each storage which of the new vertices stand for it. */
static enum cm_status
join_storages(struct cm_copy *self, size_t first_vertex)
{
    struct cm_leak *leak = self->leak;
    enum cm_status status = CM_OK;

    for (size_t i = first_vertex; status == CM_OK && i < leak->vertex_count;
         i++) {
        struct cm_leak_storage *storage;
        uint32_t *vertices;

        if (leak->vertices[i].storage == 0) {
            continue;
        }
        storage = &leak->storages[leak->vertices[i].storage - 1];
        vertices = cm_realloc(storage->vertices,
                              (storage->vertex_count + 1) * sizeof(uint32_t));
        if (vertices == NULL) {
            return CM_NO_MEMORY;
        }
        storage->vertices = vertices;
        storage->vertices[storage->vertex_count++] = (uint32_t)i + 1;
    }
    return status;
}

/* Where the cycle is talked about, when its library is known for it. */
static const char *
library_link(const struct cm_copy *self, const struct cm_finding *finding)
{
    const struct cm_library_rule *rule;
    const char *function =
        finding->place_count > 0 ? cm_records_text(
            self->records,
            cm_records_code(self->records, finding->places[0].code)
                ->qualified_name)
                                 : "";

    for (size_t i = 0; (rule = cm_library_rule(i)) != NULL; i++) {
        bool matches = strcmp(rule->package, finding->library) == 0
                       && cm_glob_matches(rule->function, function);

        for (size_t j = 0; matches && j < self->order_count; j++) {
            const struct cm_type *type = cm_records_type(
                self->records, self->heap->nodes[self->order[j]].type);

            if (cm_glob_matches(rule->type,
                                cm_records_text(self->records, type->name))) {
                return rule->link;
            }
        }
    }
    return "";
}

static enum cm_status
copy_words(struct cm_copy *self, const struct cm_finding *finding,
           struct cm_leak_cycle *cycle)
{
    static const char *const classes[] = {
        [CM_CLASS_COLLECTABLE] = "collectable",
        [CM_CLASS_FINALIZER] = "finalizer",
        [CM_CLASS_UNCOLLECTABLE] = "uncollectable",
        [CM_CLASS_FROZEN] = "frozen",
        [CM_CLASS_RESURRECTED] = "resurrected"};
    const char *words[] = {classes[finding->class],
                           finding->rule != NULL ? finding->rule : "unknown",
                           finding->advice, finding->no_cut_reason,
                           finding->library};
    struct cm_text_id *places[] = {&cycle->class, &cycle->rule, &cycle->advice,
                                   &cycle->no_cut_reason,
                                   &cycle->library_package};
    enum cm_status status = CM_OK;

    for (size_t i = 0; status == CM_OK && i < 5; i++) {
        status =
            cm_copy_text(self, words[i] != NULL ? words[i] : "", places[i]);
    }
    if (status == CM_OK && finding->library != NULL) {
        status = cm_copy_text(self, library_link(self, finding),
                              &cycle->library_link);
    }
    if (status == CM_OK && finding->shared_count > 0) {
        cycle->shared_with =
            cm_calloc(finding->shared_count, sizeof(uint64_t));
        if (cycle->shared_with == NULL) {
            return CM_NO_MEMORY;
        }
        memcpy(cycle->shared_with, finding->shared_with,
               finding->shared_count * sizeof(uint64_t));
        cycle->shared_count = finding->shared_count;
    }
    return status;
}

static enum cm_status
copy_all(struct cm_copy *self, const struct cm_finding *finding,
         struct cm_leak_cycle *cycle)
{
    size_t first_vertex = self->leak->vertex_count;
    enum cm_status status =
        copy_storages(self, finding->freed, finding->freed_count,
                      &cycle->payload, &cycle->payload_count);

    if (status == CM_OK) {
        status = copy_storages(
            self, finding->held_elsewhere, finding->held_elsewhere_count,
            &cycle->held_elsewhere, &cycle->held_elsewhere_count);
    }
    if (status == CM_OK) {
        status = copy_component(self, finding, cycle);
    }
    if (status == CM_OK) {
        status = copy_edges(self, finding, cycle);
    }
    if (status == CM_OK) {
        status = join_storages(self, first_vertex);
    }
    if (status == CM_OK) {
        status = copy_words(self, finding, cycle);
    }
    return status;
}

/* Takes back what a failed copy appended; stacks stay, they are whole. */
static void
take_back(struct cm_copy *self, size_t vertices, size_t edges, size_t storages)
{
    struct cm_leak *leak = self->leak;

    while (leak->edge_count > edges) {
        cm_free(leak->edges[--leak->edge_count].made_at);
    }
    while (leak->storage_count > storages) {
        cm_free(leak->storages[--leak->storage_count].vertices);
    }
    leak->vertex_count = vertices;
    for (size_t i = 0; i < leak->storage_count; i++) {
        struct cm_leak_storage *storage = &leak->storages[i];

        while (storage->vertex_count > 0
               && storage->vertices[storage->vertex_count - 1] > vertices) {
            storage->vertex_count--;
        }
    }
    for (size_t i = 1; i <= self->heap->storage_count; i++) {
        if (self->storage_of[i] > storages) {
            self->storage_of[i] = 0;
        }
    }
}

enum cm_status
cm_copy_finding(struct cm_copy *self, const struct cm_finding *finding,
                struct cm_leak_cycle *cycle)
{
    size_t vertices = self->leak->vertex_count;
    size_t edges = self->leak->edge_count;
    size_t storages = self->leak->storage_count;
    enum cm_status status = copy_all(self, finding, cycle);

    if (status != CM_OK) {
        take_back(self, vertices, edges, storages);
    }
    for (size_t i = 0; i < self->order_count; i++) {
        self->vertex_of[self->order[i]] = 0;
    }
    self->order_count = 0;
    return status;
}
