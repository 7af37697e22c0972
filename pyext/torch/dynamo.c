/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* torch.compiler.disable() does the same, in Python, and imports what would be
 * compiled.  torch 2.0 to 2.15. */

#include "dynamo.h"

#include "../tables/fields.h"

/* [new; never] what was set before; NULL: torch is not there. */
static PyObject *
set(PyObject *callback)
{
    PyObject *module = cm_imported("torch._C._dynamo.eval_frame");
    PyObject *names = module != NULL && PyModule_CheckExact(module)
                          ? PyModule_GetDict(module)
                          : NULL;
    PyObject *function =
        names != NULL ? PyDict_GetItemString(names, "set_eval_frame") : NULL;
    PyObject *before = function != NULL && PyCFunction_CheckExact(function)
                           ? PyObject_CallOneArg(function, callback)
                           : NULL;
    PyErr_Clear();
    Py_XDECREF(module);
    return before;
}

PyObject *
cm_dynamo_pause(void)
{
    PyObject *before = set(Py_None);
    if (before == Py_None) {
        Py_CLEAR(before);
    }
    return before;
}

void
cm_dynamo_resume(PyObject *before)
{
    if (before != NULL) {
        Py_XDECREF(set(before));
        Py_DECREF(before);
    }
}
