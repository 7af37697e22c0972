/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The handle is a capsule that owns an interceptor and the observer; the
 * callable that the user gets is a C function bound to it.  The interceptor
 * stays until the callable is called, as with torch's. */

#include "observe_garbage.h"

#include "../../detector/alloc.h"
#include "../collector/interceptor.h"
#include "../tables/interrupts.h"

static const char capsule_name[] = "cumem._core.garbage_observer";

struct garbage_observer {
    struct cm_interceptor *interceptor; /* owned; NULL: taken back */
    PyObject *callable;                 /* owned */
    bool calling; /* the observer may collect: not told of that one */
};

static void
show(void *context, const struct cm_garbage *garbage)
{
    struct garbage_observer *self = context;
    if (self->callable == NULL || self->calling || garbage->count == 0) {
        return;
    }
    PyObject *list = PyList_New((Py_ssize_t)garbage->count);
    for (size_t i = 0; list != NULL && i < garbage->count; i++) {
        PyList_SET_ITEM(list, (Py_ssize_t)i, Py_NewRef(garbage->objects[i]));
    }
    PyObject *callable = Py_NewRef(self->callable);
    self->calling = true;
    cm_interrupts_enter();
    PyObject *answer =
        list != NULL ? PyObject_CallOneArg(callable, list) : NULL;
    self->calling = false;
    if (answer == NULL && !cm_interrupts_keep(true)) {
        PyErr_WriteUnraisable(callable);
    }
    cm_interrupts_leave();
    Py_XDECREF(answer);
    Py_XDECREF(list);
    Py_DECREF(callable);
}

static void
over(void *context, const struct cm_collection *collection)
{
    (void)context;
    (void)collection;
}

static void
take_back(struct garbage_observer *self)
{
    struct cm_interceptor *interceptor = self->interceptor;
    self->interceptor = NULL;
    if (interceptor != NULL) {
        cm_saveall.remove(interceptor);
    }
    Py_CLEAR(self->callable);
}

/* [new; never] */
static PyObject *
remove_observer(PyObject *capsule, PyObject *unused)
{
    (void)unused;
    struct garbage_observer *self =
        PyCapsule_GetPointer(capsule, capsule_name);
    if (self != NULL) {
        take_back(self);
    }
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyMethodDef remove_method = {"remove", remove_observer, METH_NOARGS,
                                    "Take the observer back."};

/* A handle that is dropped leaves its observer in place. */
static void
forget(PyObject *capsule)
{
    (void)capsule;
}

PyObject *
cm_observe_garbage(PyObject *module, PyObject *callable)
{
    struct garbage_observer *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *result = NULL;
    PyObject *capsule = PyCapsule_New(self, capsule_name, forget);
    if (capsule == NULL) {
        cm_free(self);
        return NULL;
    }
    struct cm_sinks sinks = {.garbage = show, .stop = over, .context = self};
    self->callable = Py_NewRef(callable);
    self->interceptor = cm_saveall.install(module, &sinks);
    if (self->interceptor != NULL) {
        result = PyCFunction_New(&remove_method, capsule);
    }
    if (result == NULL) {
        take_back(self);
    }
    Py_DECREF(capsule);
    return result;
}
