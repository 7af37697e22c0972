/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The fallback, by public API only: gc.DEBUG_SAVEALL makes the collector
 * append its garbage to gc.garbage instead of clearing it; at stop the tail is
 * taken, shown to the sink, and cleared as the collector would have done.
 *
 * Cleared is only what is still provably dead: an object that something
 * outside refers to by then (rule A, by trial deletion), or that a legacy
 * finalizer reaches (rule B), is released and left alone.  Finalizers have run
 * by stop, so what they dropped is not seen.  Cost: about 0.7 us a collection
 * and 30 to 60 ns for each garbage object. */

#include "gc_hook.h"
#include "interceptor.h"
#include "trial.h"

#include "../../detector/alloc.h"

enum { DEBUG_SAVEALL = 32, CHUNK = 8 };

struct level {
    bool armed;       /* DEBUG_SAVEALL is ours */
    bool watching;    /* DEBUG_SAVEALL is the user's: look, leave it alone */
    Py_ssize_t base;  /* length of gc.garbage at start */
    const void *last; /* identity of its last entry then */
};

struct saveall {
    struct cm_interceptor base;
    PyObject *garbage; /* owned: the collector's own list */
    long user_debug;   /* what the flags were before level 0 */
    struct level levels[CM_LEVELS_MAX];
};

/* Objects taken out of gc.garbage. */
struct taken {
    PyObject **objects; /* owned, each a reference of ours */
    size_t count;
};

static const void *
entry_before(PyObject *list, Py_ssize_t end)
{
    return end > 0 ? PyList_GET_ITEM(list, end - 1) : NULL;
}

static void
opened(struct cm_interceptor *base, int number)
{
    struct saveall *self = (struct saveall *)base;
    struct level *level = &self->levels[number];
    *level = (struct level){.base = PyList_GET_SIZE(self->garbage)};
    level->last = entry_before(self->garbage, level->base);
    if (number > 0) {
        level->armed = self->levels[0].armed;
        level->watching = self->levels[0].watching;
        return;
    }
    self->user_debug = cm_gc_debug(&base->gc);
    if (self->user_debug < 0)
        return;
    level->watching = (self->user_debug & DEBUG_SAVEALL) != 0;
    level->armed = !level->watching;
    base->counts.stood_aside += level->watching;
    if (level->armed)
        cm_gc_set_debug(&base->gc, self->user_debug | DEBUG_SAVEALL);
}

/* A finalizer may have set flags of its own meanwhile: those hold. */
static void
restore_debug(struct saveall *self)
{
    long now = cm_gc_debug(&self->base.gc);
    long then = self->user_debug;
    if (now == (then | DEBUG_SAVEALL))
        cm_gc_set_debug(&self->base.gc, then);
    else if (now >= 0)
        cm_gc_set_debug(&self->base.gc, now & ~(long)DEBUG_SAVEALL);
}

/* How many entries the collector itself can have added: fewer when weak
 * references died with the garbage, never more. */
static Py_ssize_t
added_at_most(PyObject *info)
{
    if (info == NULL)
        return PY_SSIZE_T_MAX;
    int64_t collected = cm_hook_number(info, "collected");
    int64_t left = cm_hook_number(info, "uncollectable");
    if (collected < 0 || left < 0)
        return PY_SSIZE_T_MAX;
    return (Py_ssize_t)(collected + left);
}

/* Where this collection's entries begin: where gc.garbage ended at start, but
 * after what a finalizer has put there itself.  Not certain when a finalizer
 * has shortened the list. */
static Py_ssize_t
tail_start(struct saveall *self, const struct level *level, PyObject *info,
           bool *certain)
{
    Py_ssize_t length = PyList_GET_SIZE(self->garbage);
    Py_ssize_t added = added_at_most(info);
    Py_ssize_t start = added < length ? length - added : 0;
    *certain = length >= level->base
               && entry_before(self->garbage, level->base) == level->last;
    return *certain && start < level->base ? level->base : start;
}

static bool
has_legacy_finalizer(const PyObject *object)
{
    return Py_TYPE(object)->tp_del != NULL;
}

/* Moves entries with legacy finalizers, which stay in gc.garbage, before the
 * others.  Returns where those begin. */
static Py_ssize_t
part_tail(PyObject *list, Py_ssize_t start)
{
    for (Py_ssize_t i = start; i < PyList_GET_SIZE(list); i++) {
        PyObject *object = PyList_GET_ITEM(list, i);
        if (has_legacy_finalizer(object)) {
            PyList_SET_ITEM(list, i, PyList_GET_ITEM(list, start));
            PyList_SET_ITEM(list, start, object);
            start++;
        }
    }
    return start;
}

/* In pieces that PyList_SetSlice cuts without allocating. */
static void
cut_tail(struct saveall *self, Py_ssize_t start)
{
    PyObject *list = self->garbage;
    Py_ssize_t length = PyList_GET_SIZE(list);
    while (length > start) {
        Py_ssize_t from = length - CHUNK > start ? length - CHUNK : start;
        if (PyList_SetSlice(list, from, length, NULL) < 0) {
            PyErr_Clear();
            self->base.counts.no_memory++;
            return;
        }
        length = from;
    }
}

/* Takes this collection's entries out of gc.garbage, before any code of a
 * user's can run.  Without memory they are only released: dead as they are,
 * the next collection of their generation finds them again. */
static struct taken
take_tail(struct saveall *self, Py_ssize_t start)
{
    struct taken taken = {0};
    PyObject *list = self->garbage;
    size_t count = (size_t)(PyList_GET_SIZE(list) - start);
    if (count == 0)
        return taken;
    taken.objects = cm_alloc(count * sizeof(*taken.objects));
    if (taken.objects != NULL) {
        taken.count = count;
        for (size_t i = 0; i < count; i++) {
            taken.objects[i] =
                Py_NewRef(PyList_GET_ITEM(list, start + (Py_ssize_t)i));
        }
    }
    else {
        self->base.counts.no_memory++;
    }
    cut_tail(self, part_tail(list, start));
    return taken;
}

static void
show(struct saveall *self, PyObject *const *objects, size_t count,
     int generation)
{
    if (count == 0)
        return;
    self->base.counts.objects += count;
    struct cm_garbage garbage = {
        .objects = objects, .count = count, .generation = generation};
    self->base.sinks.garbage(self->base.sinks.context, &garbage);
    if (PyErr_Occurred())
        PyErr_Clear();
}

/* Marks what must not be cleared (rules A and B). */
static enum cm_status
mark_kept(struct cm_trial *trial, const struct taken *taken)
{
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < taken->count && status == CM_OK; i++)
        status = cm_trial_add(trial, taken->objects[i], 1);
    if (status != CM_OK)
        return status;
    cm_trial_take_off(trial, taken->objects, taken->count);
    status = cm_trial_mark_held(trial, taken->objects, taken->count);
    for (size_t i = 0; i < taken->count && status == CM_OK; i++) {
        if (has_legacy_finalizer(taken->objects[i]))
            status = cm_trial_mark(trial, taken->objects[i]);
    }
    return status;
}

static void
clear_one(PyObject *object)
{
    inquiry clear = Py_TYPE(object)->tp_clear;
    if (Py_REFCNT(object) == 1 || clear == NULL)
        return; /* its release is its end */
    (void)clear(object);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable((PyObject *)Py_TYPE(object));
}

/* Takes the references in `taken`.  Runs user code. */
static void
clear_dead(struct saveall *self, struct taken *taken, bool certain)
{
    struct cm_trial trial = {0};
    enum cm_status status = CM_LIMIT;
    if (certain)
        status = mark_kept(&trial, taken);
    self->base.counts.no_memory += status == CM_NO_MEMORY;
    for (size_t i = 0; i < taken->count; i++) {
        if (status == CM_OK && !cm_trial_marked(&trial, taken->objects[i]))
            clear_one(taken->objects[i]);
        Py_DECREF(taken->objects[i]);
    }
    cm_trial_release(&trial);
    cm_free(taken->objects);
}

static void
closed(struct cm_interceptor *base, int number, PyObject *info,
       struct cm_collection *collection)
{
    struct saveall *self = (struct saveall *)base;
    struct level level = self->levels[number];
    int generation = base->levels[number].generation;
    self->levels[number] = (struct level){0};
    if (!level.armed && !level.watching)
        return;
    if (number == 0 && level.armed)
        restore_debug(self);
    bool certain;
    Py_ssize_t start = tail_start(self, &level, info, &certain);
    base->counts.walks += certain;
    base->counts.bad_walks += !certain;
    collection->seen = certain;
    if (level.watching) {
        PyObject **items = ((PyListObject *)self->garbage)->ob_item + start;
        Py_ssize_t count = PyList_GET_SIZE(self->garbage) - start;
        show(self, items, certain ? (size_t)count : 0, generation);
        return;
    }
    struct taken taken = take_tail(self, start);
    if (certain)
        show(self, taken.objects, taken.count, generation);
    clear_dead(self, &taken, certain);
}

static bool
under_way(const struct cm_interceptor *base, int number)
{
    (void)base;
    (void)number;
    return false; /* not known; a tail cut early is only released late */
}

static void
destroy(struct cm_interceptor *base)
{
    struct saveall *self = (struct saveall *)base;
    Py_CLEAR(self->garbage);
    cm_hook_release(base);
    cm_free(self);
}

static const struct cm_hook_kind saveall_kind = {opened, closed, under_way,
                                                 destroy};

static const char *
unsupported(void)
{
#ifdef Py_GIL_DISABLED
    return "free-threaded CPython keeps reference counts that rule A cannot "
           "read";
#else
    return NULL;
#endif
}

static struct cm_interceptor *
install(PyObject *module, const struct cm_sinks *sinks)
{
    if (unsupported() != NULL) {
        PyErr_SetString(PyExc_RuntimeError, unsupported());
        return NULL;
    }
    struct saveall *self = cm_calloc(1, sizeof(*self));
    if (self == NULL)
        return (void *)PyErr_NoMemory();
    self->base.kind = &saveall_kind;
    if (cm_hook_init(&self->base, sinks) < 0)
        goto failed;
    self->garbage = cm_gc_list(&self->base.gc, "garbage");
    if (self->garbage == NULL
        || cm_hook_attach(&self->base, module, false) < 0)
        goto failed;
    return &self->base;
failed:
    destroy(&self->base);
    return NULL;
}

static void
remove_saveall(struct cm_interceptor *self)
{
    if (self != NULL)
        cm_hook_remove(self);
}

const struct cm_interceptor_kind cm_saveall = {
    .name = "saveall",
    .install = install,
    .remove = remove_saveall,
    .counts = cm_hook_counts,
    .unsupported = unsupported,
};
