/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The C functions behind torch.from_dlpack(), as_tensor() and asarray() are
 * ours while blocks are heard, and say to the tags that what is made meanwhile
 * asks for a stack.  Nothing else is called on the usual way of a tensor. */

#include "foreign.h"

#include <Python.h>

#include <stdbool.h>
#include <string.h>

#include "../tables/method.h"
#include "../frameworks/tags.h"

enum { FROM_DLPACK, AS_TENSOR, ASARRAY, FUNCTIONS };

static struct {
    PyMethodDef *method; /* borrowed from torch, which is never unloaded */
    PyCFunction original;
} functions[FUNCTIONS]; /* Guarded by the GIL. */

static PyObject *
call(int which, PyObject *self, PyObject *args, PyObject *keywords)
{
    union {
        PyCFunction plain;
        PyCFunctionWithKeywords full;
    } original = {.plain = functions[which].original};
    cm_tags_foreign(true);
    PyObject *result = which == FROM_DLPACK
                           ? original.plain(self, args)
                           : original.full(self, args, keywords);
    cm_tags_foreign(false);
    return result;
}

/* [new; raises] as torch's own, all three. */
static PyObject *
from_dlpack(PyObject *self, PyObject *capsule)
{
    return call(FROM_DLPACK, self, capsule, NULL);
}

static PyObject *
as_tensor(PyObject *self, PyObject *args, PyObject *keywords)
{
    return call(AS_TENSOR, self, args, keywords);
}

static PyObject *
asarray(PyObject *self, PyObject *args, PyObject *keywords)
{
    return call(ASARRAY, self, args, keywords);
}

static PyCFunction
plain(PyCFunctionWithKeywords function)
{
    union {
        PyCFunctionWithKeywords full;
        PyCFunction plain;
    } same = {.full = function};
    return same.plain;
}

/* Borrowed; NULL: torch._C has none of this name. */
static PyObject *
find(const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = PyDict_GetItemString(modules, "torch._C");
    return module != NULL && PyModule_Check(module)
               ? PyDict_GetItemString(PyModule_GetDict(module), name)
               : NULL;
}

static bool
is_same(const PyMethodDef *method, const char *name, int flags)
{
    return strcmp(method->ml_name, name) == 0
           && (method->ml_flags & ~METH_STATIC) == flags;
}

/* Borrowed; NULL: not the function that we know. */
static PyMethodDef *
find_function(const char *name)
{
    PyObject *function = find(name);
    PyMethodDef *method = function != NULL && PyCFunction_CheckExact(function)
                              ? ((PyCFunctionObject *)function)->m_ml
                              : NULL;
    return method != NULL && is_same(method, name, METH_O) ? method : NULL;
}

/* The same among those that stand in `torch` once it is whole: a collection
 * may come while it is imported. */
static PyMethodDef *
find_method(const char *name)
{
    PyObject *type = find("_VariableFunctionsClass");
    PyMethodDef *methods = type != NULL && PyType_Check(type)
                               ? ((PyTypeObject *)type)->tp_methods
                               : NULL;
    for (; methods != NULL && methods->ml_name != NULL; methods++) {
        if (is_same(methods, name, METH_VARARGS | METH_KEYWORDS)) {
            return methods;
        }
    }
    return NULL;
}

static void
wrap(int which, PyMethodDef *method, PyCFunction ours)
{
    if (functions[which].method == NULL && method != NULL
        && cm_method_replace(method, ours, &functions[which].original)) {
        functions[which].method = method;
    }
}

void
cm_foreign_start(void)
{
    wrap(FROM_DLPACK, find_function("_from_dlpack"), from_dlpack);
    wrap(AS_TENSOR, find_method("as_tensor"), plain(as_tensor));
    wrap(ASARRAY, find_method("asarray"), plain(asarray));
}

/* The originals are kept: a thread may be inside. */
void
cm_foreign_stop(void)
{
    const PyCFunction ours[] = {from_dlpack, plain(as_tensor), plain(asarray)};
    for (int i = 0; i < FUNCTIONS; i++) {
        PyMethodDef *method = functions[i].method;
        if (method != NULL && method->ml_meth == ours[i]) {
            method->ml_meth = functions[i].original;
            functions[i].method = NULL;
        }
    }
}
