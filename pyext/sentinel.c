/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Reads the collector's own unreachable list.  Two objects that refer only to
 * themselves, S and its twin, are tracked from a collection's start to its
 * stop, so they are garbage in it; a weak reference to S has a callback, and
 * the collector calls that after it has found the unreachable set and before
 * any finalizer or tp_clear.  From S the whole list is walked, and the twin
 * proves that the walk was whole.  A new reference to both, taken there, makes
 * them count as resurrected, so nothing is added to what was collected.
 *
 * Cost: under 1 us a collection, 3 to 12 ns for each garbage object.  S and
 * twin are made once for each level of nesting and rest untracked; the weak
 * reference is made at start and released at the next one, so that gc's
 * allocation count ends where it would without us. */

#include "sentinel.h"

#include "gc_hook.h"
#include "interceptor.h"

#ifdef Py_GIL_DISABLED

static const char *
unsupported(void)
{
    return "free-threaded CPython has no collector lists to read";
}

static struct cm_interceptor *
install(PyObject *module, const struct cm_sinks *sinks)
{
    (void)module;
    (void)sinks;
    PyErr_SetString(PyExc_RuntimeError, unsupported());
    return NULL;
}

static void
remove_sentinel(struct cm_interceptor *self)
{
    (void)self;
}

bool
cm_sentinel_owns(const PyObject *object)
{
    (void)object;
    return false;
}

#else

#include <stddef.h>

#if PY_VERSION_HEX < 0x030C0000
#include <structmember.h> // T_PYSSIZET, READONLY
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif

#include "../detector/alloc.h"
#include "../detector/hot.h"
#include "../detector/meter.h"

enum { DEBUG_COLLECTABLE = 2, KEPT_OBJECTS = 1 << 16 };

/* S or its twin.  Its only reference is its own: it stands for a pointer to
 * itself that tp_traverse shows and tp_clear never drops, so no collection
 * can free it. */
struct lure {
    PyObject_HEAD
    PyObject *weak_references;
};

struct level {
    struct sentinel *sentinel; /* borrowed */
    PyObject *first, *twin;    /* owned by themselves; NULL: not made yet */
    PyObject *waker;           /* owned: the weak reference's callback */
    PyObject *weak;            /* owned; of this or the last collection */
    bool armed, fired, read;
};

struct sentinel {
    struct cm_interceptor base;
    PyTypeObject *lure_type, *waker_type; /* owned */
    struct cm_gc_heads heads;
    const int *debug; /* borrowed of the interpreter; NULL: gc is asked */
    struct level levels[CM_LEVELS_MAX];
    struct cm_objects_array garbage; /* reused by each walk */
};

struct waker {
    PyObject_HEAD
    vectorcallfunc call;
    struct level *level; /* borrowed; NULL when the sentinel is gone */
};

CM_HOT static int
lure_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self);
    return 0;
}

static int
lure_clear(PyObject *self)
{
    (void)self;
    return 0;
}

static void
lure_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((struct lure *)self)->weak_references != NULL)
        PyObject_ClearWeakRefs(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMemberDef lure_members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET,
     offsetof(struct lure, weak_references), Py_READONLY, NULL},
    {0},
};

static PyType_Slot lure_slots[] = {
    {Py_tp_traverse, lure_traverse},
    {Py_tp_clear, lure_clear},
    {Py_tp_dealloc, lure_dealloc},
    {Py_tp_members, lure_members},
    {0, NULL},
};

static PyType_Spec lure_spec = {
    .name = "cumem._core.gc_sentinel",
    .basicsize = sizeof(struct lure),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = lure_slots,
};

bool
cm_sentinel_owns(const PyObject *object)
{
    return Py_TYPE(object)->tp_traverse == lure_traverse;
}

/* Reads and delivers the garbage that `level` was caught with. */
CM_HOT static void
deliver(struct sentinel *self, struct level *level)
{
    struct cm_interceptor_counts *counts = &self->base.counts;
    enum cm_status status =
        cm_gc_read_garbage(level->first, level->twin, &self->garbage);
    counts->walks += status == CM_OK;
    counts->bad_walks += status == CM_BAD_INPUT;
    counts->no_memory += status == CM_NO_MEMORY;
    level->read = status == CM_OK;
    if (status == CM_OK && self->garbage.count > 0) {
        counts->objects += self->garbage.count;
        struct cm_garbage garbage = {
            .objects = self->garbage.items,
            .count = self->garbage.count,
            .generation = self->base.levels[level - self->levels].generation,
        };
        self->base.sinks.garbage(self->base.sinks.context, &garbage);
        if (PyErr_Occurred())
            PyErr_Clear();
    }
    if (self->garbage.capacity > KEPT_OBJECTS) {
        cm_free(self->garbage.items);
        self->garbage = (struct cm_objects_array){0};
    }
}

/* The collector calls this with the weak reference, when S is garbage.  By
 * hand, from anywhere else, it does nothing. */
CM_HOT static PyObject *
waker_call(PyObject *waker, PyObject *const *args, size_t flags,
           PyObject *names)
{
    CM_METERED(CM_METER_GARBAGE);
    struct level *level = ((struct waker *)waker)->level;
    (void)names;
    if (level == NULL || !level->armed || level->fired
        || PyVectorcall_NARGS(flags) != 1 || args[0] != level->weak
        || !cm_gc_collecting(cm_gc_of(level->first)))
        Py_RETURN_NONE;
    level->fired = true;
    Py_INCREF(level->first);
    Py_INCREF(level->twin);
    deliver(level->sentinel, level);
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

/* [new or NULL; raises] */
static PyObject *
lure_new(PyTypeObject *type)
{
    struct lure *made = PyObject_GC_New(struct lure, type);
    if (made != NULL)
        made->weak_references = NULL;
    return (PyObject *)made;
}

/* [0 or -1; raises] */
CM_HOT static int
level_make(struct sentinel *self, struct level *level)
{
    level->sentinel = self;
    if (level->waker == NULL) {
        struct waker *waker = PyObject_New(struct waker, self->waker_type);
        if (waker == NULL)
            return -1;
        waker->call = waker_call;
        waker->level = level;
        level->waker = (PyObject *)waker;
    }
    if (level->first == NULL)
        level->first = lure_new(self->lure_type);
    if (level->twin == NULL)
        level->twin = lure_new(self->lure_type);
    return level->first && level->twin ? 0 : -1;
}

/* First in the collected generation: then our callback is the first too. */
CM_HOT static void
link_pair_first(struct sentinel *self, struct level *level, int generation)
{
    if (!self->heads.known)
        return;
    struct cm_gc_head *head =
        self->heads.young[self->heads.incremental ? 0 : generation];
    cm_gc_link_first(cm_gc_of(level->twin), head);
    cm_gc_link_first(cm_gc_of(level->first), head);
}

/* gc would print S and its twin. */
CM_HOT static bool
prints_collectable(const struct sentinel *self)
{
    long flags =
        self->debug != NULL ? *self->debug : cm_gc_debug(&self->base.gc);
    return (flags & DEBUG_COLLECTABLE) != 0;
}

CM_HOT static void
opened(struct cm_interceptor *base, int number)
{
    struct sentinel *self = (struct sentinel *)base;
    struct level *level = &self->levels[number];
    level->armed = level->fired = level->read = false;
    /* Released here, where gc's allocation count is about to be zeroed. */
    Py_CLEAR(level->weak);
    if (prints_collectable(self)) {
        base->counts.stood_aside++;
        return;
    }
    if (level_make(self, level) == 0)
        level->weak = PyWeakref_NewRef(level->first, level->waker);
    if (level->weak == NULL) {
        PyErr_Clear();
        base->counts.no_memory++;
        return;
    }
    PyObject_GC_Track(level->first);
    PyObject_GC_Track(level->twin);
    link_pair_first(self, level, base->levels[number].generation);
    level->armed = true;
}

/* Back to rest: untracked, each with its own reference only. */
CM_HOT static void
rest(struct level *level)
{
    if (!level->armed)
        return;
    level->armed = false;
    PyObject_GC_UnTrack(level->first);
    PyObject_GC_UnTrack(level->twin);
    PyObject_GC_UnTrack(level->weak);
    if (level->fired) {
        Py_DECREF(level->first);
        Py_DECREF(level->twin);
    }
}

CM_HOT static void
closed(struct cm_interceptor *base, int number, PyObject *info,
       struct cm_collection *collection)
{
    struct level *level = &((struct sentinel *)base)->levels[number];
    (void)info;
    base->counts.unfired += level->armed && !level->fired;
    rest(level);
    collection->seen = level->read;
}

CM_HOT static bool
under_way(const struct cm_interceptor *base, int number)
{
    const struct level *level =
        &((const struct sentinel *)base)->levels[number];
    return level->armed && cm_gc_collecting(cm_gc_of(level->first));
}

static void
level_release(struct level *level)
{
    if (level->waker != NULL)
        ((struct waker *)level->waker)->level = NULL;
    Py_CLEAR(level->weak);
    Py_CLEAR(level->waker);
    Py_CLEAR(level->twin);
    Py_CLEAR(level->first);
}

static void
destroy(struct cm_interceptor *base)
{
    struct sentinel *self = (struct sentinel *)base;
    for (int i = 0; i < CM_LEVELS_MAX; i++)
        level_release(&self->levels[i]);
    Py_CLEAR(self->waker_type);
    Py_CLEAR(self->lure_type);
    cm_free(self->garbage.items);
    cm_hook_release(base);
    cm_free(self);
}

static const struct cm_hook_kind sentinel_kind = {opened, closed, under_way,
                                                  destroy};

static const char *
unsupported(void)
{
    return NULL;
}

static struct cm_interceptor *
install(PyObject *module, const struct cm_sinks *sinks)
{
    struct sentinel *self = cm_calloc(1, sizeof(*self));
    if (self == NULL)
        return (void *)PyErr_NoMemory();
    self->base.kind = &sentinel_kind;
    if (cm_hook_init(&self->base, sinks) < 0)
        goto failed;
    self->lure_type = cm_hook_type(module, &lure_spec);
    self->waker_type = cm_hook_type(module, &waker_spec);
    if (self->lure_type == NULL || self->waker_type == NULL
        || level_make(self, &self->levels[0]) < 0)
        goto failed;
    cm_gc_heads_find(&self->heads, &self->base.gc, self->levels[0].first);
    self->debug = cm_gc_debug_find(&self->heads, &self->base.gc);
    self->base.counts.first = self->heads.known;
    self->base.counts.flags = self->debug != NULL;
    if (cm_hook_attach(&self->base, module) < 0)
        goto failed;
    return &self->base;
failed:
    destroy(&self->base);
    return NULL;
}

static void
remove_sentinel(struct cm_interceptor *self)
{
    if (self != NULL)
        cm_hook_remove(self);
}

#endif

const struct cm_interceptor_kind cm_sentinel = {
    .name = "sentinel",
    .install = install,
    .remove = remove_sentinel,
    .counts = cm_hook_counts,
    .unsupported = unsupported,
};
