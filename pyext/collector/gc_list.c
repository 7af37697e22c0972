/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* In every GIL build from 3.11 to 3.15 the generations are consecutive
 * structs {head; int threshold; int count} inside the interpreter state, and a
 * newly tracked object is the last of the first one.  That is assumed only
 * where it can be seen to be so.  A walk goes from both ends and holds each
 * link against the node it came from: so it ends, even in a list that is not
 * what it seems, and costs 3 to 12 ns an object. */

#include "gc_list.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../../detector/hot.h"
#include "../tables/fields.h"
#include "../tables/huge_pages.h"

static PyObject *
builtin_of(PyObject *names, PyObject *module, const char *name)
{
    PyObject *function = PyDict_GetItemString(names, name);
    if (function == NULL || !PyCFunction_CheckExact(function)
        || PyCFunction_GET_SELF(function) != module) {
        PyErr_Format(PyExc_ImportError, "gc.%s is not CPython's own", name);
        return NULL;
    }
    return Py_NewRef(function);
}

int
cm_gc_module_init(struct cm_gc_module *self)
{
    struct cm_gc_module made = {0};
    made.module = cm_module_of("gc");
    if (made.module == NULL)
        return -1;
    PyObject *names = NULL;
    if (PyModule_CheckExact(made.module))
        names = PyModule_GetDict(made.module);
    else
        PyErr_SetString(PyExc_ImportError, "gc is not a module");
    const struct {
        const char *name;
        PyObject **place;
    } functions[] = {
        {"get_debug", &made.get_debug},
        {"set_debug", &made.set_debug},
        {"get_threshold", &made.get_threshold},
        {"get_count", &made.get_count},
        {"get_freeze_count", &made.get_freeze_count},
    };
    for (size_t i = 0; names && i < Py_ARRAY_LENGTH(functions); i++) {
        *functions[i].place =
            builtin_of(names, made.module, functions[i].name);
        if (*functions[i].place == NULL)
            names = NULL;
    }
    if (names == NULL) {
        cm_gc_module_release(&made);
        return -1;
    }
    *self = made;
    return 0;
}

void
cm_gc_module_release(struct cm_gc_module *self)
{
    Py_CLEAR(self->get_freeze_count);
    Py_CLEAR(self->get_count);
    Py_CLEAR(self->get_threshold);
    Py_CLEAR(self->set_debug);
    Py_CLEAR(self->get_debug);
    Py_CLEAR(self->module);
}

/* [new or NULL; never] */
static PyObject *
ask(PyObject *function, PyObject *argument)
{
    PyObject *answer = PyCFunction_GET_FUNCTION(function)(
        PyCFunction_GET_SELF(function), argument);
    if (answer == NULL)
        PyErr_Clear();
    return answer;
}

static long
ask_number(PyObject *function)
{
    PyObject *answer = ask(function, NULL);
    if (answer == NULL)
        return -1;
    long number = PyLong_AsLong(answer);
    Py_DECREF(answer);
    return number;
}

CM_HOT long
cm_gc_debug(const struct cm_gc_module *self)
{
    return ask_number(self->get_debug);
}

void
cm_gc_set_debug(const struct cm_gc_module *self, long flags)
{
    PyObject *number = PyLong_FromLong(flags); /* small: never fails */
    if (number == NULL) {
        PyErr_Clear();
        return;
    }
    Py_XDECREF(ask(self->set_debug, number));
    Py_DECREF(number);
}

Py_ssize_t
cm_gc_frozen(const struct cm_gc_module *self)
{
    return (Py_ssize_t)ask_number(self->get_freeze_count);
}

PyObject *
cm_gc_list(const struct cm_gc_module *self, const char *name)
{
    PyObject *list =
        PyDict_GetItemString(PyModule_GetDict(self->module), name);
    if (list == NULL || !PyList_CheckExact(list)) {
        PyErr_Format(PyExc_RuntimeError, "gc.%s is not a list", name);
        return NULL;
    }
    return Py_NewRef(list);
}

void
cm_objects_array_release(struct cm_objects_array *self)
{
    cm_huge_free(self->items, self->capacity, sizeof(*self->items));
    *self = (struct cm_objects_array){0};
}

enum cm_status
cm_objects_array_reserve(struct cm_objects_array *self, size_t more)
{
    return cm_huge_grow((void **)&self->items, &self->capacity,
                        self->count + more, sizeof(*self->items));
}

#ifndef Py_GIL_DISABLED

CM_HOT void
cm_gc_link_first(struct cm_gc_head *node, struct cm_gc_head *head)
{
    struct cm_gc_head *before = cm_gc_prev(node), *after = cm_gc_next(node);
    before->next = (before->next & CM_GC_FLAGS) | (uintptr_t)after;
    after->prev = (after->prev & CM_GC_FLAGS) | (uintptr_t)before;
    struct cm_gc_head *old = cm_gc_next(head);
    node->next = (node->next & CM_GC_FLAGS) | (uintptr_t)old;
    node->prev =
        (node->prev & CM_GC_FLAGS & ~CM_GC_COLLECTING) | (uintptr_t)head;
    old->prev = (old->prev & CM_GC_FLAGS) | (uintptr_t)node;
    head->next = (head->next & CM_GC_FLAGS) | (uintptr_t)node;
}

struct generation {
    struct cm_gc_head head;
    int threshold, count;
};

/* A list of at least its head that closes on both sides. */
static bool
closes(const struct cm_gc_head *head)
{
    const struct cm_gc_head *next = cm_gc_next(head), *prev = cm_gc_prev(head);
    if (next == NULL || prev == NULL)
        return false;
    return cm_gc_prev(next) == head && cm_gc_next(prev) == head;
}

static bool
three_numbers(PyObject *function, long numbers[3])
{
    PyObject *tuple = ask(function, NULL);
    bool fine = tuple != NULL && PyTuple_CheckExact(tuple)
                && PyTuple_GET_SIZE(tuple) == 3;
    for (Py_ssize_t i = 0; fine && i < 3; i++) {
        numbers[i] = PyLong_AsLong(PyTuple_GET_ITEM(tuple, i));
        fine = numbers[i] != -1;
    }
    if (!fine)
        PyErr_Clear();
    Py_XDECREF(tuple);
    return fine;
}

/* The permanent generation follows: in some versions after a pointer to the
 * first one, which has the alignment of a pointer where heads have less. */
static struct cm_gc_head *
permanent_of(struct generation *first)
{
    uintptr_t after = (uintptr_t)(first + 3);
    uintptr_t aligned = (after + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
    struct generation *const *pointer = (void *)aligned;
    if (*pointer == first)
        after = (uintptr_t)(pointer + 1);
    else if (after != aligned)
        return NULL;
    struct cm_gc_head *head = (struct cm_gc_head *)after;
    return closes(head) ? head : NULL;
}

void
cm_gc_heads_find(struct cm_gc_heads *self, const struct cm_gc_module *gc,
                 PyObject *newest)
{
    long thresholds[3], counts[3];
    *self = (struct cm_gc_heads){0};
#ifdef CM_GC_HEADS_UNKNOWN /* in a test: a collector that nobody knows */
    (void)gc;
    (void)newest;
    return;
#endif
    if (!three_numbers(gc->get_threshold, thresholds)
        || !three_numbers(gc->get_count, counts))
        return;
    PyObject_GC_Track(newest);
    struct generation *first =
        (struct generation *)(void *)cm_gc_next(cm_gc_of(newest));
    self->incremental = Py_Version >= 0x030E0000 && Py_Version < 0x030E0500;
    bool proved = true;
    for (int i = 0; i < 3 && proved; i++) {
        /* The first count moved while gc was asked; on incremental
         * collectors gc answers 0 for the last threshold. */
        proved = (first[i].threshold == thresholds[i]
                  || (i == 2 && self->incremental))
                 && (i == 0 || first[i].count == counts[i])
                 && closes(&first[i].head);
        self->young[i] = &first[i].head;
    }
    self->permanent = proved ? permanent_of(first) : NULL;
    self->known = proved;
    PyObject_GC_UnTrack(newest);
}

/* Each time it is set. */
static bool
is_debug(const int *place, const struct cm_gc_module *gc, long flags)
{
    bool is = *place == flags;
    for (long more = 1 << 8; is && more <= 1 << 10; more <<= 1) {
        cm_gc_set_debug(gc, flags | more);
        is = *place == (flags | more);
    }
    cm_gc_set_debug(gc, flags);
    return is && *place == flags;
}

const int *
cm_gc_debug_find(const struct cm_gc_heads *heads,
                 const struct cm_gc_module *gc)
{
    long flags = cm_gc_debug(gc);
    if (!heads->known || flags < 0) {
        return NULL;
    }
    const int *first = (const int *)(void *)heads->young[0];
    return is_debug(first - 1, gc, flags)   ? first - 1
           : is_debug(first - 2, gc, flags) ? first - 2
                                            : NULL;
}

/* A list that is read from both ends at once, since each step waits for the
 * memory of the one before: two wait side by side.  What comes from the back
 * lies at the end of the room until the two meet. */
struct reading {
    const PyObject *twin;
    struct cm_objects_array *result;
    struct cm_type_set *types;
    size_t front, back, heads, twins;
};

static inline bool
is_object(struct reading *self, struct cm_gc_head *node)
{
    if (!cm_gc_collecting(node)) {
        self->heads++;
        return false;
    }
    PyObject *object = cm_gc_object(node);
    if (object == self->twin) {
        self->twins++;
        return false;
    }
    cm_type_set_add(self->types, Py_TYPE(object));
    return true;
}

static inline void
take_front(struct reading *self, struct cm_gc_head *node)
{
    if (is_object(self, node)) {
        self->result->items[self->front++] = cm_gc_object(node);
    }
}

static inline void
take_back(struct reading *self, struct cm_gc_head *node)
{
    if (is_object(self, node)) {
        size_t at = self->result->capacity - ++self->back;
        self->result->items[at] = cm_gc_object(node);
    }
}

static void
move_back(struct reading *self, size_t from, size_t to)
{
    PyObject **items = self->result->items;
    if (self->back != 0) {
        memmove(items + to, items + from, self->back * sizeof(*items));
    }
}

/* For one more of each end. */
static __attribute__((noinline)) enum cm_status
make_room(struct reading *self)
{
    struct cm_objects_array *result = self->result;
    size_t before = result->capacity;
    enum cm_status status =
        cm_objects_array_reserve(result, before + 2 - result->count);
    if (status == CM_OK) {
        move_back(self, before - self->back, result->capacity - self->back);
    }
    return status;
}

/* Ends where the ends meet; else where a link does not hold, since each node
 * that `prev` leads back from is another one. */
static inline enum cm_status
read_from_both(struct reading *self, struct cm_gc_head *start)
{
    struct cm_gc_head *before = start, *after = start;
    struct cm_gc_head *front = cm_gc_next(start), *back = cm_gc_prev(start);
    while (front != NULL && back != NULL && front != start && back != start
           && cm_gc_prev(front) == before && cm_gc_next(back) == after
           && self->heads <= 1) {
        if (self->front + self->back + 2 > self->result->capacity) {
            enum cm_status status = make_room(self);
            if (status != CM_OK) {
                return status;
            }
        }
        take_front(self, front);
        if (front == back) {
            return CM_OK;
        }
        take_back(self, back);
        before = front;
        after = back;
        front = cm_gc_next(front);
        back = cm_gc_prev(back);
        if (front == after) {
            return back == before ? CM_OK : CM_BAD_INPUT;
        }
    }
    return CM_BAD_INPUT;
}

CM_HOT enum cm_status
cm_gc_read_garbage(PyObject *first, const PyObject *twin,
                   struct cm_objects_array *result, struct cm_type_set *types)
{
    struct reading reading = {.twin = twin, .result = result, .types = types};
    *types = (struct cm_type_set){0};
    enum cm_status status = read_from_both(&reading, cm_gc_of(first));
    result->count = reading.front + reading.back;
    if (status != CM_OK) {
        return status;
    }
    move_back(&reading, result->capacity - reading.back, reading.front);
    return reading.heads == 1 && reading.twins == 1 ? CM_OK : CM_BAD_INPUT;
}

#endif
