/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What stands in C++ behind the dead tensors that were kept: only what goes
 * with them (autograd_behind.h), and of that what leads to memory or back to
 * an object that was kept.  It becomes nodes and edges of the frozen heap after
 * those of Python. */

#include "freezer.h"

#include <stdio.h>

#include "../../detector/alloc.h"
#include "autograd_behind.h"
#include "../torch/forward.h"

enum { DYING = 1, LEADS = 2, IMPL_WORDS = 24 };

/* Of a collection's time; afterwards names are copied. */
enum { WALK_PERCENT = 30, MOST_OF_NODES = 4 };

static bool
is_dead(void *context, uint64_t object)
{
    struct cm_freezer *self = context;
    uint32_t at = cm_freezer_position(self, (PyObject *)(uintptr_t)object);
    return at != CM_NOT_CHOSEN
           && (!(self->flags[at] & CM_PRESERVED)
               || (self->flags[at] & CM_DEVICE));
}

static uint32_t
kept_node(const struct cm_freezer *self, uint64_t object)
{
    uint32_t at =
        object != 0 ? cm_freezer_position(self, (PyObject *)(uintptr_t)object)
                    : CM_NOT_CHOSEN;
    return at != CM_NOT_CHOSEN && (self->flags[at] & CM_KEPT);
}

/* Is worth a place in the heap by itself. */
static bool
is_goal(struct cm_freezer *self, uint32_t number)
{
    const struct cm_grad_vertex *vertex = &self->grad.vertices[number];
    struct cm_device_memory memory;
    if (kept_node(self, vertex->object)
        || (vertex->storage != 0
            && cm_devices_read_storage(self->devices, vertex->storage,
                                       &memory))) {
        return true;
    }
    for (uint32_t i = 0; i < vertex->edge_count; i++) {
        const struct cm_grad_edge *edge =
            &self->grad.edges[vertex->first_edge + i];
        if (edge->head == 0 && kept_node(self, edge->object)) {
            return true;
        }
    }
    return false;
}

/* Backwards from the goals, over edges sorted by their heads. */
struct backwards {
    uint32_t *starts, *tails, *queue; /* owned */
};

static enum cm_status
sort_by_head(const struct cm_grad_graph *graph, struct backwards *self)
{
    size_t count = graph->vertex_count;
    self->starts = cm_calloc(count + 3, sizeof(*self->starts));
    self->tails = cm_calloc(graph->edge_count + 1, sizeof(*self->tails));
    self->queue = cm_calloc(count + 1, sizeof(*self->queue));
    if (self->starts == NULL || self->tails == NULL || self->queue == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < graph->edge_count; i++) {
        self->starts[graph->edges[i].head + 2]++;
    }
    for (size_t i = 2; i < count + 3; i++) {
        self->starts[i] += self->starts[i - 1];
    }
    for (size_t i = 0; i < graph->edge_count; i++) {
        const struct cm_grad_edge *edge = &graph->edges[i];
        self->tails[self->starts[edge->head + 1]++] = edge->tail;
    }
    return CM_OK;
}

static void
mark_leading(struct cm_freezer *self, struct backwards *back)
{
    size_t count = 0;
    uint8_t *marks = self->vertex_marks;
    for (uint32_t i = 1; i <= self->grad.vertex_count; i++) {
        if (marks[i] == DYING && is_goal(self, i)) {
            marks[i] |= LEADS;
            back->queue[count++] = i;
        }
    }
    for (size_t next = 0; next < count; next++) {
        uint32_t head = back->queue[next];
        for (uint32_t i = back->starts[head]; i < back->starts[head + 1];
             i++) {
            uint32_t tail = back->tails[i];
            if (marks[tail] == DYING) {
                marks[tail] |= LEADS;
                back->queue[count++] = tail;
            }
        }
    }
}

static enum cm_status
mark_vertices(struct cm_freezer *self)
{
    size_t needed = self->grad.vertex_count + 1;
    struct backwards back = {0};
    enum cm_status status =
        cm_grow((void **)&self->vertex_marks, &self->mark_capacity, needed,
                sizeof(*self->vertex_marks));
    if (status == CM_OK) {
        status = cm_grow((void **)&self->vertex_node, &self->vertex_capacity,
                         needed, sizeof(*self->vertex_node));
    }
    if (status != CM_OK) {
        return status;
    }
    memset(self->vertex_marks, 0, needed);
    memset(self->vertex_node, 0, needed * sizeof(*self->vertex_node));
    status =
        cm_grad_find_dying(&self->grad, is_dead, self, self->vertex_marks);
    if (status == CM_OK) {
        status = sort_by_head(&self->grad, &back);
    }
    if (status == CM_OK) {
        mark_leading(self, &back);
    }
    cm_free(back.starts);
    cm_free(back.tails);
    cm_free(back.queue);
    return status;
}

enum cm_status
cm_freezer_walk(struct cm_freezer *self)
{
    cm_grad_clear(&self->grad);
    if (!cm_grad_ready()) {
        return CM_OK;
    }
    enum cm_status status = CM_OK;
    self->grad.max_vertices = self->bounds->max_nodes * MOST_OF_NODES;
    cm_grad_until(&self->grad, self->bounds->max_time_ns / 100 * WALK_PERCENT);
    for (size_t i = 0; status == CM_OK && i < self->kept_count; i++) {
        PyObject *object = self->chosen[self->queue[i]];
        uint32_t number;
        if (cm_grad_leads(object)) {
            status = cm_grad_add(&self->grad, object, &number);
        }
    }
    if (self->grad.vertex_count == 0) {
        return status;
    }
    if (status == CM_OK) {
        status = cm_grad_walk(&self->grad);
    }
    return status == CM_OK ? mark_vertices(self) : status;
}

bool
cm_freezer_is_dying(const struct cm_freezer *self, PyObject *object)
{
    uint32_t number = cm_grad_of(&self->grad, (uint64_t)(uintptr_t)object);
    return number != 0 && (self->vertex_marks[number] & DYING);
}

/* Garbage that leads to memory in C++ alone was not kept, nor walked from. */
static bool
was_walked_from(const struct cm_freezer *self)
{
    const PyTypeObject *last = NULL;
    bool concerns = false;
    for (size_t i = 0; i < self->chosen_count; i++) {
        PyObject *object = self->chosen[i];
        if (Py_TYPE(object) != last) {
            last = Py_TYPE(object);
            concerns = cm_grad_concerns(Py_TYPE(object));
        }
        if (concerns && !(self->flags[i] & (CM_KEPT | CM_PRESERVED))
            && cm_grad_leads(object)) {
            return false;
        }
    }
    return true;
}

bool
cm_freezer_saw_all(void *freezer)
{
    const struct cm_freezer *self = freezer;
    if (!cm_grad_ready() || self->grad.cut) {
        return false;
    }
    for (size_t i = 1; i <= self->grad.vertex_count; i++) {
        if (self->grad.vertices[i].cut) {
            return false;
        }
    }
    return was_walked_from(self);
}

/* ---- copying */

static struct cm_type_id
type_of(struct cm_freezer *self, const char *name)
{
    struct cm_texts *texts = cm_records_texts(self->records);
    struct cm_type type = {.name = cm_texts_intern(texts, name),
                           .module = cm_texts_intern(texts, "torch"),
                           .library = true};
    struct cm_type_id id = {0};
    return cm_records_add_type(self->records, &type, &id) == CM_OK
               ? id
               : (struct cm_type_id){0};
}

/* "grad_fn MulBackward0, 17 deep" */
static void
describe_step(struct cm_freezer *self, const struct cm_grad_vertex *vertex,
              struct cm_node *node)
{
    char text[96];
    const char *name = vertex->class->name;
    if (vertex->depth > 1) {
        snprintf(text, sizeof(text), "%s, %u deep", name, vertex->depth);
    }
    else {
        snprintf(text, sizeof(text), "%s", name);
    }
    node->species = CM_GRAD_FN;
    node->type = type_of(self, name);
    node->label = cm_texts_intern(cm_records_texts(self->records), text);
    node->site = cm_forward_site_of(vertex->address);
}

static enum cm_status
describe_tensor(struct cm_freezer *self, const struct cm_grad_vertex *vertex,
                struct cm_node *node)
{
    struct cm_device_memory memory;
    node->species = CM_TENSOR;
    node->type = type_of(self, "Tensor");
    if (vertex->storage == 0
        || !cm_devices_read_storage(self->devices, vertex->storage, &memory)) {
        node->label =
            cm_texts_intern(cm_records_texts(self->records), "Tensor");
        return CM_OK;
    }
    return cm_freezer_describe_memory(self, vertex->address, &memory, node);
}

static enum cm_status
copy_vertex(struct cm_freezer *self, uint32_t number)
{
    const struct cm_grad_vertex *vertex = &self->grad.vertices[number];
    struct cm_node node = {.address = vertex->address, .cut = vertex->cut};
    struct cm_node_id id = {0};
    enum cm_status status = CM_OK;
    if (vertex->class->kind == CM_CPP_TENSOR) {
        status = describe_tensor(self, vertex, &node);
    }
    else {
        describe_step(self, vertex, &node);
    }
    if (status == CM_OK) {
        status = cm_heap_add_node(self->heap, &node, &id);
    }
    self->vertex_node[number] = id.index;
    return status;
}

enum cm_status
cm_freezer_copy_vertices(struct cm_freezer *self)
{
    enum cm_status status = CM_OK;
    for (uint32_t i = 1; status == CM_OK && i <= self->grad.vertex_count;
         i++) {
        const struct cm_grad_vertex *vertex = &self->grad.vertices[i];
        uint32_t at =
            cm_freezer_position(self, (PyObject *)(uintptr_t)vertex->object);
        if (vertex->object != 0 && at != CM_NOT_CHOSEN
            && self->node_of[at] != 0) {
            self->vertex_node[i] = self->node_of[at];
        }
        else if (self->vertex_marks[i] & LEADS) {
            status = copy_vertex(self, i);
        }
    }
    self->heap->nodes_cut += self->grad.cut;
    return status;
}

/* A tensor that only C++ holds was made, as far as is known, by the operation
 * that saved it. */
static void
lend_site(struct cm_freezer *self, const struct cm_edge *edge)
{
    const struct cm_node *step = &self->heap->nodes[edge->tail];
    const struct cm_node *tensor = &self->heap->nodes[edge->head];
    struct cm_storage *storage = &self->heap->storages[tensor->storage.index];
    if (step->species == CM_GRAD_FN && tensor->species == CM_TENSOR
        && tensor->storage.index != 0 && storage->site.index == 0) {
        storage->site = step->site;
    }
}

/* In order of the heap's nodes: those of vertices alone come last. */
static enum cm_status
copy_links(struct cm_freezer *self, uint32_t number)
{
    const struct cm_grad_vertex *vertex = &self->grad.vertices[number];
    enum cm_status status = CM_OK;
    for (uint32_t i = 0; status == CM_OK && i < vertex->edge_count; i++) {
        const struct cm_grad_edge *link =
            &self->grad.edges[vertex->first_edge + i];
        uint32_t at = link->head == 0 ? cm_freezer_position(
                          self, (PyObject *)(uintptr_t)link->object)
                                      : CM_NOT_CHOSEN;
        struct cm_edge edge = {
            .tail = self->vertex_node[number],
            .head = at != CM_NOT_CHOSEN ? self->node_of[at]
                                        : self->vertex_node[link->head],
            .role = link->link == CM_GRAD_HOOKS ? CM_HOOK : CM_AUTOGRAD};
        if (edge.head == 0 || link->link == CM_GRAD_TABLE) {
            continue;
        }
        edge.label = cm_grad_label(link, cm_records_texts(self->records));
        lend_site(self, &edge);
        status = cm_heap_add_edge(self->heap, &edge);
    }
    return status;
}

enum cm_status
cm_freezer_copy_links(struct cm_freezer *self, PyObject *object)
{
    uint32_t number = cm_grad_of(&self->grad, (uint64_t)(uintptr_t)object);
    return number != 0 && self->vertex_node[number] != 0
               ? copy_links(self, number)
               : CM_OK;
}

enum cm_status
cm_freezer_copy_all_links(struct cm_freezer *self, uint32_t last_of_python)
{
    enum cm_status status = CM_OK;
    for (uint32_t i = 1; status == CM_OK && i <= self->grad.vertex_count;
         i++) {
        if (self->vertex_node[i] > last_of_python) {
            status = copy_links(self, i);
        }
    }
    return status;
}
