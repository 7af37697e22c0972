/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Uses are counted down by the references that were found, as a collection
 * does: what is left over is held from elsewhere, and so is all behind it. */

#include "autograd_behind.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../torch/torch_layout.h"

#define NS_A_VERTEX 5000u

static void
take_off_edges(const struct cm_grad_graph *graph, int64_t *left,
               const uint8_t *dead)
{
    for (size_t i = 0; i < graph->edge_count; i++) {
        const struct cm_grad_edge *edge = &graph->edges[i];
        /* A dead object's references are all from dead ones. */
        bool counted = edge->head != 0
                       && (edge->object == 0 || !dead[edge->head])
                       && edge->link != CM_GRAD_TABLE;
        if (counted && left[edge->head] > 0) {
            left[edge->head]--;
        }
        else if (counted && left[edge->head] == 0) {
            left[edge->head] = -1; /* more than there are: not understood */
        }
    }
}

/* What lives keeps alive what it refers to. */
static size_t
spread(const struct cm_grad_graph *graph, uint32_t *queue, size_t count,
       uint8_t *dying)
{
    for (size_t next = 0; next < count; next++) {
        const struct cm_grad_vertex *vertex = &graph->vertices[queue[next]];
        for (uint32_t i = 0; i < vertex->edge_count; i++) {
            uint32_t head = graph->edges[vertex->first_edge + i].head;
            if (head != 0 && dying[head]) {
                dying[head] = 0;
                queue[count++] = head;
            }
        }
    }
    return count;
}

enum cm_status
cm_grad_find_dying(const struct cm_grad_graph *graph,
                   bool (*is_dead)(void *context, uint64_t object),
                   void *context, uint8_t *dying)
{
    size_t count = graph->vertex_count, live = 0;
    int64_t *left = cm_calloc(count + 1, sizeof(*left));
    uint32_t *queue = cm_calloc(count + 1, sizeof(*queue));
    enum cm_status status =
        left != NULL && queue != NULL ? CM_OK : CM_NO_MEMORY;
    for (size_t i = 1; status == CM_OK && i <= count; i++) {
        const struct cm_grad_vertex *vertex = &graph->vertices[i];
        dying[i] = vertex->object != 0 && is_dead(context, vertex->object);
        left[i] = i <= graph->read ? cm_grad_uses(vertex, !dying[i]) : -1;
    }
    if (status == CM_OK) {
        take_off_edges(graph, left, dying);
        for (size_t i = 1; i <= count; i++) {
            dying[i] = left[i] == 0;
            if (!dying[i]) {
                queue[live++] = (uint32_t)i;
            }
        }
        (void)spread(graph, queue, live, dying);
    }
    cm_free(left);
    cm_free(queue);
    return status;
}

/* ---- behind one tensor */

struct looking {
    struct cm_grad_graph graph;
    struct cm_autograd_behind *result;
    struct cm_index index; /* of the storages, by key */
    size_t capacity;
    uint8_t *dying, *leaf;
    uint64_t root; /* the object */
};

static bool
is_root(void *context, uint64_t object)
{
    const struct looking *self = context;
    return object == self->root;
}

static bool
is_storage(const void *context, uint32_t number)
{
    const struct looking *self = context;
    return self->result->storages[number - 1].memory.storage_key
           == self->result->storages[self->result->storage_count]
                  .memory.storage_key;
}

/* Finds the storage of a vertex, or adds it: [the number, 0] */
static enum cm_status
find_storage(struct looking *self, uint64_t key, uint32_t *number)
{
    const char *reason;
    struct cm_autograd_behind *result = self->result;
    const struct cm_torch_layout *torch = cm_torch_learnt(&reason);
    *number = 0;
    enum cm_status status =
        cm_grow((void **)&result->storages, &self->capacity,
                result->storage_count + 1, sizeof(*result->storages));
    if (status != CM_OK || torch == NULL) {
        return status;
    }
    struct cm_autograd_storage *fresh =
        &result->storages[result->storage_count];
    memset(fresh, 0, sizeof(*fresh));
    fresh->memory.storage_key = key;
    uint32_t hash = cm_hash(0, &key, sizeof(key));
    *number = cm_index_find(&self->index, hash, is_storage, self);
    if (*number != 0 || !cm_torch_read_storage(torch, key, &fresh->memory)) {
        return CM_OK;
    }
    status = cm_index_reserve(&self->index);
    if (status == CM_OK) {
        *number = (uint32_t)++result->storage_count;
        cm_index_put(&self->index, hash, *number);
    }
    return status;
}

static enum cm_status
add_storages(struct looking *self, uint64_t own)
{
    enum cm_status status = CM_OK;
    for (size_t i = 1; status == CM_OK && i <= self->graph.vertex_count; i++) {
        const struct cm_grad_vertex *vertex = &self->graph.vertices[i];
        uint32_t number;
        if (vertex->storage == 0 || vertex->storage == own) {
            continue;
        }
        status = find_storage(self, vertex->storage, &number);
        if (number != 0) {
            self->result->storages[number - 1].leaf |= self->leaf[i];
            self->result->storages[number - 1].uses_here += self->dying[i];
        }
    }
    return status;
}

static void
add_up(struct looking *self, uint32_t root)
{
    struct cm_autograd_behind *result = self->result;
    for (size_t i = 1; i <= self->graph.vertex_count; i++) {
        const struct cm_grad_vertex *vertex = &self->graph.vertices[i];
        bool node = vertex->class != NULL
                    && cm_cpp_is_node((enum cm_cpp_kind)vertex->class->kind);
        result->nodes += node;
        result->cut |= vertex->cut;
    }
    const struct cm_grad_vertex *first = &self->graph.vertices[root];
    for (uint32_t i = 0; i < first->edge_count; i++) {
        const struct cm_grad_edge *edge =
            &self->graph.edges[first->first_edge + i];
        if (edge->link == CM_GRAD_FUNCTION) {
            result->length = self->graph.vertices[edge->head].depth;
        }
    }
    result->length = first->depth != 0 ? first->depth : result->length;
    for (size_t i = 0; i < result->storage_count; i++) {
        const struct cm_autograd_storage *storage = &result->storages[i];
        uint64_t bytes = storage->leaf ? 0 : storage->memory.bytes;
        result->bytes += bytes;
        if (storage->memory.use_count == storage->uses_here) {
            result->retained += bytes;
        }
    }
    result->cut |= self->graph.cut;
}

static enum cm_status
look(struct looking *self, PyObject *object)
{
    uint32_t root = 0;
    enum cm_status status = cm_grad_add(&self->graph, object, &root);
    if (status == CM_OK && root == 0) {
        return CM_BAD_INPUT;
    }
    if (status == CM_OK) {
        status = cm_grad_walk(&self->graph);
    }
    size_t count = self->graph.vertex_count + 1;
    self->dying = cm_calloc(count, 1);
    self->leaf = cm_calloc(count, 1);
    if (status != CM_OK || self->dying == NULL || self->leaf == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < self->graph.edge_count; i++) {
        uint8_t link = self->graph.edges[i].link;
        self->leaf[self->graph.edges[i].head] |=
            link == CM_GRAD_VARIABLE || link == CM_GRAD_GRADIENT;
    }
    self->leaf[0] = 0;
    status = cm_grad_find_dying(&self->graph, is_root, self, self->dying);
    if (status == CM_OK) {
        status = add_storages(self, self->graph.vertices[root].storage);
    }
    if (status == CM_OK) {
        add_up(self, root);
    }
    return status;
}

bool
cm_autograd_behind(PyObject *object, const struct cm_autograd_bounds *bounds,
                   struct cm_autograd_behind *result)
{
    struct looking self = {.result = result,
                           .root = (uint64_t)(uintptr_t)object};
    *result = (struct cm_autograd_behind){0};
    if (!cm_grad_ready()) {
        return false;
    }
    self.graph.max_vertices = bounds->max_vertices;
    cm_grad_until(&self.graph, bounds->max_time_ns);
    enum cm_status status = look(&self, object);
    cm_grad_release(&self.graph);
    cm_index_release(&self.index);
    cm_free(self.dying);
    cm_free(self.leaf);
    if (status != CM_OK) {
        cm_autograd_behind_release(result);
    }
    return status == CM_OK;
}

void
cm_autograd_behind_release(struct cm_autograd_behind *self)
{
    cm_free(self->storages);
    *self = (struct cm_autograd_behind){0};
}

/* ---- for Python */

static PyObject *
list_storages(const struct cm_autograd_behind *behind)
{
    PyObject *list = PyList_New((Py_ssize_t)behind->storage_count);
    for (size_t i = 0; list != NULL && i < behind->storage_count; i++) {
        const struct cm_autograd_storage *storage = &behind->storages[i];
        PyObject *item = Py_BuildValue(
            "KKsOO", storage->memory.device_address, storage->memory.bytes,
            storage->memory.device, storage->leaf ? Py_True : Py_False,
            storage->memory.use_count == storage->uses_here ? Py_True
                                                            : Py_False);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

PyObject *
cm_autograd_behind_of(PyObject *module, PyObject *args)
{
    struct cm_autograd_behind behind;
    PyObject *object;
    unsigned most = 4000000;
    (void)module;
    if (!PyArg_ParseTuple(args, "O|I", &object, &most)) {
        return NULL;
    }
    struct cm_autograd_bounds bounds = {
        .max_vertices = most, .max_time_ns = (uint64_t)most * NS_A_VERTEX};
    if (!cm_autograd_behind(object, &bounds, &behind)) {
        Py_RETURN_NONE;
    }
    PyObject *result = Py_BuildValue(
        "{sKsKsKsKsOsN}", "nodes", behind.nodes, "length", behind.length,
        "bytes", behind.bytes, "retained", behind.retained, "cut",
        behind.cut ? Py_True : Py_False, "storages", list_storages(&behind));
    cm_autograd_behind_release(&behind);
    return result;
}
