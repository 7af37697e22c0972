/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A look costs about one full collection (scan.c).  It is asked for where the
 * program comes by anyway: at tensors that are made, so that one without
 * collections is looked at too, at collections and at iterations; and it is
 * had at the next safe point, by a pending call. */

#include "looks.h"

#include "../../detector/alloc.h"
#include "../../detector/clock.h"
#include "../../detector/hot.h"
#include "../../detector/number.h"
#include "../../reports/leak.h"
#include "../allocations/allocations.h"
#include "demand.h"
#include "../frozen/fate.h"
#include "../frozen/freeze.h"
#include "linecache.h"
#include "session_private.h"
#include "sighting.h"
#include "steps.h"
#include "../frozen/uncollectable.h"

/* The user asked, or memory ran out: there is time to look at all of it. */
static const struct cm_freeze_bounds in_scan = {.max_objects = 4000000,
                                                .max_nodes = 400000,
                                                .max_time_ns =
                                                    UINT64_C(10000000000)};

struct scan {
    struct cm_session *session;
    const struct cm_freeze_bounds *bounds;
};

/* Called up to three times: with what gc.freeze() keeps, and with what no
 * collection frees. */
static void
on_scanned(void *context, const struct cm_garbage *garbage)
{
    const struct scan *scan = context;
    struct cm_session *self = scan->session;
    struct cm_heap heap = {0};
    if (cm_freeze(self->freezer, garbage, scan->bounds, &heap) != CM_OK) {
        self->no_memory++;
    }
    if (heap.node_count == 0 || self->scanned_count == CM_MAX_SCANNED) {
        cm_heap_release(&heap);
        return;
    }
    heap.trigger = self->trigger;
    heap.iteration = self->iteration;
    cm_allocations_explain(&heap, self->records);
    struct cm_fate_known known = {cm_freezer_knows_dead, cm_freezer_saw_all,
                                  self->freezer};
    cm_fate_foretell(&heap, self->devices, &known);
    self->scanned[self->scanned_count++] = heap;
}

static void
release_scanned(struct cm_session *self)
{
    for (size_t i = 0; i < self->scanned_count; i++) {
        cm_heap_release(&self->scanned[i]);
    }
    self->scanned_count = 0;
}

PyObject *
cm_session_scan(struct cm_session *self, PyObject *args)
{
    int trigger, record;
    if (!PyArg_ParseTuple(args, "ip:scan", &trigger, &record)) {
        return NULL;
    }
    if (self->silent || cm_scan_unsupported() != NULL) {
        PyErr_SetString(PyExc_RuntimeError,
                        self->silent ? "cumem is silent in a forked child"
                                     : cm_scan_unsupported());
        return NULL;
    }
    if (self->scanned_count != 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "another thread of this program is scanning");
        return NULL;
    }
    cm_session_notice(self);
    cm_steps_tell(self);
    cm_looks_tell(self); /* those that were put off */
    struct scan scan = {self, &in_scan};
    self->trigger = (enum cm_trigger)trigger;
#ifndef Py_GIL_DISABLED
    cm_scan_look_further(cm_uncollectable_find);
#endif
    int scanned = cm_scan(on_scanned, &scan, NULL);
    cm_linecache_copy(self->records, &self->sourced);
    PyObject *result =
        scanned == 0
            ? cm_sighting_new(self->module, self->digest, self->scanned,
                              self->scanned_count, record != 0)
            : PyErr_NoMemory();
    cm_scan_look_further(NULL);
    release_scanned(self);
    if (record != 0
        && self->warned) { /* also when memory ran out for live data */
        Py_BEGIN_ALLOW_THREADS(void)
        !cm_digest_write(self->digest, true);
        Py_END_ALLOW_THREADS
    }
    return result;
}

/* --- what is told of them ----------------------------------------------- */

/* What the table of blocks has lost since this was told last. */
static void
tell_lost(struct cm_session *session)
{
    struct cm_blocks_counts counts = {0};
    struct cm_looks *looks = &session->looks;
    if (cm_allocations_blocks() != NULL) {
        cm_blocks_counts(cm_allocations_blocks(), &counts);
    }
    uint64_t lost = cm_number_sum(counts.lost, counts.lost_sites);
    if (lost > looks->lost_told) {
        cm_digest_lost(session->digest, lost - looks->lost_told, 0,
                       "allocations that there was no room to note");
    }
    looks->lost_told = lost;
}

void
cm_looks_tell(struct cm_session *session)
{
    const struct cm_looks *looks = &session->looks;
    const struct cm_look_plan *plan = &looks->plan;
    struct cm_leak_looks told = {
        .count = plan->count,
        .duration_us = plan->spent_ns / 1000,
        .longest_us = plan->longest_ns / 1000,
        .skipped = plan->skipped,
        .collections = looks->collections,
        .saved_bytes = looks->saved_bytes,
        .growth_count = looks->growth_count,
        .growth_duration_us = looks->growth_ns / 1000,
    };
    if (!session->silent) {
        cm_digest_looks(session->digest, &told, plan->begun_ns);
        tell_lost(session);
    }
}

PyObject *
cm_session_looked(struct cm_session *self, PyObject *args)
{
    unsigned long long count;
    double seconds;
    if (!PyArg_ParseTuple(args, "Kd:looked", &count, &seconds)) {
        return NULL;
    }
    self->looks.growth_count = count;
    self->looks.growth_ns = (uint64_t)(seconds * 1e9);
    cm_looks_tell(self);
    Py_RETURN_NONE;
}

/* --- unasked ---------------------------------------------------------------- */

/* Those that a collection would free. */
static uint64_t
dead_bytes(const struct cm_session *self)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < self->scanned_count; i++) {
        const struct cm_heap *heap = &self->scanned[i];
        for (size_t k = 1;
             !heap->frozen_generation && k <= heap->storage_count; k++) {
            bytes += heap->storages[k].bytes;
        }
    }
    return bytes;
}

/* Also where the program has switched collections off. */
static void
collect(struct cm_session *self)
{
    int enabled = PyGC_Enable();
    self->looks.collections++;
    self->looks.saving = true;
    PyGC_Collect();
    self->looks.saving = false;
    if (!enabled) {
        PyGC_Disable();
    }
}

/* The native thread takes what was found, and the heaps are empty then. */
static void
pass_on(struct cm_session *self)
{
    for (size_t i = 0; self->warned && i < self->scanned_count; i++) {
        self->dropped_heaps += !cm_worker_add(self->worker, &self->scanned[i]);
    }
}

static void
look(struct cm_session *self)
{
    struct cm_looks *looks = &self->looks;
    struct scan scan = {self, &cm_freeze_in_collection};
    uint64_t start = cm_clock_ns(CLOCK_MONOTONIC);
    cm_session_see_collector(self);
    cm_steps_tell(self);
    self->trigger = CM_TRIGGER_SCAN;
    if (cm_scan(on_scanned, &scan, NULL) != 0) {
        self->no_memory++;
    }
    cm_linecache_copy(self->records, &self->sourced);
    looks->dead_bytes = dead_bytes(self);
    bool collects =
        looks->collect_above != 0 && looks->dead_bytes > looks->collect_above;
    if (collects) { /* which will tell of the same */
        release_scanned(self);
    }
    cm_look_plan_looked(&looks->plan, cm_clock_ns(CLOCK_MONOTONIC) - start,
                        cm_allocations_bytes());
    cm_looks_tell(self); /* before it is written what this one found */
    if (collects) {
        collect(self);
    }
    else {
        pass_on(self);
        release_scanned(self);
    }
}

/* Within a collection its objects are in no list: the next tensor asks again.
 * `context` is perhaps gone by now. */
static int
look_pending(void *context)
{
    struct cm_session *self = context;
    if (self == cm_session_main() && !self->silent) {
        if (cm_session_is_here(self) && !self->collecting
            && self->scanned_count == 0
            && self->looks.plan.run_for_look != 0) {
            look(self);
        }
        self->looks.pending = false;
    }
    return 0;
}

static void
ask(struct cm_session *self)
{
    struct cm_looks *looks = &self->looks;
    if (!looks->pending && cm_scan_unsupported() == NULL
        && cm_look_plan_affords(&looks->plan, cm_clock_ns(CLOCK_MONOTONIC))) {
        looks->pending = Py_AddPendingCall(look_pending, self) == 0;
    }
}

CM_HOT void
cm_looks_consider(struct cm_session *session)
{
    cm_demand_again();
    if (cm_look_plan_due(&session->looks.plan, cm_allocations_bytes())) {
        ask(session);
    }
}

CM_HOT void
cm_looks_stepped(struct cm_session *session, int64_t done)
{
    if (cm_session_is_main(session)
        && cm_look_plan_due_after(&session->looks.plan, done)) {
        ask(session);
    }
}

CM_HOT void
cm_looks_collected(struct cm_session *session, int generation,
                   uint64_t took_ns, uint64_t bytes)
{
    struct cm_looks *looks = &session->looks;
    if (generation >= 2) {
        cm_look_plan_collected(&looks->plan, took_ns, cm_allocations_bytes());
    }
    if (looks->saving) {
        looks->saved_bytes += bytes;
        cm_looks_tell(session);
    }
}

PyObject *
cm_session_looks(struct cm_session *self, PyObject *args)
{
    unsigned long long bytes, every, collect_above, run_for_look;
    if (!PyArg_ParseTuple(args, "KKKK:looks", &bytes, &every, &collect_above,
                          &run_for_look)) {
        return NULL;
    }
    struct cm_look_plan *plan = &self->looks.plan;
    if (plan->run_for_look == 0) { /* off until now */
        plan->bytes_then = cm_allocations_bytes();
    }
    if (plan->begun_ns == 0) {
        plan->begun_ns = cm_clock_ns(CLOCK_MONOTONIC);
    }
    if (run_for_look == 0) { /* a call that still waits finds nothing to do */
        self->looks.pending = false;
    }
    plan->bytes = bytes;
    plan->every = every;
    plan->run_for_look = run_for_look;
    self->looks.collect_above = collect_above;
    Py_RETURN_NONE;
}

PyObject *
cm_looks_status(const struct cm_session *session)
{
    const struct cm_looks *looks = &session->looks;
    const struct cm_look_plan *plan = &looks->plan;
    return Py_BuildValue(
        "{sKsdsdsKsKsKsKsKsKsK}", "count", plan->count, "seconds",
        (double)plan->spent_ns / 1e9, "longest",
        (double)plan->longest_ns / 1e9, "skipped", plan->skipped, "dead_bytes",
        looks->dead_bytes, "collections", looks->collections, "saved_bytes",
        looks->saved_bytes, "after_bytes", plan->bytes, "every", plan->every,
        "collect_above", looks->collect_above);
}
