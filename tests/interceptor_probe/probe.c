/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The interceptors and the scan as a Python module of their own, for tests:
 * what their sinks are shown is counted by type name, in native memory.
 * Nothing here is in the wheel. */

#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../detector/alloc.h"
#include "../../pyext/collector/gc_list.h"
#include "../../pyext/collector/interceptor.h"

enum { NAMES_MAX = 512, NAME_BYTES = 48 };

struct tally {
    char names[NAMES_MAX][NAME_BYTES];
    uint64_t counts[NAMES_MAX];
    size_t used;
    uint64_t calls, objects;
};

struct probe {
    struct cm_interceptor *interceptor;
    const struct cm_interceptor_kind *kind;
    PyObject *on_start, *on_stop; /* owned, NULL: none */
    enum cm_heed when_found;      /* what is wanted then */
    bool found;                   /* this collection found something */
    struct tally seen, scanned, frozen;
    uint64_t starts, stops;
    struct cm_collection last;
};

/* Totals of this process, written at its end: shared by all interpreters. */
static struct {
    char path[4096];
    unsigned long long stops, seen;
} process_log;

static void
write_log(void)
{
    FILE *file = fopen(process_log.path, "a");
    if (file == NULL)
        return;
    fprintf(file, "%llu %llu\n", process_log.stops, process_log.seen);
    fclose(file);
}

static size_t
tally_index(struct tally *self, const char *name)
{
    size_t i = 0;
    while (i < self->used
           && strncmp(self->names[i], name, NAME_BYTES - 1) != 0)
        i++;
    if (i == self->used && i < NAMES_MAX) {
        strncpy(self->names[i], name, NAME_BYTES - 1);
        self->used++;
    }
    return i;
}

static void
tally_fill(struct tally *self, const struct cm_garbage *garbage)
{
    const char *last = NULL;
    size_t index = 0;
    self->calls++;
    self->objects += garbage->count;
    for (size_t i = 0; i < garbage->count; i++) {
        const char *name = Py_TYPE(garbage->objects[i])->tp_name;
        if (name != last)
            index = tally_index(self, name);
        last = name;
        if (index < NAMES_MAX)
            self->counts[index]++;
    }
}

/* [new; raises] */
static PyObject *
tally_dict(const struct tally *self)
{
    PyObject *result = PyDict_New();
    for (size_t i = 0; result != NULL && i < self->used; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(self->counts[i]);
        if (count == NULL
            || PyDict_SetItemString(result, self->names[i], count) < 0)
            Py_CLEAR(result);
        Py_XDECREF(count);
    }
    return result;
}

static void
on_garbage(void *context, const struct cm_garbage *garbage)
{
    struct probe *self = context;
    self->found = true;
    tally_fill(&self->seen, garbage);
}

/* "rest": always, but for the stops that a callback waits for; "stops": but for
 * those where something was found; "turns": only as long as nothing is. */
static enum cm_heed
on_heed(void *context, const struct cm_collection *so_far)
{
    struct probe *self = context;
    bool found = self->found;
    self->found = false;
    if (self->on_start != NULL || !so_far->seen
        || (found && self->when_found == CM_HEED_ALL))
        return CM_HEED_ALL;
    if (self->on_stop != NULL || (found && self->when_found == CM_HEED_STOP))
        return CM_HEED_STOP;
    process_log.stops++;
    process_log.seen++;
    return CM_HEED_NOTHING;
}

static void
on_scanned(void *context, const struct cm_garbage *garbage)
{
    struct probe *self = context;
    tally_fill(garbage->frozen ? &self->frozen : &self->scanned, garbage);
}

static void
on_start(void *context)
{
    struct probe *self = context;
    self->starts++;
    if (self->on_start != NULL)
        Py_XDECREF(PyObject_CallNoArgs(self->on_start));
}

static void
on_stop(void *context, const struct cm_collection *collection)
{
    struct probe *self = context;
    self->stops++;
    self->last = *collection;
    process_log.stops++;
    process_log.seen += collection->seen;
    if (self->on_stop != NULL) {
        Py_XDECREF(PyObject_CallFunction(
            self->on_stop, "iLi", collection->generation,
            (long long)collection->collected, (int)collection->seen));
    }
}

static struct probe *
state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

/* [none; never] */
static void
detach(struct probe *self)
{
    struct cm_interceptor *interceptor = self->interceptor;
    self->interceptor = NULL;
    if (interceptor != NULL)
        self->kind->remove(interceptor);
    Py_CLEAR(self->on_start);
    Py_CLEAR(self->on_stop);
}

static PyObject *
probe_install(PyObject *module, PyObject *args)
{
    struct probe *self = state_of(module);
    const char *name;
    PyObject *start = Py_None, *stop = Py_None;
    if (!PyArg_ParseTuple(args, "s|OO", &name, &start, &stop))
        return NULL;
    detach(self);
    self->kind = strcmp(name, "saveall") == 0 ? &cm_saveall : &cm_sentinel;
    self->on_start = start == Py_None ? NULL : Py_NewRef(start);
    self->on_stop = stop == Py_None ? NULL : Py_NewRef(stop);
    self->when_found = strcmp(name, "rest") == 0    ? CM_HEED_NOTHING
                       : strcmp(name, "stops") == 0 ? CM_HEED_STOP
                                                    : CM_HEED_ALL;
    struct cm_sinks sinks = {
        .garbage = on_garbage,
        .stop = on_stop,
        .start = on_start,
        .heed = strcmp(name, "sentinel") != 0 ? on_heed : NULL,
        .context = self,
    };
    self->interceptor = self->kind->install(module, &sinks);
    if (self->interceptor == NULL)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
probe_remove(PyObject *module, PyObject *unused)
{
    (void)unused;
    detach(state_of(module));
    Py_RETURN_NONE;
}

static PyObject *
probe_counts(PyObject *module, PyObject *unused)
{
    struct probe *self = state_of(module);
    (void)unused;
    if (self->interceptor == NULL)
        Py_RETURN_NONE;
    struct cm_interceptor_counts counts = {0};
    self->kind->counts(self->interceptor, &counts);
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsKsKsKsOsOsOsO}", "collections", counts.collections,
        "unheard", counts.unheard, "walks", counts.walks, "bad_walks",
        counts.bad_walks, "unfired", counts.unfired, "lost_stops",
        counts.lost_stops, "stood_aside", counts.stood_aside, "nested",
        counts.nested, "too_deep", counts.too_deep, "objects", counts.objects,
        "no_memory", counts.no_memory, "attached",
        counts.attached ? Py_True : Py_False, "first",
        counts.first ? Py_True : Py_False, "flags",
        counts.flags ? Py_True : Py_False, "resting",
        counts.resting ? Py_True : Py_False);
}

/* As at the end of an iteration. */
static PyObject *
probe_check(PyObject *module, PyObject *unused)
{
    struct probe *self = state_of(module);
    (void)unused;
    if (self->interceptor != NULL && self->kind->check != NULL)
        self->kind->check(self->interceptor);
    Py_RETURN_NONE;
}

/* What the garbage sink saw since the last call of this. */
static PyObject *
probe_take(PyObject *module, PyObject *unused)
{
    struct probe *self = state_of(module);
    (void)unused;
    PyObject *result = tally_dict(&self->seen);
    memset(&self->seen, 0, sizeof(self->seen));
    return result;
}

static PyObject *
probe_calls(PyObject *module, PyObject *unused)
{
    struct probe *self = state_of(module);
    (void)unused;
    return Py_BuildValue("KKK", self->starts, self->seen.calls, self->stops);
}

static PyObject *
probe_last(PyObject *module, PyObject *unused)
{
    struct probe *self = state_of(module);
    (void)unused;
    return Py_BuildValue("{sisKsLsO}", "generation", self->last.generation,
                         "duration_ns", self->last.duration_ns, "collected",
                         (long long)self->last.collected, "seen",
                         self->last.seen ? Py_True : Py_False);
}

/* -> (objects scanned, {type: dead}, {type: dead but frozen}, negative, by
 * heads) */
static PyObject *
probe_scan(PyObject *module, PyObject *unused)
{
    struct probe *self = state_of(module);
    struct cm_scan_counts counts = {0};
    (void)unused;
    memset(&self->scanned, 0, sizeof(self->scanned));
    memset(&self->frozen, 0, sizeof(self->frozen));
    if (cm_scan_unsupported() != NULL) {
        PyErr_SetString(PyExc_RuntimeError, cm_scan_unsupported());
        return NULL;
    }
    if (cm_scan_counted(on_scanned, self, &counts) < 0)
        return PyErr_NoMemory();
    return Py_BuildValue("nNNKO", (Py_ssize_t)counts.objects,
                         tally_dict(&self->scanned), tally_dict(&self->frozen),
                         counts.negative,
                         counts.by_heads ? Py_True : Py_False);
}

static PyObject *
probe_frozen(PyObject *module, PyObject *unused)
{
    size_t count = 0;
    (void)module;
    (void)unused;
    const char *how = cm_scan_frozen(&count);
    return Py_BuildValue("sn", how, (Py_ssize_t)count);
}

static PyObject *
probe_fail_at(PyObject *module, PyObject *args)
{
    long nth;
    int from_then_on;
    (void)module;
    if (!PyArg_ParseTuple(args, "lp", &nth, &from_then_on))
        return NULL;
    cm_alloc_fail_at(nth, from_then_on);
    Py_RETURN_NONE;
}

static PyObject *
probe_live(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(cm_alloc_live());
}

/* Appends "stops seen" to this file when the process ends. */
static PyObject *
probe_log(PyObject *module, PyObject *args)
{
    const char *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "s", &path))
        return NULL;
    if (process_log.path[0] == '\0')
        atexit(write_log);
    strncpy(process_log.path, path, sizeof(process_log.path) - 1);
    Py_RETURN_NONE;
}

static PyObject *
probe_unsupported(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_BuildValue("zzz", cm_sentinel.unsupported(),
                         cm_saveall.unsupported(), cm_scan_unsupported());
}

#ifndef Py_GIL_DISABLED
/* Builds a list of a head and `count` nodes, breaks it as told, and reads it.
 * -> objects read, or the status's text. */
static PyObject *
probe_read_list(PyObject *module, PyObject *args)
{
    const char *defect;
    struct {
        struct cm_gc_head head;
        PyObject object;
    } nodes[6] = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "s", &defect))
        return NULL;
    for (size_t i = 0; i < 6; i++) { /* 0 is the head, 1 first, 4 the twin */
        uintptr_t collecting = i == 0 ? 0 : CM_GC_COLLECTING;
        nodes[i].head.next = (uintptr_t)&nodes[(i + 1) % 6].head;
        nodes[i].head.prev = (uintptr_t)&nodes[(i + 5) % 6].head | collecting;
    }
    PyObject *twin = &nodes[4].object;
    if (strcmp(defect, "two heads") == 0)
        nodes[3].head.prev &= ~CM_GC_COLLECTING;
    else if (strcmp(defect, "no head") == 0)
        nodes[0].head.prev |= CM_GC_COLLECTING;
    else if (strcmp(defect, "prev") == 0)
        nodes[3].head.prev = (uintptr_t)&nodes[5].head | CM_GC_COLLECTING;
    else if (strcmp(defect, "loop") == 0)
        nodes[5].head.next = (uintptr_t)&nodes[3].head;
    else if (strcmp(defect, "null") == 0)
        nodes[5].head.next = 0;
    else if (strcmp(defect, "no twin") == 0)
        twin = NULL;
    struct cm_objects_array read = {0};
    struct cm_type_set types;
    enum cm_status status =
        cm_gc_read_garbage(&nodes[1].object, twin, &read, &types);
    size_t count = read.count;
    cm_objects_array_release(&read);
    if (status != CM_OK)
        return PyUnicode_FromString(cm_status_text(status));
    return PyLong_FromSize_t(count);
}
#endif

/* A list of types -> (those that a set of them has, whether it is full). */
static PyObject *
probe_type_set(PyObject *module, PyObject *types)
{
    struct cm_type_set set = {0};
    PyObject *kept = PyList_New(0);
    (void)module;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++)
        cm_type_set_add(&set, (PyTypeObject *)PyList_GET_ITEM(types, i));
    for (size_t i = 0; i < CM_TYPE_SET_SIZE; i++) {
        if (set.items[i] != NULL)
            PyList_Append(kept, (PyObject *)set.items[i]);
    }
    return Py_BuildValue("NO", kept, set.full ? Py_True : Py_False);
}

static PyMethodDef methods[] = {
    {"install", probe_install, METH_VARARGS, NULL},
    {"remove", probe_remove, METH_NOARGS, NULL},
    {"counts", probe_counts, METH_NOARGS, NULL},
    {"check", probe_check, METH_NOARGS, NULL},
    {"take", probe_take, METH_NOARGS, NULL},
    {"calls", probe_calls, METH_NOARGS, NULL},
    {"last", probe_last, METH_NOARGS, NULL},
    {"scan", probe_scan, METH_NOARGS, NULL},
    {"type_set", probe_type_set, METH_O, NULL},
    {"frozen", probe_frozen, METH_NOARGS, NULL},
    {"log", probe_log, METH_VARARGS, NULL},
    {"fail_at", probe_fail_at, METH_VARARGS, NULL},
    {"live", probe_live, METH_NOARGS, NULL},
    {"unsupported", probe_unsupported, METH_NOARGS, NULL},
#ifndef Py_GIL_DISABLED
    {"read_list", probe_read_list, METH_VARARGS, NULL},
#endif
    {0},
};

static void
probe_free(void *module)
{
    struct probe *self = state_of(module);
    if (self != NULL)
        detach(self);
}

static PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "interceptor_probe",
    .m_size = sizeof(struct probe),
    .m_methods = methods,
    .m_slots = slots,
    .m_free = probe_free,
};

PyMODINIT_FUNC PyInit_interceptor_probe(void);

PyMODINIT_FUNC
PyInit_interceptor_probe(void)
{
    return PyModuleDef_Init(&definition);
}
