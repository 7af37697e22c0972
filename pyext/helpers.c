/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Dicts of modules are walked, never asked.  O(modules), and the names in the
 * program's own. */

#include "helpers.h"

#include "../graph/emptying.h"
#include "objects_private.h"
#include "phrase.h"

enum { MOST_NAMES = 64, ROUNDS = 2 };

static bool
is_wanted(const struct cm_objects *self, PyObject *name,
          const struct cm_text_id *wanted, size_t count)
{
    for (size_t i = 0; PyUnicode_CheckExact(name) && i < count; i++) {
        if (cm_str_is(name, cm_texts_get(self->texts, wanted[i]))) {
            return true;
        }
    }
    return false;
}

/* What is typed in has no file. */
static bool
is_own(const struct cm_objects *self, PyObject *name, PyObject *module)
{
    PyObject *file = cm_dict_find(PyModule_GetDict(module), "__file__");
    return file == NULL || !PyUnicode_Check(file) ? cm_str_is(name, "__main__")
                                                  : !cm_is_library(self, file);
}

static bool
is_there(const struct cm_code_id *codes, size_t count, struct cm_code_id code)
{
    size_t i = 0;
    while (i < count && codes[i].index != code.index) {
        i++;
    }
    return i < count;
}

struct found {
    struct cm_code_id *codes;
    size_t count, capacity;
};

static void
look_in(struct cm_objects *self, PyObject *names,
        const struct cm_text_id *wanted, size_t count, struct found *found)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (found->count < found->capacity
           && PyDict_Next(names, &at, &name, &value)) {
        if (!PyFunction_Check(value)
            || !is_wanted(self, name, wanted, count)) {
            continue;
        }
        struct cm_code_id code = cm_objects_code(
            self, (PyCodeObject *)((PyFunctionObject *)value)->func_code);
        if (!is_there(found->codes, found->count, code)) {
            found->codes[found->count++] = code;
        }
    }
}

/* What these hand on, the next round finds. */
void
cm_helpers_find(struct cm_objects *self, struct cm_holding *holding,
                struct cm_code_id *codes, size_t capacity)
{
    struct found found = {codes, holding->code_count, capacity};
    for (int round = 0; round < ROUNDS; round++) {
        struct cm_text_id wanted[MOST_NAMES];
        size_t count = cm_emptying_helpers(holding, wanted, MOST_NAMES);
        PyObject *key, *module;
        Py_ssize_t at = 0;
        while (count != 0 && self->modules != NULL
               && PyDict_Next(self->modules, &at, &key, &module)) {
            if (PyModule_Check(module) && is_own(self, key, module)) {
                look_in(self, PyModule_GetDict(module), wanted, count, &found);
            }
        }
        holding->helper_count = found.count - holding->code_count;
    }
}
