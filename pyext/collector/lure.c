/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "lure.h"

#ifndef Py_GIL_DISABLED

#include <stddef.h>
#include <string.h>

#include "../../detector/clock.h"
#include "../../detector/hot.h"
#include "../../detector/meter.h"

/* The first or its twin.  Its only reference is its own: it stands for a
 * pointer to itself that tp_traverse shows and tp_clear never drops, so no
 * collection can free it. */
struct one {
    PyObject_HEAD
    PyObject *weak_references;
    uint64_t traversed_ns; /* the last time */
    bool keeps_time;       /* else it stays 0 */
};

struct waker {
    PyObject_HEAD
    vectorcallfunc call;
    struct cm_lure *lure; /* borrowed; NULL when it is gone */
};

/* A collection traverses what it collects once before it calls our waker.  The
 * type is not shown: our module holds it, and it would cost another cache line;
 * so it seems to be held from elsewhere. */
CM_HOT static int
one_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct one *one = (struct one *)self;
    if (one->keeps_time)
        one->traversed_ns = cm_clock_ns(CLOCK_MONOTONIC);
    Py_VISIT(self);
    return 0;
}

static int
one_clear(PyObject *self)
{
    (void)self;
    return 0;
}

static void
one_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((struct one *)self)->weak_references != NULL)
        PyObject_ClearWeakRefs(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMemberDef one_members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET,
     offsetof(struct one, weak_references), Py_READONLY, NULL},
    {0},
};

static PyType_Slot one_slots[] = {
    {Py_tp_traverse, one_traverse},
    {Py_tp_clear, one_clear},
    {Py_tp_dealloc, one_dealloc},
    {Py_tp_members, one_members},
    {0, NULL},
};

static PyType_Spec one_spec = {
    .name = "cumem._core.gc_sentinel",
    .basicsize = sizeof(struct one),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = one_slots,
};

bool
cm_lure_owns(const PyObject *object)
{
    return Py_TYPE(object)->tp_traverse == one_traverse;
}

/* The collector calls this with the weak reference, when the pair is garbage.
 * By hand, from anywhere else, it does nothing. */
CM_HOT static PyObject *
waker_call(PyObject *waker, PyObject *const *args, size_t flags,
           PyObject *names)
{
    CM_METERED(CM_METER_GARBAGE);
    struct cm_lure *lure = ((struct waker *)waker)->lure;
    (void)names;
    if (lure == NULL || !lure->awake || PyVectorcall_NARGS(flags) != 1
        || args[0] != lure->weak || !cm_gc_collecting(cm_gc_of(lure->first)))
        Py_RETURN_NONE;
    lure->awake = false;
    lure->caught(lure);
    Py_RETURN_NONE;
}

static void
waker_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMemberDef waker_members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(struct waker, call),
     Py_READONLY, NULL},
    {0},
};

static PyType_Slot waker_slots[] = {
    {Py_tp_dealloc, waker_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, waker_members},
    {0, NULL},
};

static PyType_Spec waker_spec = {
    .name = "cumem._core.gc_waker",
    .basicsize = sizeof(struct waker),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL
             | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = waker_slots,
};

int
cm_lure_types_make(struct cm_lure_types *self, PyObject *module)
{
    self->pair = cm_hook_type(module, &one_spec);
    self->waker = cm_hook_type(module, &waker_spec);
    return self->pair != NULL && self->waker != NULL ? 0 : -1;
}

void
cm_lure_types_release(struct cm_lure_types *self)
{
    Py_CLEAR(self->waker);
    Py_CLEAR(self->pair);
}

/* [new or NULL; raises] */
static PyObject *
one_new(PyTypeObject *type, bool keeps_time)
{
    struct one *made = PyObject_GC_New(struct one, type);
    if (made != NULL) {
        made->weak_references = NULL;
        made->traversed_ns = 0;
        made->keeps_time = keeps_time;
    }
    return (PyObject *)made;
}

CM_HOT int
cm_lure_make(struct cm_lure *self, const struct cm_lure_types *types)
{
    if (self->waker == NULL) {
        struct waker *waker = PyObject_New(struct waker, types->waker);
        if (waker == NULL)
            return -1;
        waker->call = waker_call;
        waker->lure = self;
        self->waker = (PyObject *)waker;
    }
    if (self->first == NULL)
        self->first = one_new(types->pair, self->keeps_time);
    if (self->twin == NULL)
        self->twin = one_new(types->pair, false);
    return self->first && self->twin ? 0 : -1;
}

CM_HOT int
cm_lure_wake(struct cm_lure *self)
{
    self->awake = false;
    Py_CLEAR(self->weak);
    self->weak = PyWeakref_NewRef(self->first, self->waker);
    self->awake = self->weak != NULL;
    return self->awake ? 0 : -1;
}

CM_HOT int
cm_lure_wake_again(struct cm_lure *self)
{
    PyObject *weak = PyWeakref_NewRef(self->first, self->waker);
    if (weak == NULL)
        return -1;
    PyObject *oldest = self->spent[CM_SPENT - 1];
    memmove(&self->spent[1], &self->spent[0],
            (CM_SPENT - 1) * sizeof(self->spent[0]));
    self->spent[0] = self->weak;
    self->weak = weak;
    self->awake = true;
    Py_XDECREF(oldest);
    return 0;
}

CM_HOT void
cm_lure_track(struct cm_lure *self, struct cm_gc_head *head)
{
    cm_lure_untrack(self);
    PyObject_GC_Track(self->first);
    PyObject_GC_Track(self->twin);
    if (head != NULL) {
        cm_gc_link_first(cm_gc_of(self->twin), head);
        cm_gc_link_first(cm_gc_of(self->first), head);
    }
}

CM_HOT void
cm_lure_untrack(struct cm_lure *self)
{
    if (self->first != NULL && self->twin != NULL) {
        PyObject_GC_UnTrack(self->first);
        PyObject_GC_UnTrack(self->twin);
    }
}

void
cm_lure_release(struct cm_lure *self)
{
    if (self->waker != NULL)
        ((struct waker *)self->waker)->lure = NULL;
    cm_lure_untrack(self); /* somebody may hold all objects */
    for (size_t i = 0; i < CM_SPENT; i++)
        Py_CLEAR(self->spent[i]);
    Py_CLEAR(self->weak);
    Py_CLEAR(self->waker);
    Py_CLEAR(self->twin);
    Py_CLEAR(self->first);
}

uint64_t
cm_lure_traversed_ns(const struct cm_lure *self)
{
    return ((const struct one *)self->first)->traversed_ns;
}

#else

bool
cm_lure_owns(const PyObject *object)
{
    (void)object;
    return false;
}

#endif
