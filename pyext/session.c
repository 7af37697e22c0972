/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The sinks of the interceptor stand first, in the order in which a
 * collection calls them: start, garbage, stop; then the ways in from Python.
 * What a collection costs when it finds no device garbage is the interceptor's
 * walk and one type look-up per object. */

#include "session.h"

#include <string.h>
#include <time.h>

#include "../detector/alloc.h"
#include "../reports/digest.h"
#include "../reports/worker.h"
#include "devices.h"
#include "freeze.h"
#include "interceptor.h"
#include "tags.h"

#define MAX_PENDING 8
#define RECORD_BYTES ((size_t)256 * 1024 * 1024)
/* A collection may be held up by at most this much (DESIGN.md section 7). */
static const struct cm_freeze_bounds in_collection = {
    .max_objects = 200000, .max_nodes = 50000, .max_time_ns = 15000000};
static const struct cm_freeze_bounds in_scan = {
    .max_objects = 4000000,
    .max_nodes = 400000,
    .max_time_ns = UINT64_C(10000000000)};
#define SLOW_COLLECTION_NS UINT64_C(1000000)

struct cm_session {
    PyObject *module;  /* borrowed: it owns us */
    PyObject *deliver; /* owned: cumem._runtime._deliver, or NULL */
    struct cm_records *records;
    struct cm_objects *objects;
    struct cm_devices *devices;
    struct cm_freezer *freezer;
    struct cm_digest *digest;
    struct cm_worker *worker;
    const struct cm_interceptor_kind *kind;
    struct cm_interceptor *interceptor; /* owned; NULL: not installed */
    struct cm_interceptor_counts past;  /* of interceptors removed since */
    const char *why;                    /* constant: why this interceptor */
    struct cm_heap pending[MAX_PENDING];
    size_t pending_count;
    bool observed, warned; /* somebody wants pages; warnings */
    bool silent;           /* a forked child */
    bool noticed;          /* the accelerator's observers are attached */
    bool notice_pending;
    enum cm_trigger trigger; /* of the scan under way */
    struct cm_heap scanned;
    uint64_t frozen_heaps, dropped_heaps, no_memory, longest_freeze_ns;
};

/* The session that torch's tags and pending calls belong to: torch lives in
 * one interpreter.  Guarded by the GIL. */
static struct cm_session *main_session;

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* [none; never] calls deliver(kind, payload); `payload` is taken. */
static void
deliver(struct cm_session *self, const char *kind, PyObject *payload)
{
    PyObject *callable = Py_XNewRef(self->deliver);
    if (callable != NULL && payload != NULL) {
        PyObject *answer =
            PyObject_CallFunction(callable, "sO", kind, payload);
        if (answer == NULL) {
            PyErr_WriteUnraisable(callable);
        }
        Py_XDECREF(answer);
    }
    PyErr_Clear();
    Py_XDECREF(payload);
    Py_XDECREF(callable);
}

static void
drain_warnings(struct cm_session *self)
{
    char *text;
    while (self->deliver != NULL &&
           (text = cm_digest_take_warning(self->digest)) != NULL) {
        deliver(self, "warning",
                PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text),
                                     "replace"));
        cm_free(text);
    }
}

static int
drain_pending(void *context)
{
    if (context == main_session && !main_session->silent) {
        drain_warnings(main_session);
    }
    return 0;
}

/* --- start -------------------------------------------------------------- */

/* torch.cuda._initialized, read from the module's dictionary. */
static bool
accelerator_initialized(void)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *cuda = modules != NULL && PyDict_CheckExact(modules)
                         ? PyDict_GetItemString(modules, "torch.cuda")
                         : NULL;
    PyObject *dict =
        cuda != NULL && PyModule_Check(cuda) ? PyModule_GetDict(cuda) : NULL;
    PyObject *value =
        dict != NULL ? PyDict_GetItemString(dict, "_initialized") : NULL;
    return value == Py_True;
}

static void
notice(struct cm_session *self)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    cm_devices_notice(self->devices);
    if (!self->noticed && accelerator_initialized()) {
        self->noticed = true;
        cm_devices_saw_accelerator(self->devices);
        deliver(self, "notice", Py_NewRef(Py_None));
    }
    PyErr_Restore(type, value, traceback);
}

static int
notice_pending(void *context)
{
    if (context == main_session && !main_session->silent) {
        main_session->notice_pending = false;
        notice(main_session);
    }
    return 0;
}

/* A tensor was made and something still waits to be attached: do it at the
 * next safe point, since memory may run out before any collection. */
static void
on_tensor(void)
{
    struct cm_session *self = main_session;
    if (self == NULL || self->noticed || self->notice_pending ||
        !(cm_devices_learning(self->devices) || accelerator_initialized())) {
        return;
    }
    self->notice_pending = Py_AddPendingCall(notice_pending, self) == 0;
}

static void
on_start(void *context)
{
    struct cm_session *self = context;
    if (!self->silent) {
        notice(self);
    }
}

/* --- garbage ------------------------------------------------------------ */

static void
on_garbage(void *context, const struct cm_garbage *garbage)
{
    struct cm_session *self = context;
    struct cm_heap heap = {0};
    if (self->silent) {
        return;
    }
    uint64_t start = now_ns();
    enum cm_status status =
        cm_freeze(self->freezer, garbage, &in_collection, &heap);
    uint64_t took = now_ns() - start;
    if (took > self->longest_freeze_ns) {
        self->longest_freeze_ns = took;
    }
    self->no_memory += status != CM_OK;
    if (heap.node_count == 0) {
        cm_heap_release(&heap);
    } else if (self->pending_count < MAX_PENDING) {
        heap.trigger = CM_TRIGGER_GC;
        self->pending[self->pending_count++] = heap;
        self->frozen_heaps++;
    } else {
        cm_heap_release(&heap);
        self->dropped_heaps++;
    }
}

/* --- stop --------------------------------------------------------------- */

/* What lives on after the collection was resurrected by a finalizer. */
static void
mark_survivors(struct cm_heap *heap)
{
    for (size_t i = 1; i <= heap->node_count; i++) {
        struct cm_node *node = &heap->nodes[i];
        if (node->storage.index != 0 && cm_tags_survived(node->address)) {
            node->survived = true;
        }
    }
}

static void
digest_now(struct cm_session *self, struct cm_heap *heap)
{
    struct cm_buffer event = {0};
    enum cm_status status = cm_digest_add(self->digest, heap, &event);
    if (status == CM_OK && event.length != 0 && self->observed) {
        deliver(self, "report",
                PyBytes_FromStringAndSize(event.bytes,
                                          (Py_ssize_t)event.length));
    }
    if (status == CM_OK && self->warned) {
        status = cm_digest_write(self->digest, false);
    }
    self->no_memory += status == CM_NO_MEMORY;
    cm_buffer_release(&event);
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
hand_over(struct cm_session *self)
{
    struct cm_heap heaps[MAX_PENDING];
    size_t count = self->pending_count;
    memcpy(heaps, self->pending, count * sizeof(heaps[0]));
    self->pending_count = 0;
    for (size_t i = 0; i < count; i++) {
        mark_survivors(&heaps[i]);
        if (self->observed) {
            digest_now(self, &heaps[i]);
            cm_heap_release(&heaps[i]);
        } else if (!cm_worker_add(self->worker, &heaps[i])) {
            self->dropped_heaps++;
        }
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
    if (counts.bad_walks < 8 || counts.bad_walks < counts.walks / 4 ||
        cm_saveall.unsupported() != NULL) {
        return;
    }
    take_back(self);
    if (put_in(self, &cm_saveall)) {
        self->why = "the collector's lists failed their proof";
    }
    PyErr_Clear();
}

static void
on_stop(void *context, const struct cm_collection *collection)
{
    struct cm_session *self = context;
    if (self->silent) {
        return;
    }
    note_collection(self, collection);
    if (self->pending_count != 0) {
        hand_over(self);
    }
    drain_warnings(self);
    fall_back(self);
}

/* --- the native thread --------------------------------------------------- */

static void
digest_later(void *context, struct cm_heap *heap)
{
    struct cm_session *self = context;
    enum cm_status status = cm_digest_add(self->digest, heap, NULL);
    if (status == CM_OK) {
        status = cm_digest_write(self->digest, false);
    }
    if (status == CM_OK && cm_digest_warns(self->digest)) {
        /* A full queue is no loss: the next stop or the exit says it. */
        (void)Py_AddPendingCall(drain_pending, self);
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
    self->why = "nobody observes";
    self->records = cm_records_new(RECORD_BYTES);
    self->objects =
        self->records != NULL ? cm_objects_new(self->records) : NULL;
    self->devices = cm_devices_new();
    self->digest =
        self->records != NULL ? cm_digest_new(self->records) : NULL;
    self->worker = cm_worker_new(digest_later, self);
    if (self->objects != NULL && self->devices != NULL) {
        self->freezer =
            cm_freezer_new(self->objects, self->devices, self->records);
    }
    if (self->freezer == NULL || self->digest == NULL ||
        self->worker == NULL) {
        cm_session_free(self);
        PyErr_NoMemory();
        return NULL;
    }
    return self;
}

static void
drop_pending(struct cm_session *self)
{
    for (size_t i = 0; i < self->pending_count; i++) {
        cm_heap_release(&self->pending[i]);
    }
    self->pending_count = 0;
}

void
cm_session_free(struct cm_session *self)
{
    if (self == NULL || self->silent) {
        return; /* a forked child gives everything up as it is */
    }
    take_back(self);
    if (main_session == self) {
        main_session = NULL;
        cm_tags_off();
    }
    cm_worker_free(self->worker);
    drop_pending(self);
    cm_digest_free(self->digest);
    cm_freezer_free(self->freezer);
    cm_devices_free(self->devices);
    cm_objects_free(self->objects);
    cm_records_free(self->records);
    Py_CLEAR(self->deliver);
    cm_free(self);
}

int
cm_session_traverse(struct cm_session *self, visitproc visit, void *arg)
{
    if (self != NULL) {
        Py_VISIT(self->deliver);
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
                             .context = self};
    self->interceptor = kind->install(self->module, &sinks);
    self->kind = kind;
    cm_digest_describe(self->digest, "interceptor", kind->name);
    return self->interceptor != NULL;
}

static void
add_counts(struct cm_interceptor_counts *sum,
           const struct cm_interceptor_counts *more)
{
    sum->collections += more->collections;
    sum->walks += more->walks;
    sum->bad_walks += more->bad_walks;
    sum->unfired += more->unfired;
    sum->nested += more->nested;
    sum->too_deep += more->too_deep;
    sum->objects += more->objects;
    sum->no_memory += more->no_memory;
}

static void
take_back(struct cm_session *self)
{
    struct cm_interceptor_counts counts;
    if (self->interceptor != NULL) {
        self->kind->counts(self->interceptor, &counts);
        add_counts(&self->past, &counts);
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
    if (main_session == NULL) {
        main_session = self;
    }
    if (main_session == self && cm_tags_start(self->objects, stacks) == 0) {
        cm_tags_on_tensor(on_tensor);
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
    notice(self);
    Py_RETURN_NONE;
}

PyObject *
cm_session_remove(struct cm_session *self, PyObject *types)
{
    take_back(self);
    if (main_session == self) {
        cm_tags_stop(types);
        main_session = NULL;
        self->noticed = false;
        cm_devices_forget(self->devices);
    }
    drop_pending(self);
    Py_CLEAR(self->deliver);
    Py_RETURN_NONE;
}

PyObject *
cm_session_configure(struct cm_session *self, PyObject *args)
{
    int observed, warned;
    const char *path;
    unsigned long long min_bytes;
    if (!PyArg_ParseTuple(args, "ppzK:configure", &observed, &warned, &path,
                          &min_bytes)) {
        return NULL;
    }
    self->observed = observed != 0;
    self->warned = warned != 0;
    cm_digest_output(self->digest, path, self->warned, min_bytes);
    Py_RETURN_NONE;
}

PyObject *
cm_session_watch(struct cm_session *self, PyObject *args)
{
    const char *names;
    int host_allowed;
    if (!PyArg_ParseTuple(args, "sp:watch", &names, &host_allowed)) {
        return NULL;
    }
    cm_devices_watch(self->devices, names, host_allowed != 0);
    Py_RETURN_NONE;
}

PyObject *
cm_session_describe(struct cm_session *self, PyObject *facts)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!PyDict_Check(facts)) {
        PyErr_SetString(PyExc_TypeError, "a dict was expected");
        return NULL;
    }
    while (PyDict_Next(facts, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key);
        if (name != NULL && PyUnicode_Check(value)) {
            const char *text = PyUnicode_AsUTF8(value);
            cm_digest_describe(self->digest, name, text ? text : "");
        } else if (name != NULL && PyLong_Check(value)) {
            cm_digest_number(self->digest, name, PyLong_AsLongLong(value));
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

PyObject *
cm_session_memory(struct cm_session *self, PyObject *rows)
{
    if (!PyList_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "a list was expected");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        unsigned long long total, allocated, reserved, peak;
        const char *name;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "sKKKK", &name,
                              &total, &allocated, &reserved, &peak)) {
            return NULL;
        }
        struct cm_device_use use = {name, total, allocated, reserved, peak};
        cm_digest_device(self->digest, &use);
    }
    Py_RETURN_NONE;
}

PyObject *
cm_session_suppressions(struct cm_session *self, PyObject *paths)
{
    if (!PyList_Check(paths)) {
        PyErr_SetString(PyExc_TypeError, "a list was expected");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(paths); i++) {
        const char *path = PyUnicode_AsUTF8(PyList_GET_ITEM(paths, i));
        if (path == NULL) {
            return NULL;
        }
        cm_digest_suppress(self->digest, path);
    }
    Py_RETURN_NONE;
}

/* --- looking on demand ----------------------------------------------------- */

static void
on_scanned(void *context, const struct cm_garbage *garbage)
{
    struct cm_session *self = context;
    if (cm_freeze(self->freezer, garbage, &in_scan, &self->scanned) !=
        CM_OK) {
        self->no_memory++;
    }
    self->scanned.trigger = self->trigger;
}

/* [new; raises] the document of what was scanned; None when it is empty and
 * was to be recorded. */
static PyObject *
scanned_document(struct cm_session *self, bool record)
{
    struct cm_buffer event = {0};
    PyObject *result = NULL;
    enum cm_status status;
    Py_BEGIN_ALLOW_THREADS
    status = record ? cm_digest_add(self->digest, &self->scanned, &event)
                    : cm_digest_event(self->digest, &self->scanned, &event);
    Py_END_ALLOW_THREADS
    if (status != CM_OK) {
        PyErr_SetString(PyExc_MemoryError, cm_status_text(status));
    } else if (event.length != 0) {
        result = PyBytes_FromStringAndSize(event.bytes,
                                           (Py_ssize_t)event.length);
    } else {
        result = Py_NewRef(Py_None);
    }
    cm_buffer_release(&event);
    cm_heap_release(&self->scanned);
    return result;
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
    notice(self);
    self->trigger = (enum cm_trigger)trigger;
    cm_heap_release(&self->scanned);
    if (cm_scan(on_scanned, self, NULL) < 0) {
        return PyErr_NoMemory();
    }
    self->scanned.trigger = self->trigger;
    return scanned_document(self, record != 0);
}

PyObject *
cm_session_flush(struct cm_session *self, PyObject *seconds)
{
    double limit = PyFloat_AsDouble(seconds);
    if (limit == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    bool done = true;
    if (!self->silent) {
        Py_BEGIN_ALLOW_THREADS
        done = cm_worker_flush(self->worker, limit);
        Py_END_ALLOW_THREADS
    }
    return PyBool_FromLong(done);
}

PyObject *
cm_session_drain(struct cm_session *self)
{
    if (!self->silent) {
        drain_warnings(self);
    }
    Py_RETURN_NONE;
}

PyObject *
cm_session_close(struct cm_session *self)
{
    enum cm_status status = CM_OK;
    if (!self->silent && self->warned) {
        Py_BEGIN_ALLOW_THREADS
        cm_worker_flush(self->worker, 20.0);
        status = cm_digest_write(self->digest, true);
        Py_END_ALLOW_THREADS
        drain_warnings(self);
    }
    char *path =
        status == CM_OK ? cm_digest_report_path(self->digest) : NULL;
    PyObject *result = path != NULL ? PyUnicode_DecodeFSDefault(path)
                                    : Py_NewRef(Py_None);
    cm_free(path);
    return result;
}

PyObject *
cm_session_accelerator(struct cm_session *self)
{
    cm_devices_saw_accelerator(self->devices);
    Py_RETURN_NONE;
}

PyObject *
cm_session_tag_types(struct cm_session *self, PyObject *types)
{
    if (!PyList_Check(types)) {
        PyErr_SetString(PyExc_TypeError, "a list was expected");
        return NULL;
    }
    for (Py_ssize_t i = 0;
         main_session == self && i < PyList_GET_SIZE(types); i++) {
        PyObject *type = PyList_GET_ITEM(types, i);
        if (PyType_Check(type)) {
            cm_tags_type((PyTypeObject *)type);
        }
    }
    Py_RETURN_NONE;
}

PyObject *
cm_session_forked(struct cm_session *self)
{
    self->silent = true;
    self->observed = self->warned = false;
    if (main_session == self) {
        cm_tags_off();
        main_session = NULL;
    }
    Py_RETURN_NONE;
}

/* --- status ----------------------------------------------------------------- */

static PyObject *
seen_counts(struct cm_session *self, struct cm_interceptor_counts *counts)
{
    struct cm_tags_counts tagged = {0};
    struct cm_digest_counts digested = {0};
    cm_tags_counts(&tagged);
    if (!self->silent) {
        cm_digest_counts(self->digest, &digested);
    }
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsKsd}", "collections", counts->collections, "walks",
        counts->walks, "nested", counts->nested, "objects", counts->objects,
        "heaps", self->frozen_heaps, "findings", digested.findings,
        "reports_written", digested.reports_written, "tensors_made",
        tagged.made, "tensors_live", tagged.live, "longest_pause_ms",
        (double)self->longest_freeze_ns / 1e6);
}

static PyObject *
lost_counts(struct cm_session *self, struct cm_interceptor_counts *counts)
{
    struct cm_tags_counts tagged = {0};
    struct cm_digest_counts digested = {0};
    struct cm_objects_status objects = {0};
    uint64_t dropped = self->dropped_heaps;
    cm_tags_counts(&tagged);
    cm_objects_status(self->objects, &objects);
    if (!self->silent) {
        cm_digest_counts(self->digest, &digested);
    }
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsK}", "bad_walks", counts->bad_walks, "unfired",
        counts->unfired, "too_deep", counts->too_deep, "heaps", dropped,
        "tags", tagged.lost, "write_errors", digested.write_errors,
        "no_memory",
        self->no_memory + counts->no_memory + digested.no_memory,
        "unnamed_edges", objects.unnamed_edges);
}

static PyObject *
layouts(struct cm_session *self)
{
    struct cm_objects_status status = {0};
    cm_objects_status(self->objects, &status);
    return Py_BuildValue("{ssssss}", "stack", status.stack, "attributes",
                         status.attributes, "frames", status.frames);
}

PyObject *
cm_session_status(struct cm_session *self)
{
    struct cm_interceptor_counts counts = {0};
    if (self->interceptor != NULL && !self->silent) {
        self->kind->counts(self->interceptor, &counts);
    }
    add_counts(&counts, &self->past);
    size_t frozen = 0;
    const char *frozen_seen =
        cm_scan_unsupported() == NULL ? cm_scan_frozen(&frozen) : "unknown";
    bool on = self->interceptor != NULL && !self->silent;
    char *path =
        self->silent ? NULL : cm_digest_report_path(self->digest);
    PyObject *result = Py_BuildValue(
        "{sssssNsNsOsNsNszs{sssn}ssss}", "interceptor",
        on ? self->kind->name : "none", "why",
        self->silent ? "a forked child is silent" : self->why, "layouts",
        layouts(self), "frameworks", cm_devices_status(self->devices),
        "accelerator",
        cm_devices_accelerator(self->devices) ? Py_True : Py_False, "seen",
        seen_counts(self, &counts), "lost", lost_counts(self, &counts),
        "report", path, "frozen_objects", "how", frozen_seen, "count",
        (Py_ssize_t)frozen, "allocator_hook",
        "none: allocations are known by their tensors only", "scan",
        cm_scan_unsupported() == NULL ? "read-only scan"
                                      : cm_scan_unsupported());
    cm_free(path);
    return result;
}
