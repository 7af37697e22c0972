/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Reads the collector's own unreachable list, from the callback of a weak
 * reference to a pair of objects that is garbage in this very collection
 * (lure.h).  Two ways to have a pair there:
 *
 * Heard: ours is in gc.callbacks.  A pair is tracked from a collection's start
 * to its stop.  A new reference to both, taken in the callback, makes them
 * count as resurrected, so nothing is added to what was collected.
 *
 * At rest: gc.callbacks is left alone, since gc builds two dicts for each
 * collection as soon as anything is in it.  Pairs wait at the head of each
 * generation and go back there from the callback, so no collection frees them
 * or counts them.  When the sink wants this collection's stop, ours is put in
 * gc.callbacks in time for it, and goes again with it.
 * gc.freeze(), or a collection while somebody holds all objects, takes a pair
 * away from its place: check() puts it back.  Only where the heads of the
 * generations are known, and nothing stands behind us in gc.callbacks.
 *
 * Cost: heard under 1 us a collection and gc's dicts, at rest 0.2 us; 3 to
 * 12 ns for each garbage object. */

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

static void
check(struct cm_interceptor *self)
{
    (void)self;
}

#else

#include <stddef.h>

#include "../../detector/alloc.h"
#include "../../detector/clock.h"
#include "../../detector/hot.h"
#include "../../detector/meter.h"
#include "../../detector/ticks.h"
#include "lure.h"

enum { DEBUG_COLLECTABLE = 2, KEPT_OBJECTS = 1 << 17, GENERATIONS = 3 };

/* A collection whose start was heard. */
struct level {
    struct cm_lure lure;
    bool armed, read; /* armed and no more awake: caught */
    bool uncaught;    /* its start was heard at rest */
};

struct sentinel {
    struct cm_interceptor base;
    PyObject *module; /* borrowed: it owns who installed us */
    struct cm_lure_types types;
    struct cm_gc_heads heads;
    const int *debug; /* borrowed of the interpreter; NULL: gc is asked */
    struct level levels[CM_LEVELS_MAX];
    struct cm_lure guards[GENERATIONS];
    struct cm_ticks ticks;           /* of the guards */
    struct cm_objects_array garbage; /* reused by each walk */
};

/* What is garbage besides the pair.  False: it could not be read. */
CM_HOT static bool
read_and_deliver(struct sentinel *self, const struct cm_lure *lure,
                 int generation)
{
    struct cm_interceptor_counts *counts = &self->base.counts;
    struct cm_type_set types;
    enum cm_status status =
        cm_gc_read_garbage(lure->first, lure->twin, &self->garbage, &types);
    counts->walks += status == CM_OK;
    counts->bad_walks += status == CM_BAD_INPUT;
    counts->no_memory += status == CM_NO_MEMORY;
    if (status == CM_OK && self->garbage.count > 0) {
        counts->objects += self->garbage.count;
        struct cm_garbage garbage = {
            .objects = self->garbage.items,
            .count = self->garbage.count,
            .types = &types,
            .generation = generation,
        };
        self->base.sinks.garbage(self->base.sinks.context, &garbage);
        if (PyErr_Occurred())
            PyErr_Clear();
    }
    if (self->garbage.capacity > KEPT_OBJECTS) {
        cm_objects_array_release(&self->garbage);
    }
    return status == CM_OK;
}

/* What `lure` was caught with; mostly nothing.  False as above. */
static inline bool
deliver(struct sentinel *self, const struct cm_lure *lure, int generation)
{
    if (cm_gc_are_alone(lure->first, lure->twin)) {
        self->base.counts.walks++;
        return true;
    }
    return read_and_deliver(self, lure, generation);
}

/* gc would print our objects. */
CM_HOT static bool
prints_collectable(const struct sentinel *self)
{
    long flags =
        self->debug != NULL ? *self->debug : cm_gc_debug(&self->base.gc);
    return (flags & DEBUG_COLLECTABLE) != 0;
}

/* ---- at rest: guards wait in the lists, nothing in gc.callbacks */

static void
take_guards(struct sentinel *self)
{
    self->base.resting = false;
    for (int i = 0; i < GENERATIONS; i++)
        cm_lure_untrack(&self->guards[i]);
}

static inline bool
is_posted(const struct sentinel *self, int number)
{
    return self->guards[number].awake
           && cm_lure_is_first(&self->guards[number],
                               self->heads.young[number]);
}

/* [0 or -1; raises] */
CM_HOT static int
post_guard(struct sentinel *self, int number)
{
    if (cm_lure_wake(&self->guards[number]) < 0)
        return -1;
    cm_lure_track(&self->guards[number], self->heads.young[number]);
    return 0;
}

/* [0 or -1; raises] */
static int
post_guards(struct sentinel *self)
{
    for (int i = 0; i < GENERATIONS; i++) {
        if (cm_lure_make(&self->guards[i], &self->types) < 0
            || post_guard(self, i) < 0) {
            take_guards(self);
            return -1;
        }
    }
    self->base.resting = true;
    return 0;
}

static void
count_failure(struct sentinel *self)
{
    PyErr_Clear();
    self->base.counts.no_memory++;
}

/* At the end of the list: whoever walks it just now passes nobody over, and
 * calls nobody twice. */
CM_HOT static void
listen(struct sentinel *self)
{
    if (self->base.callable == NULL
        && cm_hook_attach(&self->base, self->module, true) < 0)
        count_failure(self);
}

/* Only the last of gc.callbacks leaves the list unseen. */
CM_HOT static bool
may_rest(const struct sentinel *self)
{
    return self->heads.known && !self->heads.incremental
           && self->base.depth == 1 && self->base.skipped == 0
           && cm_hook_is_last(&self->base);
}

/* Within a collection that has begun as any other: from the next one on, and
 * from now on where nobody need hear its stop. */
CM_HOT static void
rest(struct sentinel *self, struct level *level, bool at_once)
{
    if (post_guards(self) < 0) {
        count_failure(self);
        return;
    }
    if (at_once) {
        level->armed = false;
        cm_lure_untrack(&level->lure);
        Py_DECREF(level->lure.first);
        Py_DECREF(level->lure.twin);
        self->base.depth = 0;
        cm_hook_detach(&self->base);
    }
}

/* Those of younger generations are in the list too, and are posted anew before
 * it is read.  The oldest generation of all; -1: one could not be posted. */
CM_HOT static int
post_others(struct sentinel *self, int number)
{
    int generation = number;
    for (int i = 0; i < GENERATIONS; i++) {
        if (i == number || is_posted(self, i)
            || !cm_gc_collecting(cm_gc_of(self->guards[i].first)))
            continue;
        if (post_guard(self, i) < 0)
            return -1;
        generation = i > generation ? i : generation;
    }
    return generation;
}

/* `collection` is what is known of it before its end. */
CM_HOT static enum cm_heed
heed(const struct sentinel *self, const struct cm_collection *collection)
{
    const struct cm_sinks *sinks = &self->base.sinks;
    return sinks->heed == NULL || prints_collectable(self)
               ? CM_HEED_ALL
               : sinks->heed(sinks->context, collection);
}

/* The stop of this collection is to be heard; also where its start was, as one
 * inside another. */
CM_HOT static void
await_stop(struct sentinel *self, const struct cm_collection *collection)
{
    int depth = self->base.depth;
    bool begun = depth > 0 && self->levels[depth - 1].uncaught;
    int number = begun ? depth - 1
                       : cm_hook_open(&self->base, collection->generation,
                                      cm_clock_ns(CLOCK_MONOTONIC)
                                          - collection->duration_ns);
    if (number >= 0) {
        struct level *level = &self->levels[number];
        level->armed = level->uncaught = false;
        level->read = collection->seen;
    }
    listen(self);
}

/* Posts all anew and delivers.  False: one could not be posted. */
CM_HOT static bool
take_in(struct sentinel *self, struct cm_lure *lure,
        struct cm_collection *collection)
{
    int number = (int)(lure - self->guards);
    int oldest = post_others(self, number);
    collection->generation = oldest < 0 ? number : oldest;
    if (oldest >= 0)
        collection->seen = deliver(self, lure, oldest);
    if (oldest >= 0 && post_guard(self, number) == 0)
        return true;
    count_failure(self);
    return false;
}

CM_HOT static void
guard_caught(struct cm_lure *lure)
{
    struct sentinel *self = lure->context;
    if (CM_PASSES(CM_METER_COLLECTION_START))
        return;
    struct cm_collection collection = {.collected = -1};
    self->base.calls++;
    self->base.counts.collections++;
    self->base.counts.unheard++;
    bool posted = take_in(self, lure, &collection);
    if (!self->base.removed) {
        collection.duration_ns =
            cm_ticks_since_ns(&self->ticks, cm_lure_traversed(lure));
        enum cm_heed what = posted ? heed(self, &collection) : CM_HEED_ALL;
        if (what == CM_HEED_ALL)
            take_guards(self);
        if (what != CM_HEED_NOTHING || self->base.depth > 0)
            await_stop(self, &collection);
    }
    cm_hook_leave(&self->base);
}

/* What user code may have done to the lists since: gc.freeze(), or a
 * collection while somebody held all objects. */
CM_HOT static void
check(struct cm_interceptor *base)
{
    struct sentinel *self = (struct sentinel *)base;
    if (!self->base.resting)
        return;
    bool whole = !prints_collectable(self);
    for (int i = 0; whole && i < GENERATIONS; i++) {
        if (!is_posted(self, i) && post_guard(self, i) < 0) {
            count_failure(self);
            whole = false;
        }
    }
    if (!whole) {
        take_guards(self);
        listen(self);
    }
}

/* ---- heard: from a collection's start to its stop */

CM_HOT static void
level_caught(struct cm_lure *lure)
{
    struct sentinel *self = lure->context;
    struct level *level =
        (struct level *)(void *)((char *)lure - offsetof(struct level, lure));
    int number = (int)(level - self->levels);
    struct cm_collection collection = {
        .generation = self->base.levels[number].generation,
        .collected = -1,
    };
    if (!level->armed)
        return;
    Py_INCREF(lure->first);
    Py_INCREF(lure->twin);
    level->read = deliver(self, lure, collection.generation);
    collection.seen = level->read;
    if (may_rest(self)) {
        collection.duration_ns =
            cm_clock_ns(CLOCK_MONOTONIC) - self->base.levels[number].start_ns;
        enum cm_heed what = heed(self, &collection);
        if (what != CM_HEED_ALL)
            rest(self, level, what == CM_HEED_NOTHING);
    }
}

CM_HOT static void
opened(struct cm_interceptor *base, int number)
{
    struct sentinel *self = (struct sentinel *)base;
    struct level *level = &self->levels[number];
    level->armed = level->read = false;
    level->uncaught = base->resting;
    if (base->resting)
        return;
    if (prints_collectable(self)) {
        base->counts.stood_aside++;
        return;
    }
    level->lure.caught = level_caught;
    level->lure.context = self;
    if (cm_lure_make(&level->lure, &self->types) < 0
        || cm_lure_wake(&level->lure) < 0) {
        count_failure(self);
        return;
    }
    /* First in the collected generation: then our callback is the first too. */
    int generation = base->levels[number].generation;
    cm_lure_track(
        &level->lure,
        self->heads.known
            ? self->heads.young[self->heads.incremental ? 0 : generation]
            : NULL);
    level->armed = true;
}

/* Untracked again, each with its own reference only. */
CM_HOT static void
closed(struct cm_interceptor *base, int number, PyObject *info,
       struct cm_collection *collection)
{
    struct level *level = &((struct sentinel *)base)->levels[number];
    (void)info;
    collection->seen = level->read;
    if (!level->armed)
        return;
    level->armed = false;
    cm_lure_untrack(&level->lure);
    PyObject_GC_UnTrack(level->lure.weak);
    if (level->lure.awake) {
        base->counts.unfired++;
        return;
    }
    Py_DECREF(level->lure.first);
    Py_DECREF(level->lure.twin);
}

CM_HOT static bool
under_way(const struct cm_interceptor *base, int number)
{
    const struct level *level =
        &((const struct sentinel *)base)->levels[number];
    return level->armed && cm_gc_collecting(cm_gc_of(level->lure.first));
}

static void
destroy(struct cm_interceptor *base)
{
    struct sentinel *self = (struct sentinel *)base;
    for (int i = 0; i < GENERATIONS; i++)
        cm_lure_release(&self->guards[i]);
    for (int i = 0; i < CM_LEVELS_MAX; i++)
        cm_lure_release(&self->levels[i].lure);
    cm_lure_types_release(&self->types);
    cm_objects_array_release(&self->garbage);
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

/* [0 or -1; raises] */
static int
prepare(struct sentinel *self, const struct cm_sinks *sinks)
{
    struct cm_lure *lure = &self->levels[0].lure;
    if (cm_hook_init(&self->base, sinks) < 0
        || cm_lure_types_make(&self->types, self->module) < 0
        || cm_lure_make(lure, &self->types) < 0 || cm_lure_wake(lure) < 0)
        return -1;
    PyObject_GC_UnTrack(lure->weak);
    cm_gc_heads_find(&self->heads, &self->base.gc, lure->first);
    self->debug = cm_gc_debug_find(&self->heads, &self->base.gc);
    self->base.counts.first = self->heads.known;
    self->base.counts.flags = self->debug != NULL;
    cm_ticks_begin(&self->ticks);
    for (int i = 0; i < GENERATIONS; i++) {
        self->guards[i].caught = guard_caught;
        self->guards[i].context = self;
        self->guards[i].keeps_time = true;
    }
    return 0;
}

static struct cm_interceptor *
install(PyObject *module, const struct cm_sinks *sinks)
{
    struct sentinel *self = cm_calloc(1, sizeof(*self));
    if (self == NULL)
        return (void *)PyErr_NoMemory();
    self->base.kind = &sentinel_kind;
    self->module = module;
    if (prepare(self, sinks) < 0
        || cm_hook_attach(&self->base, module, false) < 0) {
        destroy(&self->base);
        return NULL;
    }
    return &self->base;
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
    .check = check,
    .counts = cm_hook_counts,
    .unsupported = unsupported,
};
