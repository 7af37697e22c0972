/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "maker.h"

#include <string.h>

#include "objects_private.h"
#include "../tables/phrase.h"

enum { NAME_BYTES = 128 };

/* "f" or "C.m" of "f.<locals>.g"; false: it is longer, or made within one that
 * is made within another. */
static bool
name_maker(const PyFunctionObject *function, char name[NAME_BYTES])
{
    struct cm_phrase made;
    made.length = 0;
    cm_phrase_add_str(&made, function->func_qualname, CM_PHRASE_BYTES / 8);
    made.bytes[made.length] = '\0';
    const char *end = strstr(made.bytes, ".<locals>.");
    if (end == NULL || end - made.bytes >= NAME_BYTES
        || strstr(end + 1, ".<locals>.") != NULL) {
        return false;
    }
    memcpy(name, made.bytes, (size_t)(end - made.bytes));
    name[end - made.bytes] = '\0';
    return true;
}

PyCodeObject *
cm_maker_code(PyObject *object)
{
    char name[NAME_BYTES], *more = name;
    if (cm_function_code(object) == NULL
        || !name_maker((PyFunctionObject *)object, name)) {
        return NULL;
    }
    PyObject *names = PyFunction_GET_GLOBALS(object), *found = NULL;
    for (char *part; names != NULL && (part = strsep(&more, ".")) != NULL;) {
        found = PyDict_Check(names) ? cm_dict_find(names, part) : NULL;
        names = found != NULL && PyType_Check(found)
                    ? ((PyTypeObject *)found)->tp_dict
                    : NULL;
    }
    return more == NULL ? cm_function_code(found) : NULL;
}
