/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The sinks of the interceptor stand first, in the order in which a
 * collection calls them: start, garbage, heed, stop; then what Python calls.
 * What a collection costs when it finds no device garbage is the interceptor's
 * walk and one type look-up per object. */

#include "session.h"

#include <pthread.h>
#include <string.h>

#include "../../detector/alloc.h"
#include "../../detector/clock.h"
#include "../../detector/hot.h"
#include "../../reports/digest.h"
#include "../../reports/worker.h"
#include "../allocations/allocations.h"
#include "../objects/deaths.h"
#include "demand.h"
#include "../frameworks/devices.h"
#include "../allocations/driver_events.h"
#include "../frozen/fate.h"
#include "../frozen/freeze.h"
#include "linecache.h"
#include "session_private.h"
#include "sighting.h"
#include "steps.h"
#include "../frameworks/tags.h"
#include "touched.h"
#include "../allocations/unhooked.h"

/* About 1.2 KiB each. */
enum { MOST_SERIES = 20000 };
#define RECORD_BYTES ((size_t)256 * 1024 * 1024)
#define SLOW_COLLECTION_NS UINT64_C(1000000)
/* Once all is attached, frameworks are looked for after imports, and in each of
 * so many collections: one may have taken another's place. */
enum { LOOKS_BETWEEN = 64 };
/* Collections at rest: so many at most from one iteration's end to the next;
 * for what a start would do, each of so many is looked at. */
enum { MOST_UNCHECKED = 1024, RESTED_EACH = 16 };

/* The session that torch's tags and pending calls belong to: torch lives in
 * one interpreter.  Guarded by the GIL. */
static struct cm_session *main_session;

CM_HOT struct cm_session *
cm_session_main(void)
{
    return main_session;
}

CM_HOT bool
cm_session_is_main(const struct cm_session *self)
{
    return self == main_session;
}

bool
cm_session_is_here(const struct cm_session *self)
{
    return self->interpreter == PyInterpreterState_Get();
}

static int
drain_pending(void *context)
{
    if (context == main_session && !main_session->silent
        && cm_session_is_here(main_session)) {
        cm_session_drain_warnings(main_session);
    }
    return 0;
}

/* --- start -------------------------------------------------------------- */

static Py_ssize_t
imported_modules(void)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    return modules != NULL ? PyDict_GET_SIZE(modules) : 0;
}

/* A start of a collection would do more than nothing. */
CM_HOT static bool
is_due(struct cm_session *self)
{
    self->due = self->due || cm_session_has_news(self)
                || imported_modules() != self->imported
                || ++self->quiet_collections % LOOKS_BETWEEN == 0;
    return self->due;
}

CM_HOT static void
on_start(void *context)
{
    struct cm_session *self = context;
    if (self->silent) {
        return;
    }
    self->collecting = true;
    if (!is_due(self)) { /* tensors and steps come by */
        return;
    }
    self->due = false;
    self->imported = imported_modules();
    cm_session_notice(self);
    if (self == main_session) {
        cm_deaths_rest();
        cm_looks_consider(self);
    }
}

/* --- garbage ------------------------------------------------------------ */

CM_HOT static void
on_garbage(void *context, const struct cm_garbage *garbage)
{
    struct cm_session *self = context;
    if (self->silent) {
        return;
    }
    struct cm_heap *heap = &self->spare;
    uint64_t start = cm_clock_ns(CLOCK_MONOTONIC);
    enum cm_status status =
        cm_freeze(self->freezer, garbage, &cm_freeze_in_collection, heap);
    uint64_t took = cm_clock_ns(CLOCK_MONOTONIC) - start;
    if (took > self->longest_freeze_ns) {
        self->longest_freeze_ns = took;
    }
    self->no_memory += status != CM_OK;
    cm_allocations_explain(heap, self->records);
    if (heap->node_count != 0 && self->pending_count < CM_MAX_PENDING) {
        heap->trigger = CM_TRIGGER_GC;
        heap->iteration = self->iteration;
        self->pending[self->pending_count++] = *heap;
        *heap = (struct cm_heap){0};
        self->frozen_heaps++;
    }
    else {
        self->dropped_heaps += heap->node_count != 0;
        cm_heap_clear(heap);
    }
}

/* Collections are seen at rest only while iterations end, where our place in
 * the collector's lists is checked. */
CM_HOT static bool
may_rest(struct cm_session *self)
{
    return self == main_session && self->iteration >= 0
           && self->iterations.by != CM_BY_TIME
           && ++self->since_iteration <= MOST_UNCHECKED
           && (++self->rested % RESTED_EACH != 0 || !is_due(self));
}

/* Its stop will have something to say. */
CM_HOT static bool
tells(const struct cm_session *self, const struct cm_collection *so_far)
{
    return self->pending_count != 0 || so_far->generation == 2
           || so_far->duration_ns > SLOW_COLLECTION_NS;
}

CM_HOT static enum cm_heed
on_heed(void *context, const struct cm_collection *so_far)
{
    struct cm_session *self = context;
    enum cm_heed heed = self->silent                       ? CM_HEED_NOTHING
                        : !so_far->seen || !may_rest(self) ? CM_HEED_ALL
                        : tells(self, so_far)              ? CM_HEED_STOP
                                                           : CM_HEED_NOTHING;
    self->collecting = heed != CM_HEED_NOTHING;
    return heed;
}

/* --- stop --------------------------------------------------------------- */

/* Takes the contents of `heap`. */
static void
digest_now(struct cm_session *self, struct cm_heap *heap)
{
    PyObject *event =
        cm_sighting_new(self->module, self->digest, heap, 1, self->warned);
    if (event == NULL) {
        PyErr_Clear();
        self->no_memory++;
        return;
    }
    cm_session_write(self);
    if (cm_sighting_count(event) != 0) {
        cm_session_deliver(self, "report", Py_NewRef(event));
    }
    Py_DECREF(event);
}

static uint64_t
storage_bytes(const struct cm_heap *heap)
{
    uint64_t bytes = 0;
    for (size_t i = 1; i <= heap->storage_count; i++) {
        bytes += heap->storages[i].bytes;
    }
    return bytes;
}

static void
note_collection(struct cm_session *self,
                const struct cm_collection *collection)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < self->pending_count; i++) {
        bytes += storage_bytes(&self->pending[i]);
    }
    cm_looks_collected(self, collection->generation, collection->duration_ns,
                       bytes);
    if (bytes != 0 || collection->duration_ns > SLOW_COLLECTION_NS) {
        cm_digest_collection(
            self->digest, collection->generation,
            collection->duration_ns / 1000,
            collection->collected > 0 ? (uint64_t)collection->collected : 0,
            bytes);
    }
}

/* Hands the pending heaps on.  A callback may collect, and so come back here:
 * the heaps are taken off first. */
static void
hand_over(struct cm_session *self, bool waits)
{
    struct cm_heap heaps[CM_MAX_PENDING];
    size_t count = self->pending_count;
    memcpy(heaps, self->pending, count * sizeof(heaps[0]));
    self->pending_count = 0;
    cm_linecache_copy(self->records, &self->sourced);
    for (size_t i = 0; i < count; i++) {
        cm_fate_observe(&heaps[i], self->devices);
    }
    if (!waits) {
        cm_steps_time(self, cm_clock_ns(CLOCK_MONOTONIC));
        cm_session_ask_memory(self);
    }
    if (count != 0 && self->warned) { /* who only observes asks for it */
        cm_steps_tell(self);
    }
    for (size_t i = 0; i < count; i++) {
        if (self->observed) {
            digest_now(self, &heaps[i]);
            cm_heap_release(&heaps[i]);
        }
        else if (!cm_worker_add(self->worker, &heaps[i])) {
            self->dropped_heaps++;
        }
    }
    if (cm_heap_footprint(&self->spare) == 0) {
        self->spare = cm_worker_spare(self->worker);
    }
}

static void take_back(struct cm_session *self);
static bool put_in(struct cm_session *self,
                   const struct cm_interceptor_kind *kind);

/* Lists that keep failing their proof: this collector is not the one we know. */
static void
fall_back(struct cm_session *self)
{
    struct cm_interceptor_counts counts;
    if (self->kind != &cm_sentinel || self->interceptor == NULL) {
        return;
    }
    self->kind->counts(self->interceptor, &counts);
    if (counts.bad_walks < 8 || counts.bad_walks < counts.walks / 4
        || cm_saveall.unsupported() != NULL) {
        return;
    }
    take_back(self);
    if (put_in(self, &cm_saveall)) {
        self->why = "the collector's lists failed their proof";
    }
    PyErr_Clear();
}

CM_HOT void
cm_session_check_collector(struct cm_session *self)
{
    self->since_iteration = 0;
    self->collecting = false; /* also where a stop was not heard */
    if (self->interceptor != NULL && self->kind->check != NULL) {
        self->kind->check(self->interceptor);
    }
}

CM_HOT static void
on_stop(void *context, const struct cm_collection *collection)
{
    struct cm_session *self = context;
    if (self->silent) {
        return;
    }
    self->collecting = false;
    cm_session_see_collector(self);
    note_collection(self, collection);
    bool found = self->pending_count != 0;
    bool waits = found && cm_steps_may_wait(self);
    if (found) {
        hand_over(self, waits);
    }
    cm_session_drain_warnings(self);
    if (waits) { /* behind what runs Python's code */
        cm_steps_soon(self);
    }
    if (!collection->seen) {
        fall_back(self);
    }
}

/* --- the native thread --------------------------------------------------- */

static void
digest_later(void *context, struct cm_heap *heap)
{
    struct cm_session *self = context;
    enum cm_status status =
        heap->node_count != 0 ? cm_digest_add(self->digest, heap) : CM_OK;
    if (status == CM_OK) {
        status = cm_digest_write(self->digest, false);
    }
    if (status == CM_OK && cm_digest_warns(self->digest)) {
        /* A full queue, or another interpreter's, is no loss: the next stop
         * or the exit says it. */
        (void)Py_AddPendingCall(drain_pending, self);
    }
}

/* A fork that Python does not know of (from C): the child is silent too. */
static void
in_forked_child(void)
{
    if (main_session != NULL) {
        main_session->silent = true;
    }
}

/* --- life ---------------------------------------------------------------- */

struct cm_session *
cm_session_new(PyObject *module)
{
    struct cm_session *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    self->module = module;
    self->interpreter = PyInterpreterState_Get();
    self->why = "nobody observes";
    self->iteration = -1;
    self->growth.table.max_series = MOST_SERIES;
    self->records = cm_records_new(RECORD_BYTES);
    self->objects =
        self->records != NULL ? cm_objects_new(self->records) : NULL;
    self->devices =
        self->objects != NULL ? cm_devices_new(self->objects) : NULL;
    self->digest = self->records != NULL ? cm_digest_new(self->records) : NULL;
    self->worker = cm_worker_new(digest_later, self);
    self->cuda_key = PyUnicode_InternFromString("torch.cuda");
    self->initialized_key = PyUnicode_InternFromString("_initialized");
    self->groups_key = PyUnicode_InternFromString("param_groups");
    self->params_key = PyUnicode_InternFromString("params");
    if (self->objects != NULL && self->devices != NULL) {
        self->freezer =
            cm_freezer_new(self->objects, self->devices, self->records);
    }
    if (self->freezer == NULL || self->digest == NULL || self->worker == NULL
        || self->cuda_key == NULL || self->initialized_key == NULL
        || self->groups_key == NULL || self->params_key == NULL) {
        cm_session_free(self);
        PyErr_NoMemory();
        return NULL;
    }
    return self;
}

static void
drop_heaps(struct cm_session *self)
{
    for (size_t i = 0; i < self->pending_count; i++) {
        cm_heap_release(&self->pending[i]);
    }
    self->pending_count = 0;
    cm_heap_release(&self->spare);
}

void
cm_session_free(struct cm_session *self)
{
    if (self == NULL || self->silent) {
        return; /* a forked child gives everything up as it is */
    }
    take_back(self);
    cm_gc_switch_drop(&self->gc_switch);
    if (main_session == self) {
        main_session = NULL;
        cm_allocations_stop();
        cm_driver_events_stop();
        cm_tags_off();
        cm_deaths_stop(self->objects);
        cm_touched_off();
    }
    cm_worker_free(self->worker);
    drop_heaps(self);
    cm_digest_free(self->digest);
    cm_freezer_free(self->freezer);
    cm_devices_free(self->devices);
    if (!cm_allocations_use(self->objects)
        && !cm_driver_events_use(self->objects)) {
        cm_objects_free(self->objects);
        cm_growth_release(&self->growth);
        cm_records_free(self->records);
    }
    Py_CLEAR(self->deliver);
    Py_CLEAR(self->cuda_dict);
    Py_CLEAR(self->cuda_key);
    Py_CLEAR(self->initialized_key);
    Py_CLEAR(self->groups_key);
    Py_CLEAR(self->params_key);
    cm_free(self);
}

int
cm_session_traverse(struct cm_session *self, visitproc visit, void *arg)
{
    if (self != NULL) {
        Py_VISIT(self->deliver);
        Py_VISIT(self->cuda_dict);
    }
    return 0;
}

/* --- installing ----------------------------------------------------------- */

static bool
put_in(struct cm_session *self, const struct cm_interceptor_kind *kind)
{
    struct cm_sinks sinks = {.garbage = on_garbage,
                             .stop = on_stop,
                             .start = on_start,
                             .heed = on_heed,
                             .context = self};
    self->interceptor = kind->install(self->module, &sinks);
    self->kind = kind;
    cm_digest_describe(self->digest, "interceptor", kind->name);
    return self->interceptor != NULL;
}

static void
take_back(struct cm_session *self)
{
    struct cm_interceptor_counts counts;
    if (self->interceptor != NULL) {
        cm_session_counts(self, &counts);
        self->past = counts;
        self->kind->remove(self->interceptor);
        self->interceptor = NULL;
        self->why = "nobody observes";
    }
}

static const struct cm_interceptor_kind *
choose_kind(const char *name, const char **why)
{
    if (strcmp(name, "saveall") == 0) {
        *why = "CUMEM_INTERCEPTOR asks for it";
        return &cm_saveall;
    }
    *why = cm_sentinel.unsupported();
    if (*why == NULL) {
        *why = "the collector's own list is read";
        return &cm_sentinel;
    }
    return &cm_saveall;
}

/* The sub-interpreters' sessions see cycles, but tag no tensors. */
static void
start_tags(struct cm_session *self, bool stacks)
{
    static bool fork_handled; /* Guarded by the GIL. */
    if (!fork_handled) {
        fork_handled = pthread_atfork(NULL, NULL, in_forked_child) == 0;
    }
    if (main_session == NULL) {
        main_session = self;
    }
    self->stacks = stacks;
    if (main_session == self && stacks) {
        cm_deaths_start(self->objects);
        cm_session_hear_imports();
    }
    if (main_session == self && cm_tags_start(self->objects, stacks) == 0) {
        cm_tags_on_tensor(cm_session_on_tensor);
    }
}

PyObject *
cm_session_install(struct cm_session *self, PyObject *args)
{
    const char *name;
    PyObject *callable;
    int stacks;
    if (!PyArg_ParseTuple(args, "sOp:install", &name, &callable, &stacks)) {
        return NULL;
    }
    if (self->silent) {
        PyErr_SetString(PyExc_RuntimeError,
                        "cumem is silent in a forked child; start a new "
                        "process (spawn or exec) to observe it");
        return NULL;
    }
    Py_XSETREF(self->deliver, Py_NewRef(callable));
    if (self->interceptor == NULL) {
        const char *why;
        const struct cm_interceptor_kind *kind = choose_kind(name, &why);
        if (kind->unsupported() != NULL) {
            PyErr_SetString(PyExc_RuntimeError, kind->unsupported());
            return NULL;
        }
        if (!put_in(self, kind)) {
            return NULL;
        }
        self->why = why;
        start_tags(self, stacks);
    }
    cm_session_notice(self);
    Py_RETURN_NONE;
}

PyObject *
cm_session_remove(struct cm_session *self, PyObject *types)
{
    take_back(self);
    if (main_session == self) {
        cm_allocations_stop();
        cm_driver_events_stop();
        cm_unhooked_forget();
        cm_tags_stop(types);
        cm_deaths_stop(self->objects);
        cm_touched_off();
        main_session = NULL;
        self->noticed = false;
        self->used = false;
        self->stepping = false;
        /* A call that still waits finds no session, or the next start's. */
        self->notice_pending = self->slice_pending = false;
        self->memory_due = false;
        Py_CLEAR(self->cuda_dict);
        cm_devices_forget(self->devices);
    }
    self->collecting = false; /* its stop is not heard any more */
    drop_heaps(self);
    Py_CLEAR(self->deliver);
    Py_RETURN_NONE;
}

PyObject *
cm_session_forked(struct cm_session *self)
{
    self->silent = true;
    self->observed = self->warned = false;
    cm_gc_switch_drop(&self->gc_switch);
    cm_devices_forked(self->devices);
    if (main_session == self) {
        cm_allocations_off();
        cm_driver_events_off();
        cm_demand_off();
        cm_tags_off();
        cm_deaths_stop(self->objects);
        cm_touched_off();
        main_session = NULL;
    }
    Py_RETURN_NONE;
}
