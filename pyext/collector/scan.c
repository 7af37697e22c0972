/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What a collection would free now, without collecting: all tracked objects
 * are listed, trial deletion (trial.h) finds those that nothing outside
 * reaches, and what is left is delivered.  Nothing on the heap is written.
 * Objects behind gc.freeze(), and what only they keep, are delivered apart.
 *
 * The lists are read by their heads where these prove themselves, else through
 * PyUnstable_GC_VisitObjects (3.12 and later), which cannot tell frozen
 * objects.  Cost: about one full collection; 8 bytes an object and a third of
 * a byte for each byte of heap, both native and released at the end. */

#include "gc_list.h"
#include "interceptor.h"
#include "lure.h"
#include "trial.h"

#include "../../detector/alloc.h"

/* Guarded by the GIL. */
static cm_scan_look *look_further __attribute__((unused));

void
cm_scan_look_further(cm_scan_look *look)
{
    look_further = look;
}

#ifdef Py_GIL_DISABLED

int
cm_scan_counted(cm_garbage_sink *sink, void *context,
                struct cm_scan_counts *counts)
{
    (void)sink;
    (void)context;
    (void)counts;
    return -1;
}

enum cm_status
cm_scan_tracked(cm_scan_pick *pick, void *context,
                struct cm_objects_array *result)
{
    (void)pick;
    (void)context;
    (void)result;
    return CM_UNSUPPORTED;
}

const char *
cm_scan_unsupported(void)
{
    return "free-threaded CPython keeps reference counts in three places; "
           "only a collection can read them";
}

const char *
cm_scan_frozen(size_t *frozen)
{
    *frozen = 0;
    return "counted";
}

#else

struct heap {
    struct cm_objects_array objects;
    size_t seen;        /* also of those that are not wanted */
    size_t frozen_from; /* index of the first frozen object */
    bool by_heads;
    cm_scan_pick *pick; /* NULL: trial deletion will be made on all of it */
    void *context;      /* of `pick` */
    struct cm_trial trial;
};

static void
heap_release(struct heap *self)
{
    cm_trial_release(&self->trial);
    cm_objects_array_release(&self->objects);
    *self = (struct heap){.pick = self->pick, .context = self->context};
}

/* Finds the heads by the list that a fresh object is appended to.  The object
 * is gone again when this returns.  Before: collections are off. */
static void
find_heads(const struct cm_gc_module *gc, struct cm_gc_heads *heads)
{
    PyObject *newest = PyList_New(0);
    if (newest == NULL) {
        PyErr_Clear();
        return;
    }
    PyObject_GC_UnTrack(newest);
    cm_gc_heads_find(heads, gc, newest);
    Py_DECREF(newest);
}

/* Counted while its header is at hand: memory is read once. */
static enum cm_status
enter(struct heap *self, PyObject *object, Py_ssize_t bias)
{
    self->seen++;
    if (self->pick != NULL && !self->pick(self->context, object))
        return CM_OK;
    enum cm_status status = cm_objects_array_add(&self->objects, object);
    if (status == CM_OK && self->pick == NULL)
        status = cm_trial_add(&self->trial, object, bias);
    return status;
}

/* CM_BAD_INPUT: the links do not agree. */
static enum cm_status
enter_list(struct heap *self, struct cm_gc_head *head)
{
    struct cm_gc_head *from = head, *node;
    for (node = cm_gc_next(head); node != head; node = cm_gc_next(node)) {
        if (node == NULL || cm_gc_prev(node) != from)
            return CM_BAD_INPUT;
        from = node;
        enum cm_status status = enter(self, cm_gc_object(node), 0);
        if (status != CM_OK)
            return status;
    }
    return cm_gc_prev(head) == from ? CM_OK : CM_BAD_INPUT;
}

static enum cm_status
enter_by_heads(struct heap *self, const struct cm_gc_module *gc,
               const struct cm_gc_heads *heads)
{
    enum cm_status status = CM_OK;
    for (int i = 0; i < 3 && status == CM_OK; i++)
        status = enter_list(self, heads->young[i]);
    self->frozen_from = self->objects.count;
    if (status == CM_OK && heads->permanent != NULL) {
        size_t before = self->seen;
        status = enter_list(self, heads->permanent);
        size_t frozen = self->seen - before;
        if (status == CM_OK && (Py_ssize_t)frozen != cm_gc_frozen(gc))
            status = CM_BAD_INPUT;
    }
    return status;
}

#if PY_VERSION_HEX >= 0x030C0000
struct visit {
    struct heap *heap;
    enum cm_status status;
};

static int
visit_object(PyObject *object, void *context)
{
    struct visit *visit = context;
    /* The visitor's caller holds a reference of its own. */
    visit->status = enter(visit->heap, object, 1);
    return visit->status == CM_OK;
}

static enum cm_status
enter_by_visit(struct heap *self)
{
    struct visit visit = {.heap = self};
    PyUnstable_GC_VisitObjects(visit_object, &visit);
    self->frozen_from = self->objects.count;
    return visit.status;
}
#else
static enum cm_status
enter_by_visit(struct heap *self)
{
    (void)self;
    return CM_UNSUPPORTED;
}
#endif

static enum cm_status
enter_all(struct heap *self, const struct cm_gc_module *gc)
{
    struct cm_gc_heads heads = {0};
    find_heads(gc, &heads);
    enum cm_status status = CM_BAD_INPUT;
    if (heads.known)
        status = enter_by_heads(self, gc, &heads);
    self->by_heads = status != CM_BAD_INPUT;
    if (status == CM_BAD_INPUT) {
        heap_release(self);
        status = enter_by_visit(self);
    }
    return status;
}

/* Moves the unmarked among objects[from..to) to its beginning. */
static size_t
keep_unmarked(struct heap *self, size_t from, size_t to)
{
    size_t kept = from;
    if (self->trial.marked == self->trial.count)
        return 0;
    for (size_t i = from; i < to; i++) {
        PyObject *object = self->objects.items[i];
        if (!cm_trial_marked(&self->trial, object) && !cm_lure_owns(object))
            self->objects.items[kept++] = object;
    }
    return kept - from;
}

static void
send(cm_garbage_sink *sink, void *context, const struct cm_garbage *garbage)
{
    sink(context, garbage);
    if (PyErr_Occurred())
        PyErr_Clear();
}

/* Dead is what stays unmarked.  Of that, what a frozen object reaches is
 * frozen too: a collection takes it for reachable.  So first the dead are
 * gathered, frozen ones last; then marks spread from those. */
static enum cm_status
deliver(struct heap *self, cm_garbage_sink *sink, void *context)
{
    PyObject **items = self->objects.items;
    size_t total = self->objects.count, split = self->frozen_from;
    size_t dead = keep_unmarked(self, 0, split);
    size_t frozen = keep_unmarked(self, split, total);
    size_t free_count = dead;
    for (size_t i = 0; i < frozen; i++) {
        enum cm_status status = cm_trial_mark(&self->trial, items[split + i]);
        if (status != CM_OK)
            return status;
    }
    if (frozen > 0) {
        /* Kept ones go behind the freed ones, before the frozen. */
        free_count = 0;
        for (size_t i = 0; i < dead; i++) {
            PyObject *object = items[i];
            if (!cm_trial_marked(&self->trial, object)) {
                items[i] = items[free_count];
                items[free_count++] = object;
            }
        }
        for (size_t i = 0; i < frozen; i++)
            items[dead + i] = items[split + i];
    }
    struct cm_garbage garbage = {
        .objects = items, .count = free_count, .generation = -1};
    send(sink, context, &garbage);
    if (frozen > 0) {
        garbage.objects = items + free_count;
        garbage.count = dead + frozen - free_count;
        garbage.frozen = true;
        send(sink, context, &garbage);
    }
    return CM_OK;
}

static enum cm_status
scan(const struct cm_gc_module *gc, cm_garbage_sink *sink, void *context,
     struct cm_scan_counts *counts)
{
    struct heap heap = {0};
    struct cm_objects_array for_ever = {0};
    enum cm_status status = enter_all(&heap, gc);
    PyObject *const *objects = heap.objects.items;
    size_t count = heap.objects.count;
    if (status == CM_OK) {
        cm_trial_take_off(&heap.trial, objects, count);
        status = cm_trial_mark_held(&heap.trial, objects, count);
    }
    if (status == CM_OK && look_further != NULL)
        status = look_further(&heap.trial, objects, count, &for_ever);
    if (status == CM_OK)
        status = deliver(&heap, sink, context);
    if (status == CM_OK && for_ever.count > 0) {
        struct cm_garbage garbage = {.objects = for_ever.items,
                                     .count = for_ever.count,
                                     .generation = -1,
                                     .uncollectable = true};
        send(sink, context, &garbage);
    }
    if (status == CM_OK) {
        counts->objects = count;
        counts->negative = heap.trial.negative;
        counts->by_heads = heap.by_heads;
    }
    heap_release(&heap);
    cm_objects_array_release(&for_ever);
    return status;
}

int
cm_scan_counted(cm_garbage_sink *sink, void *context,
                struct cm_scan_counts *counts)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int enabled = PyGC_Disable(); /* until we are done: ours allocate too */
    struct cm_gc_module gc = {0};
    enum cm_status status = CM_UNSUPPORTED;
    if (cm_gc_module_init(&gc) == 0)
        status = scan(&gc, sink, context, counts);
    cm_gc_module_release(&gc);
    if (enabled)
        PyGC_Enable();
    PyErr_Restore(type, value, traceback);
    return status == CM_OK ? 0 : -1;
}

enum cm_status
cm_scan_tracked(cm_scan_pick *pick, void *context,
                struct cm_objects_array *result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int enabled = PyGC_Disable();
    struct cm_gc_module gc = {0};
    struct heap heap = {.pick = pick, .context = context};
    enum cm_status status = CM_UNSUPPORTED;
    if (cm_gc_module_init(&gc) == 0)
        status = enter_all(&heap, &gc);
    if (status == CM_OK) {
        *result = heap.objects;
        heap.objects = (struct cm_objects_array){0};
    }
    heap_release(&heap);
    cm_gc_module_release(&gc);
    if (enabled)
        PyGC_Enable();
    PyErr_Restore(type, value, traceback);
    return status;
}

const char *
cm_scan_unsupported(void)
{
    return NULL;
}

const char *
cm_scan_frozen(size_t *frozen)
{
    struct cm_gc_module gc = {0};
    struct cm_gc_heads heads = {0};
    Py_ssize_t count = 0;
    int enabled = PyGC_Disable();
    if (cm_gc_module_init(&gc) == 0) {
        find_heads(&gc, &heads);
        count = cm_gc_frozen(&gc);
    }
    PyErr_Clear();
    cm_gc_module_release(&gc);
    if (enabled)
        PyGC_Enable();
    *frozen = count > 0 ? (size_t)count : 0;
    return heads.known && heads.permanent != NULL ? "seen" : "counted";
}

#endif

int
cm_scan(cm_garbage_sink *sink, void *context, size_t *objects_scanned)
{
    struct cm_scan_counts counts = {0};
    int result = cm_scan_counted(sink, context, &counts);
    if (result == 0 && objects_scanned != NULL)
        *objects_scanned = counts.objects;
    return result;
}
