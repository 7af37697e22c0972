/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Each fact is looked for where it must stand, and must stand there in every
 * probe.  Read through the
 * kernel, as the walk does. */

#include "autograd_layout.h"

#include <malloc.h> // malloc_usable_size()
#include <string.h>

#include "cpp_class.h"
#include "torch_layout.h"

enum { OBJECT_WORDS = 40, IMPL_WORDS = 24, HEAD_WORDS = 16 };

static struct {
    struct cm_autograd_layout layout;
    const char *reason;
    bool found, ready;
} learnt = {.reason = "not probed yet"}; /* Guarded by the GIL. */

/* What a step of the search needs. */
struct probes {
    PyObject *facts; /* borrowed: a dict */
    const char *missing;
};

static uint64_t
fact(struct probes *self, const char *name)
{
    PyObject *number = PyDict_GetItemString(self->facts, name);
    uint64_t value = number != NULL && PyLong_Check(number)
                         ? PyLong_AsUnsignedLongLong(number)
                         : 0;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        value = 0;
    }
    if (value == 0 && self->missing == NULL) {
        self->missing = "unsupported: a probe tensor could not be made";
    }
    return value;
}

/* As many words as are there, at most `most`; the rest is 0. */
static size_t
read_words(uint64_t address, uint64_t *words, size_t most)
{
    memset(words, 0, most * sizeof(*words));
    if (!cm_cpp_may_point(address)) {
        return 0;
    }
    for (size_t count = most; count >= 4; count -= 4) {
        if (cm_torch_peek(address, words, count)) {
            return count;
        }
    }
    return 0;
}

/* A block's words where its head looks like one, else all that is looked at. */
static size_t
words_of_node(uint64_t node)
{
    uint64_t head = 0;
    bool sane = cm_torch_peek(node - 8, &head, 1) && head >= 128
                && head < CM_GRAD_NODE_WORDS * 8;
    return sane ? (size_t)((head & ~UINT64_C(7)) - 8) / 8 : CM_GRAD_NODE_WORDS;
}

/* Where something stands in each of two structures: what is left in memory
 * from before does not stand in both. */
struct twins {
    uint64_t address[2], wanted[2];
};

/* The first place, or CM_GRAD_NONE. */
static size_t
place_in_both(const struct twins *twins, size_t words_from, size_t words_to)
{
    uint64_t words[2][CM_GRAD_NODE_WORDS];
    read_words(twins->address[0], words[0], words_to);
    read_words(twins->address[1], words[1], words_to);
    for (size_t i = words_from; i < words_to; i++) {
        bool both = true;
        for (size_t k = 0; k < 2; k++) {
            both = both && twins->wanted[k] != 0
                   && (words[k][i] & ~UINT64_C(7)) == twins->wanted[k];
        }
        if (both) {
            return i * 8;
        }
    }
    return CM_GRAD_NONE;
}

static size_t
place_of(uint64_t address, size_t words_from, size_t words_to, uint64_t wanted)
{
    struct twins same = {{address, address}, {wanted, wanted}};
    return place_in_both(&same, words_from, words_to);
}

static size_t
place_of_kind(uint64_t address, size_t words_to, bool node)
{
    uint64_t words[OBJECT_WORDS];
    read_words(address, words, words_to);
    for (size_t i = 1; i < words_to; i++) {
        enum cm_cpp_kind kind = cm_cpp_kind_at(words[i]);
        if (node ? cm_cpp_is_node(kind)
                 : kind == CM_CPP_META || kind == CM_CPP_VIEW_META) {
            return i * 8;
        }
    }
    return CM_GRAD_NONE;
}

static uint64_t
word(uint64_t address, size_t offset)
{
    uint64_t value = 0;
    return cm_torch_peek(address + offset, &value, 1) ? value : 0;
}

/* The node behind a grad_fn of this name. */
static uint64_t
node_of(struct probes *self, const char *name)
{
    return word(fact(self, name), learnt.layout.object_node);
}

static void
need(struct probes *self, size_t place, const char *missing)
{
    if (place == CM_GRAD_NONE && self->missing == NULL) {
        self->missing = missing;
    }
}

static void
find_tensor(struct probes *self, struct cm_autograd_layout *layout)
{
    uint64_t impl = fact(self, "product_impl");
    layout->object_node = place_of_kind(fact(self, "product_fn"), 8, true);
    need(self, layout->object_node, "unsupported: grad_fn -> Node");
    layout->impl_meta = place_of_kind(impl, IMPL_WORDS, false);
    need(self, layout->impl_meta, "unsupported: TensorImpl -> AutogradMeta");
    struct twins objects = {
        {impl, fact(self, "leaf_impl")},
        {fact(self, "product"), fact(self, "leaf")},
    };
    layout->impl_object = place_in_both(&objects, 1, IMPL_WORDS);
    need(self, layout->impl_object, "unsupported: TensorImpl -> object");
    if (self->missing != NULL) {
        return;
    }
    struct twins nodes = {
        {word(impl, layout->impl_meta),
         word(fact(self, "view_base_impl"), layout->impl_meta)},
        {node_of(self, "product_fn"), node_of(self, "view_base_fn")},
    };
    layout->meta_grad_fn = place_in_both(&nodes, 1, 16);
    need(self, layout->meta_grad_fn, "unsupported: AutogradMeta.grad_fn_");
    struct twins grads = {
        {word(fact(self, "leaf_impl"), layout->impl_meta),
         word(fact(self, "a_impl"), layout->impl_meta)},
        {fact(self, "leaf_grad_impl"), fact(self, "a_grad_impl")},
    };
    layout->meta_grad = place_in_both(&grads, 1, 16);
    need(self, layout->meta_grad, "unsupported: AutogradMeta.grad_");
    /* Engaged: the byte after a view's base and its two functions. */
    uint64_t view = word(fact(self, "view_impl"), layout->impl_meta);
    layout->view_base =
        place_of(view, 1, CM_GRAD_META_WORDS, fact(self, "view_base_impl"));
    if (layout->view_base != CM_GRAD_NONE
        && (word(view, layout->view_base + 48) & 0xFF) != 1) {
        layout->view_base = CM_GRAD_NONE;
    }
}

/* Three words as of a vector whose items lead to these two, each time. */
static bool
are_edges(const uint64_t *words, size_t bytes, const uint64_t heads[2])
{
    uint64_t items[6];
    return words[1] - words[0] == 2 * bytes && words[2] >= words[1]
           && cm_cpp_may_point(words[0])
           && cm_torch_peek(words[0], items, bytes / 4) && items[0] == heads[0]
           && items[bytes / 8] == heads[1]
           && (uint32_t)items[bytes / 8 - 1] == 0;
}

static void
find_edges(struct probes *self, struct cm_autograd_layout *layout)
{
    uint64_t words[64];
    uint64_t heads[2] = {node_of(self, "accumulate_a"),
                         node_of(self, "accumulate_b")};
    size_t found = 0;
    read_words(node_of(self, "product_fn"), words, 64);
    for (size_t i = 1; i + 2 < 64; i++) {
        for (size_t bytes = 16; bytes <= 24; bytes += 8) {
            if (are_edges(words + i, bytes, heads)) {
                layout->edges = i * 8;
                layout->edge_bytes = bytes;
                found++;
            }
        }
    }
    need(self, found == 1 ? 0 : CM_GRAD_NONE, "unsupported: Node.next_edges_");
    layout->counted_in_node = layout->edge_bytes == 16;
    struct twins objects = {
        {node_of(self, "product_fn"), node_of(self, "lerp_fn")},
        {fact(self, "product_fn"), fact(self, "lerp_fn")},
    };
    layout->node_object = place_in_both(&objects, 1, 64);
    need(self, layout->node_object, "unsupported: Node -> object");
    struct twins variables = {
        {heads[0], heads[1]},
        {fact(self, "a_impl"), fact(self, "b_impl")},
    };
    layout->node_end = place_in_both(&variables, 1, CM_GRAD_NODE_WORDS);
    need(self, layout->node_end, "unsupported: AccumulateGrad.variable");
}

/* The first words of three nodes whose depths are 1, 2 and 5. */
static void
find_depth(struct probes *self, struct cm_autograd_layout *layout)
{
    static const uint64_t depths[] = {1, 2, 5};
    static const char *const names[] = {"depth_1", "depth_2", "depth_5"};
    bool fits[HEAD_WORDS];
    size_t count = 0;
    memset(fits, true, sizeof(fits));
    for (size_t k = 0; k < 3; k++) {
        uint64_t words[HEAD_WORDS];
        read_words(node_of(self, names[k]), words, HEAD_WORDS);
        for (size_t i = 0; i < HEAD_WORDS; i++) {
            fits[i] = fits[i] && words[i] == depths[k];
        }
    }
    layout->node_depth = CM_GRAD_NONE;
    for (size_t i = 1; i < HEAD_WORDS; i++) {
        count += fits[i];
        layout->node_depth = fits[i] ? i * 8 : layout->node_depth;
    }
    if (count != 1) {
        layout->node_depth = CM_GRAD_NONE;
    }
}

/* torch.lerp keeps three tensors beside each other. */
static void
find_saved(struct probes *self, struct cm_autograd_layout *layout)
{
    uint64_t node = node_of(self, "lerp_fn");
    size_t from = layout->node_end / 8, to = words_of_node(node);
    size_t at[3] = {place_of(node, from, to, fact(self, "a_impl")),
                    place_of(node, from, to, fact(self, "b_impl")),
                    place_of(node, from, to, fact(self, "leaf_impl"))};
    size_t low = CM_GRAD_NONE, high = 0, sum = 0;
    for (size_t i = 0; i < 3; i++) {
        need(self, at[i], "unsupported: SavedVariable");
        low = at[i] < low ? at[i] : low;
        high = at[i] > high ? at[i] : high;
        sum += at[i];
    }
    layout->saved_bytes = (high - low) / 2;
    if (self->missing == NULL
        && (sum - low - high != low + layout->saved_bytes
            || layout->saved_bytes < 48 || layout->saved_bytes > 256)) {
        self->missing = "unsupported: size of SavedVariable";
    }
}

static bool
is_packed(struct probes *self, uint64_t address, size_t hook_bytes)
{
    static const char *const names[] = {"pack", "unpack", "packed"};
    uint64_t words[CM_GRAD_HOOK_WORDS];
    bool right =
        cm_cpp_kind_at(address) == CM_CPP_SAVED_HOOKS
        && cm_torch_peek(address, words, cm_grad_hook_words(hook_bytes));
    for (size_t i = 0; right && i < 3; i++) {
        right =
            cm_grad_hook_object(words, hook_bytes, i) == fact(self, names[i]);
    }
    return right;
}

/* How many places of both variables, at `a` and `b` of a node, lead to hooks
 * that are laid out so; the layout has the last of them. */
static size_t
find_hooks(struct probes *self, const uint64_t *words, size_t a, size_t b,
           size_t hook_bytes, struct cm_autograd_layout *layout)
{
    size_t found = 0;
    for (size_t at = 8; at < layout->saved_bytes; at += 8) {
        if (is_packed(self, words[(a + at) / 8], hook_bytes)
            && is_packed(self, words[(b + at) / 8], hook_bytes)) {
            layout->saved_hooks = at;
            layout->hook_bytes = hook_bytes;
            found++;
        }
    }
    return found;
}

/* The same product under hooks that pack it: where its two saved variables
 * stand is known from the product without hooks. */
static void
find_packed(struct probes *self, struct cm_autograd_layout *layout)
{
    uint64_t plain = node_of(self, "product_fn");
    uint64_t node = node_of(self, "packed_fn"), words[CM_GRAD_NODE_WORDS];
    size_t from = layout->node_end / 8, to = words_of_node(plain);
    size_t a = place_of(plain, from, to, fact(self, "a_impl"));
    size_t b = place_of(plain, from, to, fact(self, "b_impl"));
    need(self, a, "unsupported: SavedVariable of a product");
    need(self, b, "unsupported: SavedVariable of a product");
    size_t last = (a > b ? a : b) + layout->saved_bytes;
    if (self->missing != NULL || last > sizeof(words)) {
        need(self, CM_GRAD_NONE, "unsupported: SavedVariable of a product");
        return;
    }
    read_words(node, words, CM_GRAD_NODE_WORDS);
    size_t found = find_hooks(self, words, a, b, 8, layout)
                   + find_hooks(self, words, a, b, 24, layout);
    need(self, found == 1 ? 0 : CM_GRAD_NONE,
         "unsupported: SavedVariable.hooks_");
    size_t words_of_one = layout->saved_bytes / 8;
    layout->saved_grad_fn =
        place_of(node + a, 1, words_of_one, node_of(self, "depth_1"));
    layout->saved_accumulator =
        place_of(node + b, 1, words_of_one, node_of(self, "accumulate_b"));
}

static void
find_function(struct probes *self, struct cm_autograd_layout *layout)
{
    static const char *const names[] = {"a_impl", "b_impl", "leaf_impl"};
    uint64_t context = fact(self, "context"), words[OBJECT_WORDS];
    layout->function_saved = CM_GRAD_NONE;
    layout->function_node = place_of_kind(context, OBJECT_WORDS, true);
    need(self, layout->function_node, "unsupported: Function -> Node");
    layout->python_node_object =
        place_of(word(context, layout->function_node), 1,
                 layout->node_end / 8 + 1, context);
    need(self, layout->python_node_object, "unsupported: PyNode -> object");
    read_words(context, words, OBJECT_WORDS);
    for (size_t i = 2; i + 2 < OBJECT_WORDS; i++) {
        size_t right = 0;
        if (words[i + 1] - words[i] == 3 * layout->saved_bytes) {
            for (size_t k = 0; k < 3; k++) {
                right += word(words[i], k * layout->saved_bytes)
                         == fact(self, names[k]);
            }
        }
        layout->function_saved = right == 3 ? i * 8 : layout->function_saved;
    }
    need(self, layout->function_saved,
         "unsupported: Function's saved tensors");
}

/* glibc writes the size of a block before it.  Asked of live blocks only. */
static bool
sizes_are_there(struct probes *self)
{
    static const char *const names[] = {"product_fn", "lerp_fn", "depth_5"};
    for (size_t i = 0; i < 3; i++) {
        uint64_t node = node_of(self, names[i]);
        uint64_t head = word(node - 8, 0);
        if (node == 0
            || malloc_usable_size((void *)(uintptr_t)node)
                   != (head & ~UINT64_C(7)) - 8) {
            return false;
        }
    }
    return true;
}

static const char *
find_layout(struct probes *self, struct cm_autograd_layout *layout)
{
    static void (*const steps[])(struct probes * self,
                                 struct cm_autograd_layout * layout) = {
        find_tensor, find_edges,  find_depth,
        find_saved,  find_packed, find_function};
    memset(layout, 0, sizeof(*layout));
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (self->missing == NULL) {
            steps[i](self, layout);
        }
    }
    layout->sized = self->missing == NULL && sizes_are_there(self);
    return self->missing;
}

static PyObject *
learn(PyObject *facts, PyObject *function)
{
    struct probes probes = {.facts = facts};
    PyObject *grad_fn = (PyObject *)(uintptr_t)fact(&probes, "product_fn");
    learnt.reason = grad_fn != NULL ? find_layout(&probes, &learnt.layout)
                                    : "unsupported: no node was told";
    if (learnt.reason != NULL) {
        PyErr_SetString(PyExc_RuntimeError, learnt.reason);
        return NULL;
    }
    learnt.layout.node_traverse = Py_TYPE(grad_fn)->tp_traverse;
    learnt.layout.function = (PyTypeObject *)Py_NewRef(function);
    learnt.found = true;
    learnt.reason = "not probed yet";
    Py_RETURN_NONE;
}

static PyObject *
uses_behind(PyObject *grad_fn)
{
    const struct cm_autograd_layout *layout = &learnt.layout;
    uint64_t node = word((uint64_t)(uintptr_t)grad_fn, layout->object_node);
    uint64_t edge[2] = {0}, count = 0;
    if (!learnt.found || !cm_torch_peek(word(node, layout->edges), edge, 2)
        || !cm_torch_peek((layout->counted_in_node ? edge[0] : edge[1]) + 8,
                          &count, 1)) {
        return PyLong_FromLong(-1);
    }
    return PyLong_FromUnsignedLong((uint32_t)count);
}

static PyObject *
make_ready(PyObject *const flags[4])
{
    if (!learnt.found) {
        PyErr_SetString(PyExc_RuntimeError, "the layout comes first");
        return NULL;
    }
    learnt.layout.has_uses = flags[0] == Py_True;
    learnt.layout.tensors_are_mutual = flags[1] == Py_True;
    learnt.layout.nodes_are_mutual = flags[2] == Py_True;
    learnt.layout.functions_count = flags[3] == Py_True;
    learnt.ready = true;
    learnt.reason = learnt.layout.sized
                        ? "struct layout"
                        : "struct layout; saved tensors only of Functions: "
                          "the allocator does not say how large a block is";
    Py_RETURN_NONE;
}

/* For bench/autograd.py and the tests. */
static PyObject *
describe(void)
{
    const struct cm_autograd_layout *l = &learnt.layout;
    return Py_BuildValue(
        "{snsnsnsnsnsnsnsnsnsnsnsnsnsnsnsnsnsnsnsNsNsNsNsNsN}", "object_node",
        l->object_node, "impl_meta", l->impl_meta, "impl_object",
        l->impl_object, "meta_grad_fn", l->meta_grad_fn, "meta_grad",
        l->meta_grad, "view_base", l->view_base, "edges", l->edges,
        "edge_bytes", l->edge_bytes, "node_object", l->node_object,
        "python_node_object", l->python_node_object, "node_depth",
        l->node_depth, "node_end", l->node_end, "saved_bytes", l->saved_bytes,
        "saved_hooks", l->saved_hooks, "hook_bytes", l->hook_bytes,
        "saved_grad_fn", l->saved_grad_fn, "saved_accumulator",
        l->saved_accumulator, "function_node", l->function_node,
        "function_saved", l->function_saved, "counted_in_node",
        PyBool_FromLong(l->counted_in_node), "sized",
        PyBool_FromLong(l->sized), "has_uses", PyBool_FromLong(l->has_uses),
        "tensors_are_mutual", PyBool_FromLong(l->tensors_are_mutual),
        "nodes_are_mutual", PyBool_FromLong(l->nodes_are_mutual),
        "functions_count", PyBool_FromLong(l->functions_count));
}

/* Each search has found a layout, and no two the same. */
static PyObject *
doubt(void)
{
    cm_autograd_unlearn();
    learnt.reason = "unsupported: no two searches found the same";
    PyErr_SetString(PyExc_RuntimeError, learnt.reason);
    return NULL;
}

PyObject *
cm_autograd_probe(PyObject *module, PyObject *args)
{
    (void)module;
    const char *step;
    PyObject *given[4] = {NULL};
    if (!PyArg_ParseTuple(args, "s|OOOO", &step, &given[0], &given[1],
                          &given[2], &given[3])) {
        return NULL;
    }
    PyObject *a = given[0], *b = given[1];
    if (strcmp(step, "layout") == 0) {
        return describe();
    }
    if (strcmp(step, "doubt") == 0) {
        return doubt();
    }
    if (strcmp(step, "learn") == 0 && b != NULL && PyDict_CheckExact(a)
        && PyType_Check(b)) {
        cm_autograd_unlearn();
        return learn(a, b);
    }
    if (strcmp(step, "uses") == 0 && a != NULL) {
        return uses_behind(a);
    }
    if (strcmp(step, "ready") == 0 && given[3] != NULL) {
        return make_ready(given);
    }
    PyErr_SetString(PyExc_ValueError, "unknown step");
    return NULL;
}

const struct cm_autograd_layout *
cm_autograd_learnt(const char **reason)
{
    *reason = learnt.reason;
    return learnt.ready ? &learnt.layout : NULL;
}

void
cm_autograd_unlearn(void)
{
    Py_CLEAR(learnt.layout.function);
    memset(&learnt.layout, 0, sizeof(learnt.layout));
    learnt.found = learnt.ready = false;
    learnt.reason = "not probed yet";
}
