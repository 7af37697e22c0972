/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The walk and the names are native, done before the first Python object of
 * the answer is made, and collections are held off meanwhile (a getter of a
 * framework's may make an object): so the walk's borrowed nodes live, and
 * nothing of the program's is held.  Cost: reach.h; it stops when enough ways
 * are known. */

#include "why_alive.h"

#include "../../detector/alloc.h"
#include "../holders/grad_ways.h"
#include "../session/session_private.h"
#include "../holders/trail.h"

static const struct cm_reach_bounds on_demand = {
    .max_nodes = 200000000, .max_time_ns = UINT64_C(60000000000)};

struct answer {
    struct cm_trail *trails; /* owned */
    size_t count, capacity;
    uint32_t nodes;
    bool cut, frames_unread;
    const char *kept_by; /* constant: the interpreter's own reason, or NULL */
    struct cm_text_id what;
};

static void
answer_release(struct answer *self)
{
    for (size_t i = 0; i < self->count; i++) {
        cm_trail_release(&self->trails[i]);
    }
    cm_free(self->trails);
    *self = (struct answer){0};
}

/* ---- what the interpreter itself keeps */

static bool
is_singleton(PyObject *object)
{
    PyObject *const singletons[] = {Py_None, Py_True, Py_False, Py_Ellipsis,
                                    Py_NotImplemented};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(singletons); i++) {
        if (singletons[i] == object) {
            return true;
        }
    }
    if (PyLong_CheckExact(object)) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
        return overflow == 0 && value >= -5 && value <= 256;
    }
    return PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == 0;
}

static const char *
kept_by_interpreter(PyObject *object)
{
    if (is_singleton(object)) {
        return "the interpreter: there is one of it, for ever";
    }
    if (PyType_Check(object)
        && !(((PyTypeObject *)object)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        return "the interpreter: a class made in C";
    }
    if (PyUnicode_CheckExact(object) && PyUnicode_CHECK_INTERNED(object)) {
        return "the interpreter: an interned string";
    }
    return NULL;
}

/* ---- the ways that are told */

/* So many more are looked for than are told: a parameter is near an optimizer
 * twice, and behind each loss. */
enum { SPARE_WAYS = 5 };

static bool
is_through_autograd(const struct cm_trail *trail)
{
    for (size_t i = 0; i < trail->count; i++) {
        if (trail->steps[i].role == CM_AUTOGRAD) {
            return true;
        }
    }
    return false;
}

static bool
is_same_variable(const struct cm_trail *one, const struct cm_trail *other)
{
    return one->count > 1 && other->count > 1 && one->root == other->root
           && cm_text_same(one->steps[1].edge, other->steps[1].edge);
}

/* Lower is told first: of each variable its nearest way, then further ones,
 * then what autograd keeps besides. */
static int
order_of(const struct cm_trail *trails, size_t at)
{
    if (is_through_autograd(&trails[at])) {
        return 2;
    }
    for (size_t i = 0; i < at; i++) {
        if (is_same_variable(&trails[i], &trails[at])) {
            return 1;
        }
    }
    return 0;
}

/* Among those of one rank, which are `count` from `first` on, nearest first. */
static enum cm_status
sort_ways(struct cm_trail *first, size_t count)
{
    struct cm_trail *sorted = cm_calloc(count + 1, sizeof(*sorted));
    size_t done = 0;
    if (sorted == NULL) {
        return CM_NO_MEMORY;
    }
    for (int order = 0; order <= 2; order++) {
        for (size_t i = 0; i < count; i++) {
            if (order_of(first, i) == order) {
                sorted[done++] = first[i];
            }
        }
    }
    memcpy(first, sorted, count * sizeof(*sorted));
    cm_free(sorted);
    return CM_OK;
}

/* All ways of one rank, from hit `*at` on. */
static enum cm_status
tell_rank(struct answer *answer, const struct cm_reach *reach, size_t *at,
          bool passed)
{
    uint8_t rank = reach->hits[*at].rank;
    size_t before = answer->count;
    for (; *at < reach->hit_count && reach->hits[*at].rank == rank; ++*at) {
        if (reach->hits[*at].passed != passed
            || answer->count == answer->capacity) {
            continue;
        }
        enum cm_status status =
            cm_trail_find(&answer->trails[answer->count], reach,
                          reach->hits[*at].parent, reach->targets[0]);
        if (status != CM_OK) {
            return status;
        }
        answer->count++;
    }
    return sort_ways(&answer->trails[before], answer->count - before);
}

/* Variables of the code that asks are told only where nothing else is. */
static enum cm_status
tell(struct answer *answer, const struct cm_reach *reach, bool passed)
{
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < reach->hit_count && status == CM_OK;) {
        status = tell_rank(answer, reach, &i, passed);
    }
    return status;
}

/* ---- the walk */

static enum cm_status
look(struct cm_session *self, PyObject *args, PyObject *object,
     struct answer *answer)
{
    struct cm_roots roots;
    struct cm_grad_ways ways = {.texts = self->objects->texts};
    struct cm_more more = cm_grad_ways_more(&ways);
    enum cm_status status = cm_roots_find(&roots, self->objects);
    if (status != CM_OK) {
        return status;
    }
    struct cm_reach reach = {.roots = &roots,
                             .devices = self->devices,
                             .more = &more,
                             .bounds = on_demand,
                             .targets = &object,
                             .target_count = 1,
                             .ways = (uint32_t)answer->capacity,
                             .asked = true,
                             .hidden = &args,
                             .hidden_count = 1};
    answer->frames_unread = roots.frames_unread != 0;
    status = cm_reach_run(&reach);
    if (status == CM_OK) {
        answer->nodes = reach.node_count - reach.nodes_left;
        answer->cut = reach.cut;
        status = tell(answer, &reach, false);
    }
    if (status == CM_OK && answer->count == 0) {
        status = tell(answer, &reach, true);
    }
    answer->cut |= ways.graph.cut;
    status = status == CM_OK ? ways.status : status;
    cm_reach_release(&reach);
    cm_grad_ways_release(&ways);
    cm_roots_release(&roots);
    return status;
}

static enum cm_status
make_room(struct answer *self, size_t ways)
{
    self->capacity = ways;
    self->trails = cm_calloc(ways, sizeof(*self->trails));
    return self->trails != NULL ? CM_OK : CM_NO_MEMORY;
}

/* ---- of a gradient, the ways to its parameter

 * A walk meets the parameter once, at its nearest: that may be behind a loss,
 * where the model has it too. */

static bool
is_by_grad(const struct cm_session *self, const struct cm_trail *trail)
{
    size_t last = trail->count - 1;
    return trail->count > 2 && trail->steps[last - 1].species == CM_TENSOR
           && strcmp(cm_records_text(self->records, trail->steps[last].edge),
                     ".grad")
                  == 0;
}

/* [borrowed] NULL: it is nobody's, as far as is known. */
static PyObject *
parameter_of(const struct cm_session *self, const struct answer *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        const struct cm_trail *trail = &answer->trails[i];
        if (is_by_grad(self, trail)) {
            return trail->steps[trail->count - 2].object;
        }
    }
    return NULL;
}

static enum cm_status
go_on_to_gradient(const struct cm_session *self, struct cm_trail *trail,
                  struct cm_text_id what)
{
    enum cm_status status = cm_grow((void **)&trail->steps, &trail->capacity,
                                    trail->count + 1, sizeof(*trail->steps));
    if (status == CM_OK) {
        trail->steps[trail->count++] = (struct cm_step){
            .annotation = what,
            .edge = cm_texts_intern(cm_records_texts(self->records), ".grad")};
    }
    return status;
}

static void
move(struct answer *from, size_t at, struct answer *to)
{
    if (to->count < to->capacity) {
        to->trails[to->count++] = from->trails[at];
        from->trails[at] = (struct cm_trail){0};
    }
}

/* What has the gradient itself, by no way to that parameter. */
static void
move_others(const struct cm_session *self, struct answer *from,
            const PyObject *parameter, bool autograd, struct answer *to)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct cm_trail *trail = &from->trails[i];
        bool by_it = is_by_grad(self, trail)
                     && trail->steps[trail->count - 2].object == parameter;
        if (trail->count != 0 && !by_it
            && is_through_autograd(trail) == autograd) {
            move(from, i, to);
        }
    }
}

static enum cm_status
tell_by_parameter(struct cm_session *self, PyObject *args, PyObject *parameter,
                  struct answer *answer)
{
    struct answer ways = {0}, all = *answer;
    enum cm_status status = make_room(&ways, answer->capacity);
    all.trails = NULL;
    all.count = 0;
    status = status == CM_OK ? make_room(&all, answer->capacity) : status;
    status = status == CM_OK ? look(self, args, parameter, &ways) : status;
    for (size_t i = 0; i < ways.count && status == CM_OK; i++) {
        status = go_on_to_gradient(self, &ways.trails[i], answer->what);
    }
    if (status == CM_OK && ways.count != 0) {
        move_others(self, answer, parameter, false, &all);
        for (size_t i = 0; i < ways.count; i++) {
            move(&ways, i, &all);
        }
        move_others(self, answer, parameter, true, &all);
        all.cut |= ways.cut;
        struct answer old = *answer;
        *answer = all;
        all = old;
    }
    answer_release(&ways);
    answer_release(&all);
    return status;
}

static enum cm_status
find(struct cm_session *self, PyObject *args, uint32_t most,
     struct answer *answer)
{
    PyObject *object = PyTuple_GET_ITEM(args, 0);
    struct cm_step own = {.object = object};
    if (make_room(answer, (size_t)most + SPARE_WAYS) != CM_OK) {
        return CM_NO_MEMORY;
    }
    if (!cm_device_step(self->devices, cm_records_texts(self->records),
                        &own)) {
        struct cm_node node = {0};
        cm_objects_describe(self->objects, object, &node);
        own.annotation = node.label;
    }
    answer->what = own.annotation;
    answer->kept_by = kept_by_interpreter(object);
    if (answer->kept_by != NULL && !PyUnicode_Check(object)) {
        return CM_OK;
    }
    enum cm_status status = look(self, args, object, answer);
    PyObject *parameter = status == CM_OK ? parameter_of(self, answer) : NULL;
    return parameter != NULL ? tell_by_parameter(self, args, parameter, answer)
                             : status;
}

/* ---- the answer as Python objects */

static PyObject *
text(const struct cm_session *self, struct cm_text_id id)
{
    const char *bytes = cm_records_text(self->records, id);
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes),
                                "surrogateescape");
}

/* [new; raises] */
static PyObject *
way_of(const struct cm_session *self, const struct cm_trail *trail)
{
    PyObject *way = PyList_New(0);
    for (size_t i = 0; way != NULL && i < trail->count; i++) {
        PyObject *pair =
            Py_BuildValue("(NN)", text(self, trail->steps[i].annotation),
                          text(self, trail->steps[i].edge));
        if (pair == NULL || PyList_Append(way, pair) < 0) {
            Py_CLEAR(way);
        }
        Py_XDECREF(pair);
    }
    return way;
}

static int
append_new(PyObject *list, PyObject *item)
{
    int result = item == NULL ? -1 : PyList_Append(list, item);
    Py_XDECREF(item);
    return result;
}

/* [new; raises] */
static PyObject *
ways_of(const struct cm_session *self, const struct answer *answer,
        uint32_t most)
{
    PyObject *ways = PyList_New(0);
    int result = ways == NULL ? -1 : 0;
    for (size_t i = 0; result == 0 && i < answer->count && i < most; i++) {
        result = append_new(ways, way_of(self, &answer->trails[i]));
    }
    if (result == 0 && answer->kept_by != NULL && answer->count < most) {
        result =
            append_new(ways, Py_BuildValue("[(ss)(Ns)]", answer->kept_by, "",
                                           text(self, answer->what), ""));
    }
    if (result < 0) {
        Py_CLEAR(ways);
    }
    return ways;
}

PyObject *
cm_why_alive(struct cm_session *self, PyObject *args)
{
    PyObject *object, *ways = NULL;
    unsigned int most;
    struct answer answer = {0};
    if (!PyArg_ParseTuple(args, "OI", &object, &most)) {
        return NULL;
    }
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_RuntimeError,
                    "free-threaded CPython: other threads change the heap "
                    "while it is looked at");
    return NULL;
#endif
    cm_devices_notice(self->devices);
    PyErr_Clear();
    cm_gc_switch_hold(&self->gc_switch);
    enum cm_status status = find(self, args, most, &answer);
    cm_gc_switch_give(&self->gc_switch);
    if (status == CM_OK) {
        ways = ways_of(self, &answer, most);
    }
    else {
        PyErr_NoMemory();
    }
    PyObject *result =
        ways == NULL
            ? NULL
            : Py_BuildValue("(NNkOO)", ways, text(self, answer.what),
                            (unsigned long)answer.nodes,
                            answer.cut ? Py_True : Py_False,
                            answer.frames_unread ? Py_True : Py_False);
    answer_release(&answer);
    return result;
}
