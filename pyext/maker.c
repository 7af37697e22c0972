/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "maker.h"

#include <string.h>

#include "objects_private.h"

enum { NAME_BYTES = 128 };

/* "f" or "C.m" of "f.<locals>.g"; false: it is longer, or made within one that
 * is made within another. */
static bool
name_maker(PyObject *function, char name[NAME_BYTES])
{
    PyObject *told = ((PyFunctionObject *)function)->func_qualname;
    const char *text = told != NULL ? PyUnicode_AsUTF8(told) : NULL;
    const char *end = text != NULL ? strstr(text, ".<locals>.") : NULL;
    PyErr_Clear();
    if (end == NULL || end - text >= NAME_BYTES
        || strstr(end + 1, ".<locals>.") != NULL) {
        return false;
    }
    memcpy(name, text, (size_t)(end - text));
    name[end - text] = '\0';
    return true;
}

PyCodeObject *
cm_maker_code(PyObject *function)
{
    char name[NAME_BYTES], *more = name;
    PyObject *names = PyFunction_GET_GLOBALS(function), *found = NULL;
    if (!name_maker(function, name)) {
        return NULL;
    }
    for (char *part; names != NULL && (part = strsep(&more, ".")) != NULL;) {
        found = PyDict_Check(names) ? cm_dict_find(names, part) : NULL;
        names = found != NULL && PyType_Check(found)
                    ? ((PyTypeObject *)found)->tp_dict
                    : NULL;
    }
    PyObject *code = found != NULL && more == NULL && PyFunction_Check(found)
                         ? PyFunction_GET_CODE(found)
                         : NULL;
    return code != NULL && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
}
