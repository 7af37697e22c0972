/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A queue: vertices in the order in which they were met, each read once
 * (autograd_read.c).  Two indices find them by their address and by the Python
 * object that stands for them. */

#include "autograd_private.h"

#include <stdio.h>

#include "../../detector/alloc.h"
#include "../../detector/clock.h"
#include "../frameworks/devices.h"

enum { TIME_MASK = 63 };

bool
cm_grad_ready(void)
{
    const char *reason;
    const struct cm_torch_layout *torch = cm_torch_learnt(&reason);
    return torch != NULL && torch->has_impl_uses && torch->storage_vtable != 0
           && cm_autograd_learnt(&reason) != NULL;
}

void
cm_grad_release(struct cm_grad_graph *self)
{
    cm_free(self->vertices);
    cm_free(self->edges);
    cm_index_release(&self->index);
    cm_index_release(&self->owners);
    *self = (struct cm_grad_graph){0};
}

void
cm_grad_clear(struct cm_grad_graph *self)
{
    cm_index_clear(&self->index);
    cm_index_clear(&self->owners);
    self->vertex_count = self->edge_count = self->read = 0;
    self->cut = false;
}

void
cm_grad_until(struct cm_grad_graph *self, uint64_t duration_ns)
{
    self->duration_ns = duration_ns;
    self->until_ns = 0;
}

/* The clock is a system call: short walks never ask for it. */
static bool
is_out_of_time(struct cm_grad_graph *self)
{
    if (self->duration_ns == 0 || (self->read & TIME_MASK) != TIME_MASK) {
        return false;
    }
    uint64_t now = cm_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (self->until_ns == 0) {
        self->until_ns = now + self->duration_ns;
    }
    return now > self->until_ns;
}

/* ---- vertices and edges */

struct wanted {
    const struct cm_grad_vertex *vertices;
    uint64_t key;
};

static bool
is_vertex(const void *context, uint32_t number)
{
    const struct wanted *wanted = context;
    return wanted->vertices[number].address == wanted->key;
}

static bool
is_owner(const void *context, uint32_t number)
{
    const struct wanted *wanted = context;
    return wanted->vertices[number].object == wanted->key;
}

static uint32_t
hash_of(uint64_t key)
{
    return cm_hash(0, &key, sizeof(key));
}

enum cm_status
cm_grad_vertex_add(struct cm_grad_graph *self, uint64_t address,
                   uint64_t counter, uint32_t *result)
{
    struct wanted wanted = {self->vertices, address};
    uint32_t hash = hash_of(address);
    *result = cm_index_find(&self->index, hash, is_vertex, &wanted);
    if (*result != 0) {
        return CM_OK;
    }
    if (self->vertex_count >= self->max_vertices
        || self->vertex_count >= UINT32_MAX - 2) {
        self->cut = true;
        return CM_OK;
    }
    enum cm_status status = cm_index_reserve(&self->index);
    if (status == CM_OK) {
        status = cm_grow((void **)&self->vertices, &self->vertex_capacity,
                         self->vertex_count + 2, sizeof(*self->vertices));
    }
    if (status == CM_OK) {
        *result = (uint32_t)++self->vertex_count;
        self->vertices[*result] =
            (struct cm_grad_vertex){.address = address, .counter = counter};
        cm_index_put(&self->index, hash, *result);
    }
    return status;
}

/* Two vertices of one object (a race, or torch's own doing): the first is it. */
void
cm_grad_set_object(struct cm_grad_reading *self, uint64_t object)
{
    struct cm_grad_graph *graph = self->graph;
    struct wanted wanted = {graph->vertices, object};
    uint32_t hash = hash_of(object);
    if (!cm_cpp_may_point(object) || self->status != CM_OK
        || cm_index_find(&graph->owners, hash, is_owner, &wanted) != 0) {
        return;
    }
    self->status = cm_index_reserve(&graph->owners);
    if (self->status == CM_OK) {
        graph->vertices[self->tail].object = object;
        cm_index_put(&graph->owners, hash, self->tail);
    }
}

uint64_t
cm_grad_tensor_counter(const struct cm_grad_reading *self, uint64_t impl)
{
    return impl + self->torch->impl_uses;
}

uint64_t
cm_grad_node_counter(const struct cm_grad_reading *self, uint64_t node,
                     uint64_t control)
{
    return self->layout->counted_in_node ? node + 8
           : control != 0                ? control + 8
                                         : 0;
}

bool
cm_grad_is_subtype(PyTypeObject *type, PyTypeObject *base)
{
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0;
         mro != NULL && PyTuple_CheckExact(mro) && i < PyTuple_GET_SIZE(mro);
         i++) {
        if (PyTuple_GET_ITEM(mro, i) == (PyObject *)base) {
            return true;
        }
    }
    return false;
}

/* The C++ object behind this one, if it is a tensor's or a node's. */
uint64_t
cm_grad_behind(const struct cm_grad_reading *self, PyObject *object,
               uint64_t *counter)
{
    uint64_t address;
    *counter = 0;
    if (cm_grad_is_subtype(Py_TYPE(object), self->torch->tensor)) {
        address = cm_word_at((uintptr_t)object, self->torch->object_impl);
        *counter = cm_grad_tensor_counter(self, address);
        return cm_cpp_kind_at(address) == CM_CPP_TENSOR ? address : 0;
    }
    bool function =
        cm_grad_is_subtype(Py_TYPE(object), self->layout->function);
    size_t place =
        function ? self->layout->function_node : self->layout->object_node;
    if ((size_t)Py_TYPE(object)->tp_basicsize < place + 8
        || (!function
            && Py_TYPE(object)->tp_traverse != self->layout->node_traverse)) {
        return 0;
    }
    address = cm_word_at((uintptr_t)object, place);
    uint64_t control = self->layout->counted_in_node
                           ? 0
                           : cm_word_at((uintptr_t)object, place + 8);
    *counter = cm_grad_node_counter(self, address, control);
    return cm_cpp_is_node(cm_cpp_kind_at(address)) ? address : 0;
}

/* ---- the walk */

static bool
begin(struct cm_grad_reading *self, struct cm_grad_graph *graph)
{
    const char *reason;
    *self = (struct cm_grad_reading){.graph = graph, .status = CM_OK};
    self->layout = cm_autograd_learnt(&reason);
    self->torch = cm_torch_learnt(&reason);
    return cm_grad_ready();
}

enum cm_status
cm_grad_add(struct cm_grad_graph *self, PyObject *object, uint32_t *result)
{
    struct cm_grad_reading reading;
    uint64_t counter;
    *result = 0;
    if (!begin(&reading, self)) {
        return CM_OK;
    }
    uint64_t address = cm_grad_behind(&reading, object, &counter);
    return address != 0 ? cm_grad_vertex_add(self, address, counter, result)
                        : CM_OK;
}

enum cm_status
cm_grad_walk(struct cm_grad_graph *self)
{
    struct cm_grad_reading reading;
    if (!begin(&reading, self)) {
        return CM_OK;
    }
    while (self->read < self->vertex_count && reading.status == CM_OK) {
        if (is_out_of_time(self)) {
            self->cut = true;
            break;
        }
        reading.tail = (uint32_t)++self->read;
        cm_grad_read(&reading);
    }
    return reading.status;
}

uint32_t
cm_grad_of(const struct cm_grad_graph *self, uint64_t object)
{
    struct wanted wanted = {self->vertices, object};
    return object == 0 ? 0
                       : cm_index_find(&self->owners, hash_of(object),
                                       is_owner, &wanted);
}

uint32_t
cm_grad_at(const struct cm_grad_graph *self, uint64_t address)
{
    struct wanted wanted = {self->vertices, address};
    return cm_index_find(&self->index, hash_of(address), is_vertex, &wanted);
}

bool
cm_grad_concerns(PyTypeObject *type)
{
    const char *reason;
    const struct cm_torch_layout *torch = cm_torch_learnt(&reason);
    const struct cm_autograd_layout *layout = cm_autograd_learnt(&reason);
    return torch != NULL && layout != NULL
           && (type->tp_traverse == layout->node_traverse
               || cm_grad_is_subtype(type, torch->tensor)
               || cm_grad_is_subtype(type, layout->function));
}

/* The TensorImpl of a tensor; 0: it is none, or nothing can be read here. */
static uintptr_t
impl_of(struct cm_grad_reading *self, PyObject *object)
{
    return begin(self, NULL)
                   && cm_grad_is_subtype(Py_TYPE(object), self->torch->tensor)
               ? cm_word_at((uintptr_t)object, self->torch->object_impl)
               : 0;
}

/* What autograd knows of it; 0: nothing. */
static uintptr_t
meta_of(struct cm_grad_reading *self, PyObject *object)
{
    uintptr_t impl = impl_of(self, object);
    return impl != 0 ? cm_word_at(impl, self->layout->impl_meta) : 0;
}

bool
cm_grad_leads(PyObject *object)
{
    struct cm_grad_reading self;
    if (!begin(&self, NULL)) {
        return false;
    }
    return cm_grad_is_subtype(Py_TYPE(object), self.torch->tensor)
               ? meta_of(&self, object) != 0
               : cm_grad_concerns(Py_TYPE(object));
}

bool
cm_grad_has_step(PyObject *object)
{
    struct cm_grad_reading self;
    uintptr_t meta = meta_of(&self, object);
    return meta != 0 && cm_word_at(meta, self.layout->meta_grad_fn) != 0;
}

/* c10's PyObjectSlot marked the pointer that it owns in the lowest bit; by now
 * an impl that C++ uses has one reference of its object's. */
bool
cm_grad_kept_by_cpp(PyObject *object)
{
    struct cm_grad_reading self;
    uintptr_t impl = impl_of(&self, object);
    if (impl == 0) {
        return false;
    }
    bool alone = self.layout->tensors_are_mutual && self.torch->has_impl_uses
                 && Py_REFCNT(object) == 1
                 && cm_half_at(impl, self.torch->impl_uses) > 1;
    return alone
           || cm_word_at(impl, self.layout->impl_object)
                  == ((uintptr_t)object | 1);
}

/* Whether a node has its object, which has no use of it. */
static bool
is_weakly_used(const struct cm_autograd_layout *layout,
               const struct cm_grad_vertex *vertex)
{
    return vertex->class->kind == CM_CPP_PYTHON_NODE
           && !layout->functions_count;
}

/* An object and its C++ side hold each other once, in one of three ways. */
int64_t
cm_grad_uses(const struct cm_grad_vertex *vertex, bool python)
{
    const char *reason;
    const struct cm_autograd_layout *layout = cm_autograd_learnt(&reason);
    if (layout == NULL || vertex->class == NULL || vertex->uses == 0) {
        return -1;
    }
    bool tensor = vertex->class->kind == CM_CPP_TENSOR;
    bool mutual =
        tensor ? layout->tensors_are_mutual : layout->nodes_are_mutual;
    if (!layout->has_uses && !tensor) {
        return -1;
    }
    if (vertex->object == 0) {
        return vertex->uses;
    }
    bool weakly = is_weakly_used(layout, vertex);
    int64_t uses = (int64_t)vertex->uses - !weakly;
    if (python) {
        PyObject *object = (PyObject *)(uintptr_t)vertex->object;
        uses += Py_REFCNT(object) - (weakly || (mutual && vertex->uses > 1));
    }
    return uses;
}

struct cm_text_id
cm_grad_label(const struct cm_grad_edge *edge, struct cm_texts *texts)
{
    static const char *const names[CM_GRAD_LINKS] = {
        [CM_GRAD_FUNCTION] = "grad_fn",    [CM_GRAD_NEXT] = "next_functions",
        [CM_GRAD_SAVED] = "saved",         [CM_GRAD_VARIABLE] = "variable",
        [CM_GRAD_GRADIENT] = ".grad",      [CM_GRAD_BASE] = "._base",
        [CM_GRAD_HOOKS] = "hooks",         [CM_GRAD_TABLE] = "hooks",
        [CM_GRAD_PACKED] = "saved packed", [CM_GRAD_PACKER] = "pack hook",
    };
    char text[40];
    if (edge->link == CM_GRAD_NEXT && edge->number < CM_GRAD_MOST_EDGES) {
        snprintf(text, sizeof(text), "next_functions[%u]", edge->number);
        return cm_texts_intern(texts, text);
    }
    return cm_texts_intern(texts, names[edge->link]);
}
