/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The switch is one flag, which does not say who has set it.  So gc.enable(),
 * gc.disable() and gc.isenabled() are ours for as long as it is held
 * (tables/method.h): the functions are the same objects, and whoever replaced
 * them is called as before.  One interpreter at a time has them; what another
 * one's program asks meanwhile goes to gc's own.  C code that sets the flag
 * itself (PyGC_Disable()) is not heard. */

#include "gc_switch.h"

#include <string.h>

#include "../tables/method.h"

enum asked { ENABLE, DISABLE, IS_ENABLED, ASKED };

static struct {
    struct cm_gc_switch *held;   /* borrowed; NULL: by nobody */
    PyMethodDef *methods[ASKED]; /* borrowed; NULL: not replaced */
    PyCFunction originals[ASKED];
} gc;

/* NULL: not the caller's. */
static struct cm_gc_switch *
held_here(void)
{
    struct cm_gc_switch *held = gc.held;
    return held != NULL && held->interpreter == PyInterpreterState_Get()
               ? held
               : NULL;
}

/* [new] */
static PyObject *
set_wanted(enum asked asked, PyObject *module, PyObject *none)
{
    struct cm_gc_switch *held = held_here();
    if (held == NULL) {
        return gc.originals[asked](module, none);
    }
    held->wanted = asked == ENABLE;
    Py_RETURN_NONE;
}

static PyObject *
enable(PyObject *module, PyObject *none)
{
    return set_wanted(ENABLE, module, none);
}

static PyObject *
disable(PyObject *module, PyObject *none)
{
    return set_wanted(DISABLE, module, none);
}

static PyObject *
is_enabled(PyObject *module, PyObject *none)
{
    struct cm_gc_switch *held = held_here();
    return held == NULL ? gc.originals[IS_ENABLED](module, none)
                        : PyBool_FromLong(held->wanted);
}

static const struct {
    const char *name;
    PyCFunction ours;
} replaced[ASKED] = {
    [ENABLE] = {"enable", enable},
    [DISABLE] = {"disable", disable},
    [IS_ENABLED] = {"isenabled", is_enabled},
};

/* Borrowed; NULL: gc is none that we know. */
static PyMethodDef *
methods_of_gc(void)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = modules != NULL && PyDict_CheckExact(modules)
                           ? PyDict_GetItemString(modules, "gc")
                           : NULL;
    PyModuleDef *definition = module != NULL && PyModule_CheckExact(module)
                                  ? PyModule_GetDef(module)
                                  : NULL;
    return definition != NULL ? definition->m_methods : NULL;
}

static void
replace(PyMethodDef *method)
{
    for (int i = 0; i < ASKED; i++) {
        if (strcmp(method->ml_name, replaced[i].name) == 0
            && method->ml_flags == METH_NOARGS
            && cm_method_replace(method, replaced[i].ours, &gc.originals[i])) {
            gc.methods[i] = method;
        }
    }
}

static void
take_functions(struct cm_gc_switch *self)
{
    PyMethodDef *method = gc.held == NULL ? methods_of_gc() : NULL;
    for (; method != NULL && method->ml_name != NULL; method++) {
        replace(method);
        gc.held = self;
    }
}

static void
give_functions(const struct cm_gc_switch *self)
{
    for (int i = 0; gc.held == self && i < ASKED; i++) {
        if (gc.methods[i] != NULL) {
            gc.methods[i]->ml_meth = gc.originals[i];
            gc.methods[i] = NULL;
        }
    }
    gc.held = gc.held == self ? NULL : gc.held;
}

void
cm_gc_switch_hold(struct cm_gc_switch *self)
{
    if (self->holders++ == 0) {
        self->interpreter = PyInterpreterState_Get();
        self->wanted = PyGC_Disable() != 0;
        take_functions(self);
    }
}

static void
set_free(struct cm_gc_switch *self)
{
    give_functions(self);
    if (self->wanted) {
        PyGC_Enable();
    }
}

void
cm_gc_switch_give(struct cm_gc_switch *self)
{
    if (self->holders != 0 && --self->holders == 0) {
        set_free(self);
    }
}

void
cm_gc_switch_drop(struct cm_gc_switch *self)
{
    if (self->holders != 0) {
        self->holders = 0;
        set_free(self);
    }
}
