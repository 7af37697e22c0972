/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The extension module cumem._core: registration only.  Multi-phase
 * initialisation, one session per interpreter, freed with the module. */

#include <Python.h>

#include <string.h>

#include "../../detector/alloc.h"
#include "../../detector/hot.h"
#include "../../reports/buffer.h"
#include "../allocations/allocations.h"
#include "../frozen/autograd_behind.h"
#include "../torch/autograd_layout.h"
#include "block_list.h"
#include "../session/copies.h"
#include "../session/demand.h"
#include "../frameworks/devices.h"
#include "documents.h"
#include "../allocations/driver_events.h"
#include "../allocations/private_pools.h"
#include "../torch/forward.h"
#include "growers.h"
#include "../session/growth_look.h"
#include "instances.h"
#include "../tables/interrupts.h"
#include "../frameworks/jax_reader.h"
#include "memory.h"
#include "../session/observe_garbage.h"
#include "../session/session.h"
#include "../session/sighting.h"
#include "../session/steps.h"
#include "../torch/torch_layout.h"
#include "../session/touched.h"
#include "why_alive.h"

struct module_state {
    struct cm_session *session; /* owned */
};

static struct cm_session *
session_of(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);
    return state->session;
}

#define SESSION_CALL(name)                                                    \
    static PyObject *core_##name(PyObject *module, PyObject *argument)        \
    {                                                                         \
        return cm_session_##name(session_of(module), argument);               \
    }
#define SESSION_CALL_ALONE(name)                                              \
    static PyObject *core_##name(PyObject *module, PyObject *unused)          \
    {                                                                         \
        (void)unused;                                                         \
        return cm_session_##name(session_of(module));                         \
    }

SESSION_CALL(install)
SESSION_CALL(remove)
SESSION_CALL(configure)
SESSION_CALL(watch)
SESSION_CALL(describe)
SESSION_CALL(show_texts)
SESSION_CALL(memory)
SESSION_CALL(exhausted)
SESSION_CALL(held)
SESSION_CALL(add_site)
SESSION_CALL(categories)
SESSION_CALL(growth)
SESSION_CALL(origin)
SESSION_CALL(alike)
SESSION_CALL(touch)
SESSION_CALL(suppressions)
SESSION_CALL(scan)
SESSION_CALL(looks)
SESSION_CALL(looked)
SESSION_CALL(flush)
SESSION_CALL(event_document)
SESSION_CALL(event_for)
SESSION_CALL(tag_types)
SESSION_CALL(out_of_memory)
SESSION_CALL(allow_collections)

/* The value at the key, where it is referred to from this dict alone. */
static PyObject *
core_unshared(PyObject *module, PyObject *args)
{
    PyObject *of, *key;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O:unshared", &PyDict_Type, &of, &key)) {
        return NULL;
    }
    PyObject *value = PyDict_GetItemWithError(of, key);
    if (value == NULL && PyErr_Occurred()) {
        return NULL;
    }
    bool alone = value != NULL && Py_REFCNT(value) == 1;
    return Py_NewRef(alone ? value : Py_None);
}

static PyObject *
core_why_alive(PyObject *module, PyObject *args)
{
    return cm_why_alive(session_of(module), args);
}

static PyObject *
core_holders(PyObject *module, PyObject *args)
{
    return cm_growers_holders(session_of(module), args);
}

SESSION_CALL_ALONE(exhausted_all)
SESSION_CALL_ALONE(drain)
SESSION_CALL_ALONE(step)
SESSION_CALL_ALONE(document)
SESSION_CALL_ALONE(growing)
SESSION_CALL_ALONE(attached)
SESSION_CALL_ALONE(ask_objects)
SESSION_CALL_ALONE(held_tensors)
SESSION_CALL_ALONE(touched)
SESSION_CALL_ALONE(blocks)
SESSION_CALL_ALONE(close)
SESSION_CALL_ALONE(status)
SESSION_CALL_ALONE(accelerator)
SESSION_CALL_ALONE(forked)
SESSION_CALL_ALONE(hold_collections)

CM_HOT static PyObject *
core_stepped(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = PyModule_GetState(module);
    return cm_session_stepped(state->session, args, count);
}

/* [0 or -1; raises] What is handled now is raised again, if it is the
 * program's. */
static int
let_through(PyObject *handled, int by_observer)
{
    if (handled == NULL || !cm_interrupts_raised(handled, by_observer != 0)) {
        return 0;
    }
    PyErr_SetObject((PyObject *)Py_TYPE(handled), handled);
    return -1;
}

static PyObject *
core_let_through(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *handled = PyErr_GetHandledException();
    int done = let_through(handled, false);
    Py_XDECREF(handled);
    return done == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
core_unraisable(PyObject *module, PyObject *args)
{
    PyObject *where;
    int by_observer = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "O|p:unraisable", &where, &by_observer)) {
        return NULL;
    }
    PyObject *handled = PyErr_GetHandledException();
    int done = let_through(handled, by_observer);
    if (done == 0 && handled != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(handled), handled);
        PyErr_WriteUnraisable(where);
    }
    Py_XDECREF(handled);
    return done == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef methods[] = {
    {"install", core_install, METH_VARARGS, NULL},
    {"remove", core_remove, METH_O, NULL},
    {"configure", core_configure, METH_VARARGS, NULL},
    {"watch", core_watch, METH_VARARGS, NULL},
    {"describe", core_describe, METH_O, NULL},
    {"show_texts", core_show_texts, METH_O, NULL},
    {"memory", core_memory, METH_O, NULL},
    {"exhausted", core_exhausted, METH_VARARGS, NULL},
    {"exhausted_all", core_exhausted_all, METH_NOARGS, NULL},
    {"suppressions", core_suppressions, METH_O, NULL},
    {"scan", core_scan, METH_VARARGS, NULL},
    {"looks", core_looks, METH_VARARGS, NULL},
    {"looked", core_looked, METH_VARARGS, NULL},
    {"demand", cm_demand, METH_O, NULL},
    {"flush", core_flush, METH_O, NULL},
    {"holders", core_holders, METH_VARARGS, NULL},
    {"why_alive", core_why_alive, METH_VARARGS, NULL},
    {"drain", core_drain, METH_NOARGS, NULL},
    {"close", core_close, METH_NOARGS, NULL},
    {"status", core_status, METH_NOARGS, NULL},
    {"accelerator", core_accelerator, METH_NOARGS, NULL},
    {"tag_types", core_tag_types, METH_O, NULL},
    {"forked", core_forked, METH_NOARGS, NULL},
    {"unraisable", core_unraisable, METH_VARARGS, NULL},
    {"let_through", core_let_through, METH_NOARGS, NULL},
    {"out_of_memory", core_out_of_memory, METH_VARARGS, NULL},
    {"hold_collections", core_hold_collections, METH_NOARGS, NULL},
    {"allow_collections", core_allow_collections, METH_VARARGS, NULL},
    {"observe_garbage", cm_observe_garbage, METH_O, NULL},
    {"step", core_step, METH_NOARGS, NULL},
    {"stepped", (PyCFunction)(void (*)(void))core_stepped, METH_FASTCALL,
     NULL},
    {"held", core_held, METH_O, NULL},
    {"blocks", core_blocks, METH_NOARGS, NULL},
    {"process_use", cm_process_use_of, METH_O, NULL},
    {"ask_objects", core_ask_objects, METH_NOARGS, NULL},
    {"objects_use", cm_objects_use_of, METH_O, NULL},
    {"blocks_use", cm_blocks_use_of, METH_NOARGS, NULL},
    {"pools", cm_private_pools_set, METH_O, NULL},
    {"forward_probe", cm_forward_probe, METH_O, NULL},
    {"forward_of", cm_forward_of, METH_O, NULL},
    {"forward_running", cm_forward_running, METH_NOARGS, NULL},
    {"autograd_behind", cm_autograd_behind_of, METH_VARARGS, NULL},
    {"autograd_probe", cm_autograd_probe, METH_VARARGS, NULL},
    {"seed_blocks", cm_allocations_seed, METH_O, NULL},
    {"clear_blocks", cm_allocations_clear, METH_NOARGS, NULL},
    {"silent", cm_allocations_silent, METH_VARARGS, NULL},
    {"recorder", cm_allocations_recorder, METH_VARARGS, NULL},
    {"add_site", core_add_site, METH_O, NULL},
    {"attached", core_attached, METH_NOARGS, NULL},
    {"document", core_document, METH_NOARGS, NULL},
    {"categories", core_categories, METH_O, NULL},
    {"growth", core_growth, METH_VARARGS, NULL},
    {"origin", core_origin, METH_O, NULL},
    {"alike", core_alike, METH_VARARGS, NULL},
    {"touch", core_touch, METH_O, NULL},
    {"touched", core_touched, METH_NOARGS, NULL},
    {"growing", core_growing, METH_NOARGS, NULL},
    {"held_tensors", core_held_tensors, METH_NOARGS, NULL},
    {"instances", cm_instances, METH_O, NULL},
    {"driver", cm_driver_events_ask, METH_VARARGS, NULL},
    {"torch_probe", cm_torch_probe, METH_VARARGS, NULL},
    {"jax_probe", cm_jax_probe, METH_VARARGS, NULL},
    {"text", cm_document_text, METH_VARARGS, NULL},
    {"page", cm_document_page, METH_O, NULL},
    {"event_document", core_event_document, METH_O, NULL},
    {"event_key", cm_sighting_key, METH_O, NULL},
    {"unshared", core_unshared, METH_VARARGS, NULL},
    {"event_for", core_event_for, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int
core_exec(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);
    state->session = cm_session_new(module);
    return state->session != NULL ? 0 : -1;
}

static int
core_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct module_state *state = PyModule_GetState(module);
    return state != NULL ? cm_session_traverse(state->session, visit, arg) : 0;
}

static void
core_free(void *module)
{
    struct module_state *state = PyModule_GetState(module);
    if (state != NULL) {
        cm_session_free(state->session);
        state->session = NULL;
    }
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, core_exec},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "cumem._core",
    .m_doc = "The native core of cumem; use the package, not this.",
    .m_size = sizeof(struct module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = core_traverse,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
