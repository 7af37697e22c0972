/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* gc calls each entry of gc.callbacks with ("start" or "stop", info).  A stop
 * can be lost (the list was changed meanwhile, no memory for the dict), and on
 * 3.12 collections nest.  So the collections under way are a stack: elsewhere
 * a start on a non-empty stack proves that stops were lost; on 3.12 it does so
 * when it comes from no deeper in the C stack of the same thread, or when the
 * stack is full.  (With switched stacks that may err: then a collection is
 * not seen, and nothing else is lost.)  Cost: two calls of 0.1 us. */

#include "gc_hook.h"

#include <stddef.h>
#include <string.h>

#include "../../detector/alloc.h"
#include "../../detector/clock.h"
#include "../../detector/meter.h"
#include "../../detector/hot.h"

struct callable {
    PyObject_HEAD
    vectorcallfunc call;
    struct cm_interceptor *interceptor; /* NULL: the interceptor is gone */
};

/* `length` is that of `word`, known where it is written down. */
static inline bool
says(PyObject *text, const char *word, size_t length)
{
    return PyUnicode_CheckExact(text) && PyUnicode_IS_ASCII(text)
           && (size_t)PyUnicode_GET_LENGTH(text) == length
           && memcmp(PyUnicode_1BYTE_DATA(text), word, length) == 0;
}

#define SAYS(text, word) says(text, word, sizeof(word) - 1)

/* gc makes its three keys anew each time: a look-up would hash and compare. */
CM_HOT int64_t
cm_hook_number(PyObject *info, const char *name)
{
    PyObject *key, *number;
    size_t length = strlen(name);
    for (Py_ssize_t at = 0; PyDict_Next(info, &at, &key, &number);) {
        if (says(key, name, length)) {
            int overflow;
            return PyLong_CheckExact(number)
                       ? PyLong_AsLongLongAndOverflow(number, &overflow)
                       : -1;
        }
    }
    return -1;
}

/* What a sink left behind must not reach the collector. */
static void
drop_error(PyObject *origin)
{
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(origin);
}

CM_HOT static void
close_top(struct cm_interceptor *self, PyObject *info)
{
    int level = self->depth - 1;
    struct cm_collection collection = {
        .generation = self->levels[level].generation,
        .duration_ns =
            cm_clock_ns(CLOCK_MONOTONIC) - self->levels[level].start_ns,
        .collected = info ? cm_hook_number(info, "collected") : -1,
    };
    if (info == NULL)
        self->counts.lost_stops++;
    self->depth = level; /* first: closing may run user code */
    self->kind->closed(self, level, info, &collection);
    if (self->sinks.stop != NULL) {
        self->sinks.stop(self->sinks.context, &collection);
        drop_error(NULL);
    }
}

static Py_ssize_t
index_of(const struct cm_interceptor *self)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(self->callbacks); i++) {
        if (PyList_GET_ITEM(self->callbacks, i) == self->callable)
            return i;
    }
    return -1;
}

CM_HOT bool
cm_hook_is_last(const struct cm_interceptor *self)
{
    Py_ssize_t count = PyList_GET_SIZE(self->callbacks);
    return self->callable != NULL && count != 0
           && PyList_GET_ITEM(self->callbacks, count - 1) == self->callable;
}

CM_HOT void
cm_hook_detach(struct cm_interceptor *self)
{
    if (self->callable == NULL)
        return;
    Py_ssize_t i = index_of(self);
    ((struct callable *)self->callable)->interceptor = NULL;
    self->callable = NULL;
    if (i >= 0 && PyList_SetSlice(self->callbacks, i, i + 1, NULL) < 0)
        PyErr_Clear();
}

CM_HOT static bool
top_is_lost(const struct cm_interceptor *self)
{
    if (!CM_GC_NESTS)
        return true;
    const struct cm_hook_level *top = &self->levels[self->depth - 1];
    bool returned = top->thread == PyThread_get_thread_ident()
                    && top->stack <= (uintptr_t)__builtin_frame_address(0);
    return (returned || self->depth == CM_LEVELS_MAX)
           && !self->kind->under_way(self, self->depth - 1);
}

CM_HOT int
cm_hook_open(struct cm_interceptor *self, int generation, uint64_t start_ns)
{
    if (self->depth == CM_LEVELS_MAX) {
        self->counts.too_deep++;
        self->skipped++;
        return -1;
    }
    int level = self->depth++;
    self->levels[level] = (struct cm_hook_level){
        .generation = generation,
        .start_ns = start_ns,
        .thread = CM_GC_NESTS ? PyThread_get_thread_ident() : 0,
        .stack = (uintptr_t)__builtin_frame_address(0),
    };
    self->counts.nested += level > 0;
    return level;
}

/* At rest the kind counts for itself, and nobody asks for starts. */
CM_HOT static void
tell_start(struct cm_interceptor *self)
{
    if (self->resting)
        return;
    self->counts.collections++;
    if (self->sinks.start != NULL) {
        self->sinks.start(self->sinks.context);
        drop_error(NULL);
    }
}

CM_HOT static void
on_start(struct cm_interceptor *self, PyObject *info)
{
    CM_METERED(CM_METER_COLLECTION_START);
    uint64_t start_ns = cm_clock_ns(CLOCK_MONOTONIC);
    int64_t generation = cm_hook_number(info, "generation");
    if (generation < 0 || generation > 2)
        return; /* not the collector's call */
    while (self->depth > 0 && !self->removed && top_is_lost(self)) {
        close_top(self, NULL);
        self->skipped = 0;
    }
    if (self->removed || (self->resting && self->depth == 0))
        return;
    tell_start(self);
    if (self->removed)
        return;
    int level = cm_hook_open(self, (int)generation, start_ns);
    if (level >= 0)
        self->kind->opened(self, level);
}

CM_HOT static void
on_stop(struct cm_interceptor *self, PyObject *info)
{
    CM_METERED(CM_METER_COLLECTION_STOP);
    if (self->skipped > 0)
        self->skipped--;
    else if (self->depth > 0)
        close_top(self, info);
    /* The last may go while the list is walked: nobody is passed over. */
    if (self->resting && self->depth == 0 && cm_hook_is_last(self))
        cm_hook_detach(self);
}

CM_HOT void
cm_hook_leave(struct cm_interceptor *self)
{
    if (--self->calls == 0 && self->removed)
        self->kind->destroy(self);
}

CM_HOT static PyObject *
callable_call(PyObject *callable, PyObject *const *args, size_t flags,
              PyObject *names)
{
    struct cm_interceptor *self = ((struct callable *)callable)->interceptor;
    if (CM_PASSES(CM_METER_COLLECTION_START) || self == NULL || names != NULL
        || PyVectorcall_NARGS(flags) != 2 || !PyDict_CheckExact(args[1]))
        Py_RETURN_NONE;
    self->calls++;
    if (SAYS(args[0], "start"))
        on_start(self, args[1]);
    else if (SAYS(args[0], "stop"))
        on_stop(self, args[1]);
    cm_hook_leave(self);
    Py_RETURN_NONE;
}

/* A user has cleared gc.callbacks: no stop will come. */
static void
callable_dealloc(PyObject *callable)
{
    struct cm_interceptor *self = ((struct callable *)callable)->interceptor;
    PyTypeObject *type = Py_TYPE(callable);
    if (self != NULL) {
        self->callable = NULL;
        self->calls++;
        while (self->depth > 0 && !self->removed)
            close_top(self, NULL);
        cm_hook_leave(self);
    }
    PyObject_Free(callable);
    Py_DECREF(type);
}

static PyMemberDef callable_members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(struct callable, call),
     Py_READONLY, NULL},
    {0},
};

static PyType_Slot callable_slots[] = {
    {Py_tp_dealloc, callable_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, callable_members},
    {0, NULL},
};

static PyType_Spec callable_spec = {
    .name = "cumem._core.gc_callback",
    .basicsize = sizeof(struct callable),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL
             | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = callable_slots,
};

/* The spec's own deallocator tells our type from what a user may have put in
 * its place. */
static bool
made_from(PyObject *object, const PyType_Spec *spec)
{
    if (!PyType_Check(object))
        return false;
    for (const PyType_Slot *slot = spec->slots; slot->slot != 0; slot++) {
        if (slot->slot == Py_tp_dealloc) {
            return PyType_GetSlot((PyTypeObject *)object, Py_tp_dealloc)
                   == slot->pfunc;
        }
    }
    return false;
}

PyTypeObject *
cm_hook_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *names = PyModule_GetDict(module);
    const char *name = strrchr(spec->name, '.') + 1;
    PyObject *kept = PyDict_GetItemString(names, name);
    if (kept != NULL && made_from(kept, spec))
        return (PyTypeObject *)Py_NewRef(kept);
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyDict_SetItemString(names, name, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

int
cm_hook_init(struct cm_interceptor *self, const struct cm_sinks *sinks)
{
    self->sinks = *sinks;
    if (cm_gc_module_init(&self->gc) < 0)
        return -1;
    self->callbacks = cm_gc_list(&self->gc, "callbacks");
    return self->callbacks != NULL ? 0 : -1;
}

int
cm_hook_attach(struct cm_interceptor *self, PyObject *module, bool last)
{
    PyTypeObject *type = cm_hook_type(module, &callable_spec);
    if (type == NULL)
        return -1;
    struct callable *made = PyObject_New(struct callable, type);
    Py_DECREF(type);
    if (made == NULL)
        return -1;
    made->call = callable_call;
    made->interceptor = self;
    self->callable = (PyObject *)made;
    int status = PyList_Insert(self->callbacks,
                               last ? PyList_GET_SIZE(self->callbacks) : 0,
                               self->callable);
    if (status < 0) {
        made->interceptor = NULL;
        self->callable = NULL;
    }
    Py_DECREF(made);
    return status;
}

void
cm_hook_remove(struct cm_interceptor *self)
{
    self->calls++;
    while (self->depth > 0) {
        int level = --self->depth;
        struct cm_collection ignored = {0};
        self->kind->closed(self, level, NULL, &ignored);
    }
    self->removed = true;
    cm_hook_detach(self);
    cm_hook_leave(self);
}

void
cm_hook_release(struct cm_interceptor *self)
{
    Py_CLEAR(self->callbacks);
    cm_gc_module_release(&self->gc);
}

void
cm_hook_counts(const struct cm_interceptor *self,
               struct cm_interceptor_counts *result)
{
    *result = self->counts;
    result->resting = self->resting;
    result->attached =
        self->resting || (self->callable != NULL && index_of(self) >= 0);
}
