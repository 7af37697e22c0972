/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The ways into a session from Python that only pass something on: settings,
 * facts, waiting. */

#include "../session/session_private.h"
#include "../session/sighting.h"

#include "../allocations/allocations.h"
#include "../session/steps.h"
#include "../frameworks/tags.h"

/* As PyUnicode_FSConverter(), which it asks; NULL for None. */
static int
path_or_none(PyObject *path, void *result)
{
    if (path == Py_None) {
        *(PyObject **)result = NULL;
        return 1;
    }
    return PyUnicode_FSConverter(path, result);
}

PyObject *
cm_session_configure(struct cm_session *self, PyObject *args)
{
    int observed, warned;
    PyObject *path = NULL;
    unsigned long long min_bytes;
    if (!PyArg_ParseTuple(args, "ppO&K:configure", &observed, &warned,
                          path_or_none, &path, &min_bytes)) {
        return NULL;
    }
    self->observed = observed != 0;
    self->warned = warned != 0;
    cm_digest_output(self->digest, path ? PyBytes_AS_STRING(path) : NULL,
                     self->warned, min_bytes);
    Py_XDECREF(path);
    Py_RETURN_NONE;
}

PyObject *
cm_session_watch(struct cm_session *self, PyObject *args)
{
    const char *names;
    int host_allowed, brief;
    if (!PyArg_ParseTuple(args, "spp:watch", &names, &host_allowed, &brief)) {
        return NULL;
    }
    self->brief = brief != 0;
    cm_devices_watch(self->devices, names, host_allowed != 0);
    cm_session_know_blocks(self);
    Py_RETURN_NONE;
}

PyObject *
cm_session_show_texts(struct cm_session *self, PyObject *on)
{
    cm_objects_show_texts(self->objects, on == Py_True);
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
        PyObject *path;
        if (!PyUnicode_FSConverter(PyList_GET_ITEM(paths, i), &path)) {
            return NULL;
        }
        cm_digest_suppress(self->digest, PyBytes_AS_STRING(path));
        Py_DECREF(path);
    }
    Py_RETURN_NONE;
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
cm_session_event_document(struct cm_session *self, PyObject *event)
{
    if (!self->silent) {
        cm_steps_tell(self); /* what no collection has told */
    }
    return cm_sighting_document(self->module, event);
}

PyObject *
cm_session_event_for(struct cm_session *self, PyObject *args)
{
    PyObject *event;
    unsigned long long min_bytes;
    struct cm_sighting_wish wish = {.devices = self->devices,
                                    .records = self->records};
    if (!PyArg_ParseTuple(args, "OsK:event_for", &event, &wish.names,
                          &min_bytes)) {
        return NULL;
    }
    wish.min_bytes = min_bytes;
    return cm_sighting_select(event, &wish);
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
    return status == CM_OK ? cm_session_report_path(self) : Py_NewRef(Py_None);
}

PyObject *
cm_session_out_of_memory(struct cm_session *self, PyObject *args)
{
    cm_session_deliver(self, "out of memory", Py_NewRef(args));
    Py_RETURN_NONE;
}

PyObject *
cm_session_hold_collections(struct cm_session *self)
{
    cm_gc_switch_hold(&self->gc_switch);
    Py_RETURN_NONE;
}

PyObject *
cm_session_allow_collections(struct cm_session *self, PyObject *args)
{
    (void)args; /* those of an __exit__ */
    cm_gc_switch_give(&self->gc_switch);
    Py_RETURN_NONE;
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
