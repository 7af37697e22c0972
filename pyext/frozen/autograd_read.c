/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One vertex: its head and its fields are one read, its edges another, and each
 * pointer among the fields of its class one or two.  Other threads may run a
 * backward pass meanwhile: what has gone since is no answer of the kernel, or
 * no object of a class that we know. */

#include "autograd_private.h"

#include <string.h>

#include "../../detector/alloc.h"

enum {
    MOST_EDGES = CM_GRAD_MOST_EDGES,
    MOST_SAVED = 1 << 12,
    EDGES_AT_ONCE = 64,
    MOST_HOOKS = 64,
    IMPL_WORDS = 24,
};

static void
add_edge(struct cm_grad_reading *self, const struct cm_grad_edge *edge)
{
    struct cm_grad_graph *graph = self->graph;
    if (self->status == CM_OK && graph->edge_count >= UINT32_MAX - 1) {
        self->status = CM_LIMIT;
    }
    if (self->status == CM_OK) {
        self->status = cm_grow((void **)&graph->edges, &graph->edge_capacity,
                               graph->edge_count + 1, sizeof(*graph->edges));
    }
    if (self->status == CM_OK) {
        graph->edges[graph->edge_count] = *edge;
        graph->edges[graph->edge_count++].tail = self->tail;
        graph->vertices[self->tail].edge_count++;
    }
}

static void
cut(struct cm_grad_reading *self)
{
    self->graph->vertices[self->tail].cut = true;
}

/* To a TensorImpl or a Node. */
static void
link_to(struct cm_grad_reading *self, uint64_t address, uint64_t counter,
        enum cm_grad_link link, uint32_t number)
{
    struct cm_grad_edge edge = {.link = (uint8_t)link, .number = number};
    if (self->status != CM_OK) {
        return;
    }
    self->status =
        cm_grad_vertex_add(self->graph, address, counter, &edge.head);
    if (edge.head == 0) {
        cut(self);
    }
    else {
        add_edge(self, &edge);
    }
}

static void
link_to_tensor(struct cm_grad_reading *self, uint64_t impl,
               enum cm_grad_link link)
{
    link_to(self, impl, cm_grad_tensor_counter(self, impl), link, 0);
}

/* Before: C++ holds a reference to the object. */
static void
link_to_object(struct cm_grad_reading *self, uint64_t object,
               enum cm_grad_link link)
{
    struct cm_grad_edge edge = {.object = object, .link = (uint8_t)link};
    uint64_t counter, address;
    if (!cm_cpp_may_point(object) || self->status != CM_OK) {
        return;
    }
    address = cm_grad_behind(self, (PyObject *)(uintptr_t)object, &counter);
    if (address != 0) {
        self->status =
            cm_grad_vertex_add(self->graph, address, counter, &edge.head);
        if (edge.head == 0) {
            cut(self);
            return;
        }
    }
    add_edge(self, &edge);
}

/* ---- hooks */

static bool
is_vector(const uint64_t words[3], uint64_t item_bytes, uint64_t most)
{
    uint64_t bytes = words[1] - words[0];
    return cm_cpp_may_point(words[0]) && words[1] > words[0]
           && words[2] >= words[1] && words[2] - words[0] < (1u << 26)
           && bytes % item_bytes == 0 && bytes / item_bytes <= most;
}

/* False: no hook stands at this address. */
static bool
read_hook(struct cm_grad_reading *self, uint64_t address)
{
    uint64_t words[2];
    const struct cm_cpp_class *class;
    if (!cm_cpp_may_point(address) || !cm_torch_peek(address, words, 2)
        || (class = cm_cpp_class_of(words[0])) == NULL
        || class->kind != CM_CPP_HOOK) {
        return false;
    }
    link_to_object(self, words[1], CM_GRAD_HOOKS);
    return true;
}

/* Whether the three words are a vector, as far as the hooks of it tell. */
static bool
read_hook_vector(struct cm_grad_reading *self, const uint64_t *words)
{
    uint64_t hooks[MOST_HOOKS], number = (words[1] - words[0]) / 8;
    bool found = false;
    if (!is_vector(words, 8, MOST_HOOKS)
        || !cm_torch_peek(words[0], hooks, (size_t)number)) {
        return cm_cpp_may_point(words[0]) && words[1] == words[0];
    }
    for (uint64_t k = 0; k < number; k++) {
        found = read_hook(self, hooks[k]) || found;
    }
    return found;
}

/* Hooks stand in vectors of pointers.  The end of one, its capacity and the
 * start of the next are no vector: what lies there is left from before. */
static void
read_hooks(struct cm_grad_reading *self, const uint64_t *words, size_t from,
           size_t count, size_t except)
{
    for (size_t i = from; i + 2 < count; i++) {
        if (i != except && read_hook_vector(self, words + i)) {
            i += 2;
        }
    }
}

/* ---- tensors */

/* In words, of a block of the heap; 0: not known. */
static size_t
block_words(const struct cm_grad_reading *self, uint64_t head, size_t least)
{
    uint64_t bytes = head & ~UINT64_C(7);
    bool sane = self->layout->sized && bytes % 16 == 0 && bytes >= least + 8
                && bytes < (1 << 20);
    return sane ? (size_t)(bytes - 8) / 8 : 0;
}

static size_t
words_of_meta(const struct cm_grad_reading *self, uint64_t head)
{
    size_t count = block_words(self, head, 64);
    return count > CM_GRAD_META_WORDS ? CM_GRAD_META_WORDS : count;
}

/* Where the fields with hooks lie: all are written.  Before them stands a name,
 * whose buffer nobody writes, and behind them what a view adds, which may be
 * empty: a hook's address there is one from before. */
struct hook_fields {
    size_t from, to; /* in words */
};

static struct hook_fields
hooks_of_meta(const struct cm_grad_reading *self, uint64_t head)
{
    size_t end = words_of_meta(self, head), view = self->layout->view_base / 8;
    return (struct hook_fields){self->layout->meta_grad_fn / 8 + 1,
                                end < view ? end : view};
}

static void
read_meta(struct cm_grad_reading *self, uint64_t meta)
{
    const struct cm_autograd_layout *layout = self->layout;
    uint64_t words[CM_GRAD_META_WORDS + 1];
    if (!cm_torch_peek(meta - 8, words, CM_GRAD_META_WORDS + 1)) {
        cut(self);
        return;
    }
    const uint64_t *fields = words + 1;
    const struct cm_cpp_class *class = cm_cpp_class_of(fields[0]);
    if (class == NULL
        || (class->kind != CM_CPP_META && class->kind != CM_CPP_VIEW_META)) {
        cut(self);
        return;
    }
    uint64_t node = fields[layout->meta_grad_fn / 8];
    uint64_t gradient = fields[layout->meta_grad / 8];
    if (node != 0) {
        link_to(self, node,
                cm_grad_node_counter(self, node,
                                     fields[layout->meta_grad_fn / 8 + 1]),
                CM_GRAD_FUNCTION, 0);
    }
    if (cm_cpp_kind_at(gradient) == CM_CPP_TENSOR) {
        link_to_tensor(self, gradient, CM_GRAD_GRADIENT);
    }
    if (class->kind == CM_CPP_VIEW_META && layout->view_base != CM_GRAD_NONE
        && layout->view_base / 8 + 7 <= words_of_meta(self, words[0])
        && (fields[layout->view_base / 8 + 6] & 0xFF) == 1) {
        uint64_t base = fields[layout->view_base / 8];
        if (cm_cpp_kind_at(base) == CM_CPP_TENSOR) {
            link_to_tensor(self, base, CM_GRAD_BASE);
        }
    }
    struct hook_fields hooks = hooks_of_meta(self, words[0]);
    read_hooks(self, fields, hooks.from, hooks.to, 0);
}

/* The two tables of hooks that a tensor's Python object has of its own, and
 * the C++ side of the second. */
static void
read_object_hooks(struct cm_grad_reading *self, uint64_t object, uint64_t meta)
{
    uint64_t tables[2], words[CM_GRAD_META_WORDS + 1];
    if (!cm_cpp_may_point(object)
        || !cm_torch_peek(object + self->torch->object_impl + 8, tables, 2)) {
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        PyObject *table = (PyObject *)(uintptr_t)tables[i];
        if (cm_cpp_may_point(tables[i]) && PyDict_Check(table)) {
            link_to_object(self, tables[i], CM_GRAD_TABLE);
        }
    }
    if (cm_cpp_may_point(tables[1]) && cm_cpp_may_point(meta)
        && cm_torch_peek(meta - 8, words, CM_GRAD_META_WORDS + 1)) {
        struct hook_fields hooks = hooks_of_meta(self, words[0]);
        for (size_t i = hooks.from; i < hooks.to; i++) {
            (void)read_hook(self, words[1 + i]);
        }
    }
}

static void
read_tensor(struct cm_grad_reading *self, const struct cm_cpp_class *class,
            const uint64_t *words)
{
    struct cm_grad_vertex *vertex = &self->graph->vertices[self->tail];
    const struct cm_autograd_layout *layout = self->layout;
    uint64_t object = words[layout->impl_object / 8] & ~UINT64_C(7);
    uint64_t meta = words[layout->impl_meta / 8];
    vertex->uses = cm_half_at((uintptr_t)words, self->torch->impl_uses);
    vertex->storage = words[self->torch->impl_storage / 8];
    vertex->cut = !class->known; /* sparse, nested, wrapped: holds others */
    cm_grad_set_object(self, object);
    if (cm_cpp_may_point(meta)) {
        read_meta(self, meta);
    }
    read_object_hooks(self, self->graph->vertices[self->tail].object, meta);
}

/* ---- nodes */

static void
read_edges(struct cm_grad_reading *self, const uint64_t vector[3])
{
    size_t each = self->layout->edge_bytes / 8;
    uint64_t items[EDGES_AT_ONCE * 3];
    if (vector[0] == vector[1]) {
        return;
    }
    if (!is_vector(vector, each * 8, MOST_EDGES)) {
        cut(self);
        return;
    }
    size_t count = (size_t)(vector[1] - vector[0]) / (each * 8), done = 0;
    while (done < count) {
        size_t now =
            count - done < EDGES_AT_ONCE ? count - done : EDGES_AT_ONCE;
        if (!cm_torch_peek(vector[0] + done * each * 8, items, now * each)) {
            cut(self);
            return;
        }
        for (size_t i = 0; i < now; i++) {
            uint64_t node = items[i * each];
            if (cm_cpp_may_point(node)) {
                link_to(self, node,
                        cm_grad_node_counter(self, node, items[i * each + 1]),
                        CM_GRAD_NEXT, (uint32_t)(done + i));
            }
        }
        done += now;
    }
}

/* What one pointer among a node's fields is.  Weak ones are of nodes: those
 * are told by where they stand. */
static void
read_pointer(struct cm_grad_reading *self, uint64_t pointer,
             const uint64_t *words)
{
    const struct cm_cpp_class *class = cm_cpp_class_of(words[0]);
    if (class == NULL) {
        return;
    }
    if (class->kind == CM_CPP_TENSOR) {
        link_to_tensor(self, pointer, CM_GRAD_SAVED);
    }
    else if (class->kind == CM_CPP_SAVED_HOOKS) {
        size_t each = self->layout->hook_bytes;
        link_to_object(self, cm_grad_hook_object(words, each, 0),
                       CM_GRAD_PACKER);
        link_to_object(self, cm_grad_hook_object(words, each, 1),
                       CM_GRAD_PACKER);
        link_to_object(self, cm_grad_hook_object(words, each, 2),
                       CM_GRAD_PACKED);
    }
}

/* At most two. */
static void
read_pointers(struct cm_grad_reading *self, const uint64_t *pointers,
              size_t count)
{
    uint64_t words[2 * CM_GRAD_HOOK_WORDS];
    size_t each = cm_grad_hook_words(self->layout->hook_bytes);
    bool there[2];
    if (count == 0) {
        return;
    }
    cm_torch_peek_many(pointers, count, words, each, there);
    for (size_t i = 0; i < count; i++) {
        if (there[i]) {
            read_pointer(self, pointers[i], words + i * each);
        }
    }
}

/* Strong only when the variable has hooks: SavedVariable. */
static void
read_saved_nodes(struct cm_grad_reading *self, const uint64_t *words)
{
    const size_t places[] = {self->layout->saved_grad_fn,
                             self->layout->saved_accumulator};
    if (cm_cpp_kind_at(words[self->layout->saved_hooks / 8])
        != CM_CPP_SAVED_HOOKS) {
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        size_t at = places[i] == CM_GRAD_NONE ? 0 : places[i] / 8;
        if (at != 0 && cm_cpp_is_node(cm_cpp_kind_at(words[at]))) {
            link_to(self, words[at],
                    cm_grad_node_counter(self, words[at], words[at + 1]),
                    CM_GRAD_NEXT, UINT32_MAX);
        }
    }
}

/* One SavedVariable: the tensor, or the hooks that packed it. */
static void
read_saved(struct cm_grad_reading *self, const uint64_t *words)
{
    uint64_t pointers[2];
    size_t count = 0;
    if (cm_cpp_may_point(words[0])) {
        pointers[count++] = words[0];
    }
    if (cm_cpp_may_point(words[self->layout->saved_hooks / 8])) {
        pointers[count++] = words[self->layout->saved_hooks / 8];
    }
    read_pointers(self, pointers, count);
    if (count == 2) {
        read_saved_nodes(self, words);
    }
}

static void
read_saved_vector(struct cm_grad_reading *self, const uint64_t vector[3])
{
    size_t each = self->layout->saved_bytes / 8;
    uint64_t words[256 / 8];
    size_t count = (size_t)(vector[1] - vector[0]) / (each * 8);
    for (size_t i = 0; i < count; i++) {
        if (!cm_torch_peek(vector[0] + i * each * 8, words, each)) {
            cut(self);
            return;
        }
        if (i == 0 && cm_cpp_kind_at(words[0]) == CM_CPP_OTHER) {
            return; /* a vector of something else */
        }
        read_saved(self, words);
    }
}

static bool
is_tensor(uint64_t word)
{
    enum cm_cpp_kind kind = cm_cpp_kind_at(word);
    return kind == CM_CPP_TENSOR || kind == CM_CPP_UNDEFINED;
}

/* A word that nobody wrote, as the upper half of a Scalar, may still point to
 * a tensor; the SavedVariable behind it must not be taken for its rest.  Of a
 * real one the first word alone is a tensor, and the next two (fw_grad_, a
 * shared pointer) are pointers or nothing. */
static bool
is_saved(const uint64_t *words, size_t each)
{
    for (size_t i = 1; i < 3; i++) {
        if (words[i] != 0 && !cm_cpp_may_point(words[i])) {
            return false;
        }
    }
    if (!is_tensor(words[0])) {
        return false;
    }
    for (size_t i = 1; i < each; i++) {
        if (is_tensor(words[i])) {
            return false;
        }
    }
    return true;
}

/* What a generated class adds to Node: saved variables where they stand, and
 * vectors of them.  A pointer too near to the end is none's: what lies behind
 * the object in its block is left from before. */
static void
read_fields(struct cm_grad_reading *self, const uint64_t *words, size_t count)
{
    size_t each = self->layout->saved_bytes / 8;
    for (size_t i = 0; i < count; i++) {
        if (i + 3 <= count && is_vector(words + i, each * 8, MOST_SAVED)) {
            read_saved_vector(self, words + i);
        }
        if (i + each <= count && is_saved(words + i, each)) {
            read_saved(self, words + i);
            i += each - 1;
        }
    }
}

static void
read_function(struct cm_grad_reading *self, uint64_t object)
{
    uint64_t vector[3];
    size_t place = self->layout->function_saved;
    PyObject *context = (PyObject *)(uintptr_t)object;
    if (!cm_cpp_may_point(object)
        || !cm_grad_is_subtype(Py_TYPE(context), self->layout->function)
        || !cm_torch_peek(object + place, vector, 3)) {
        cut(self);
        return;
    }
    if (is_vector(vector, self->layout->saved_bytes, MOST_SAVED)) {
        read_saved_vector(self, vector);
    }
}

static void
read_own_fields(struct cm_grad_reading *self, enum cm_cpp_kind kind,
                const uint64_t *words, size_t count)
{
    size_t from = self->layout->node_end / 8;
    if (kind == CM_CPP_ACCUMULATE) {
        if (cm_cpp_kind_at(words[from]) == CM_CPP_TENSOR) {
            link_to_tensor(self, words[from], CM_GRAD_VARIABLE);
        }
    }
    else if (kind == CM_CPP_PYTHON_NODE) {
        read_function(self, words[self->layout->python_node_object / 8]);
    }
    else if (count > from) {
        read_fields(self, words + from, count - from);
    }
    else if (count == 0) {
        cut(self);
    }
}

/* Beside the pointer when they are not in the node itself. */
static uint32_t
uses_of_node(const struct cm_grad_reading *self,
             const struct cm_grad_vertex *vertex, const uint64_t *words)
{
    uint64_t uses = 0;
    if (self->layout->counted_in_node) {
        return (uint32_t)words[1];
    }
    if (vertex->counter == 0 || !cm_torch_peek(vertex->counter, &uses, 1)) {
        return 0;
    }
    return (uint32_t)uses;
}

/* `count` words are there; the one before them is the block's head. */
static void
read_node(struct cm_grad_reading *self, const struct cm_cpp_class *class,
          const uint64_t *words, size_t count)
{
    struct cm_grad_vertex *vertex = &self->graph->vertices[self->tail];
    const struct cm_autograd_layout *layout = self->layout;
    enum cm_cpp_kind kind = (enum cm_cpp_kind) class->kind;
    bool python = kind == CM_CPP_PYTHON_NODE;
    size_t at = python ? layout->python_node_object : layout->node_object;
    size_t whole = block_words(self, words[-1], layout->node_end);
    vertex->uses = uses_of_node(self, vertex, words);
    if (layout->node_depth != CM_GRAD_NONE) {
        vertex->depth = (uint32_t)words[layout->node_depth / 8] + 1;
    }
    vertex->cut = !class->known || whole > count;
    cm_grad_set_object(self, words[at / 8] & ~UINT64_C(7));
    read_edges(self, words + layout->edges / 8);
    read_hooks(self, words, 1, layout->node_end / 8, layout->edges / 8);
    read_own_fields(self, kind, words, whole < count ? whole : count);
}

/* One read for nearly all: at the very end of the heap there is less. */
static size_t
read_block(const struct cm_grad_reading *self, uint64_t address,
           uint64_t *words)
{
    size_t least = self->layout->node_end / 8 + 1;
    size_t sizes[] = {CM_GRAD_NODE_WORDS, least + 16, least, IMPL_WORDS};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (cm_torch_peek(address - 8, words, 1 + sizes[i])) {
            return sizes[i];
        }
    }
    return 0;
}

void
cm_grad_read(struct cm_grad_reading *self)
{
    struct cm_grad_vertex *vertex = &self->graph->vertices[self->tail];
    uint64_t words[1 + CM_GRAD_NODE_WORDS];
    vertex->first_edge = (uint32_t)self->graph->edge_count;
    size_t count = cm_cpp_may_point(vertex->address)
                       ? read_block(self, vertex->address, words)
                       : 0;
    vertex->class = count != 0 ? cm_cpp_class_of(words[1]) : NULL;
    vertex->cut = true;
    if (vertex->class == NULL) {
        return;
    }
    if (vertex->class->kind == CM_CPP_TENSOR) {
        read_tensor(self, vertex->class, words + 1);
    }
    else if (cm_cpp_is_node((enum cm_cpp_kind)vertex->class->kind)
             && count > self->layout->node_end / 8) {
        read_node(self, vertex->class, words + 1, count);
    }
}
