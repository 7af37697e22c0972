/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The ways into a session from Python that only pass something on: settings,
 * facts, looking on demand, waiting. */

#include "session_private.h"

#include "../detector/alloc.h"
#include "allocations.h"
#include "fate.h"
#include "freeze.h"
#include "sighting.h"
#include "steps.h"
#include "tags.h"
#include "uncollectable.h"

/* The user asked, or memory ran out: there is time to look at all of it. */
static const struct cm_freeze_bounds in_scan = {.max_objects = 4000000,
                                                .max_nodes = 400000,
                                                .max_time_ns =
                                                    UINT64_C(10000000000)};

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
    if (cm_session_is_main(self)) {
        cm_tags_blocks_known(cm_allocations_told()
                             && !cm_devices_host_counts(self->devices));
    }
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
        }
        else if (name != NULL && PyLong_Check(value)) {
            cm_digest_number(self->digest, name, PyLong_AsLongLong(value));
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
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

/* Called up to three times: with what gc.freeze() keeps, and with what no
 * collection frees. */
static void
on_scanned(void *context, const struct cm_garbage *garbage)
{
    struct cm_session *self = context;
    struct cm_heap heap = {0};
    if (cm_freeze(self->freezer, garbage, &in_scan, &heap) != CM_OK) {
        self->no_memory++;
    }
    if (heap.node_count == 0 || self->scanned_count == CM_MAX_SCANNED) {
        cm_heap_release(&heap);
        return;
    }
    heap.trigger = self->trigger;
    heap.iteration = self->iteration;
    cm_allocations_explain(&heap, self->records);
    cm_fate_foretell(&heap, self->devices, cm_freezer_knows_dead,
                     self->freezer);
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
    self->trigger = (enum cm_trigger)trigger;
#ifndef Py_GIL_DISABLED
    cm_scan_look_further(cm_uncollectable_find);
#endif
    PyObject *result =
        cm_scan(on_scanned, self, NULL) == 0
            ? cm_sighting_new(self->module, self->digest, self->scanned,
                              self->scanned_count, record != 0)
            : PyErr_NoMemory();
    release_scanned(self);
    if (record != 0
        && self->warned) { /* also when memory ran out for live data */
        Py_BEGIN_ALLOW_THREADS(void)
        !cm_digest_write(self->digest, true);
        Py_END_ALLOW_THREADS
    }
    return result;
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
        cm_session_drain_warnings(self);
    }
    Py_RETURN_NONE;
}

PyObject *
cm_session_close(struct cm_session *self)
{
    enum cm_status status = CM_OK;
    cm_steps_tell(self);
    if (!self->silent && self->warned) {
        Py_BEGIN_ALLOW_THREADS
        cm_worker_flush(self->worker, 20.0);
        status = cm_digest_write(self->digest, true);
        Py_END_ALLOW_THREADS
        cm_session_drain_warnings(self);
    }
    char *path = status == CM_OK ? cm_digest_report_path(self->digest) : NULL;
    PyObject *result =
        path != NULL ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(Py_None);
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
         cm_session_is_main(self) && i < PyList_GET_SIZE(types); i++) {
        PyObject *type = PyList_GET_ITEM(types, i);
        if (PyType_Check(type)) {
            cm_tags_torch_type((PyTypeObject *)type);
        }
    }
    Py_RETURN_NONE;
}
