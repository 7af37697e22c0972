/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "lure.h"

#ifndef Py_GIL_DISABLED

#include <stddef.h>

#include "../../detector/hot.h"
#include "../../detector/meter.h"
#include "../../detector/ticks.h"

/* The first or its twin.  Its only reference is its own: it stands for a
 * pointer to itself that tp_traverse shows and tp_clear never drops, so no
 * collection can free it. */
struct one {
    PyObject_HEAD
    PyWeakReference *weak_references; /* the first of them; NULL: none */
    uint64_t traversed;               /* in ticks, the last time */
    bool keeps_time;                  /* else it stays 0 */
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
        one->traversed = cm_ticks_now();
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
 * By hand, from anywhere else, it does nothing; nor where the pair was put
 * elsewhere since the collector has found it, which its bit tells. */
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
        made->traversed = 0;
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

/* As CPython makes one, which is seen here to be as its headers have it.
 * [0 or -1; raises] */
static int
make_weak(struct cm_lure *self)
{
    PyObject *made = PyWeakref_NewRef(self->first, self->waker);
    const PyWeakReference *weak = (PyWeakReference *)made;
    if (made == NULL)
        return -1;
    if (weak->wr_object != self->first || weak->wr_callback != self->waker
        || ((struct one *)self->first)->weak_references != weak) {
        Py_DECREF(made);
        PyErr_SetString(PyExc_RuntimeError,
                        "this CPython's weak references are not as its "
                        "headers have them");
        return -1;
    }
    self->weak = made;
    return 0;
}

/* Points the weak reference to the first again: what PyWeakref_NewRef() does
 * with a new one.  What another has there stays the first of them: CPython looks
 * for one without a callback there. */
CM_HOT static void
point_again(struct cm_lure *self)
{
    struct one *one = (struct one *)self->first;
    PyWeakReference *weak = (PyWeakReference *)self->weak;
    PyWeakReference *before = one->weak_references;
    if (weak->wr_object == self->first)
        return;
    weak->wr_object = self->first;
    weak->wr_prev = before;
    weak->wr_next = before != NULL ? before->wr_next : NULL;
    if (before == NULL)
        one->weak_references = weak;
    else
        before->wr_next = weak;
    if (weak->wr_next != NULL)
        weak->wr_next->wr_prev = weak;
}

/* The way back, as the collector does it: the callback stays, since a collection
 * under way may still call it. */
static void
point_away(struct cm_lure *self)
{
    PyWeakReference *weak = (PyWeakReference *)self->weak;
    if (weak == NULL || weak->wr_object != self->first)
        return;
    if (weak->wr_prev != NULL)
        weak->wr_prev->wr_next = weak->wr_next;
    else
        ((struct one *)self->first)->weak_references = weak->wr_next;
    if (weak->wr_next != NULL)
        weak->wr_next->wr_prev = weak->wr_prev;
    weak->wr_object = Py_None; /* which it does not own */
    weak->wr_prev = weak->wr_next = NULL;
}

CM_HOT int
cm_lure_wake(struct cm_lure *self)
{
    self->awake = false;
    if (self->weak == NULL && make_weak(self) < 0)
        return -1;
    point_again(self);
    if (!cm_gc_tracked(cm_gc_of(self->weak)))
        PyObject_GC_Track(self->weak);
    self->awake = true;
    return 0;
}

CM_HOT void
cm_lure_track(struct cm_lure *self, struct cm_gc_head *head)
{
    struct cm_gc_head *first = cm_gc_of(self->first);
    struct cm_gc_head *twin = cm_gc_of(self->twin);
    if (head == NULL || !cm_gc_tracked(first) || !cm_gc_tracked(twin)) {
        cm_lure_untrack(self);
        PyObject_GC_Track(self->first);
        PyObject_GC_Track(self->twin);
    }
    if (head != NULL) {
        cm_gc_link_first(twin, head);
        cm_gc_link_first(first, head);
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
    point_away(self);
    Py_CLEAR(self->weak);
    Py_CLEAR(self->waker);
    Py_CLEAR(self->twin);
    Py_CLEAR(self->first);
}

uint64_t
cm_lure_traversed(const struct cm_lure *self)
{
    return ((const struct one *)self->first)->traversed;
}

#else

bool
cm_lure_owns(const PyObject *object)
{
    (void)object;
    return false;
}

#endif
