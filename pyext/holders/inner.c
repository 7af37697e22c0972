/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Breadth first, in the order of the source.  O(constants of the functions). */

#include "inner.h"

size_t
cm_inner_codes(PyCodeObject *outer, PyCodeObject *found[CM_MOST_INNER])
{
    size_t known = 1;
    found[0] = outer;
    for (size_t i = 0; i < known; i++) {
        PyObject *constants = found[i]->co_consts;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(constants); k++) {
            PyObject *constant = PyTuple_GET_ITEM(constants, k);
            if (PyCode_Check(constant) && known < CM_MOST_INNER) {
                found[known++] = (PyCodeObject *)constant;
            }
        }
    }
    return known;
}

void
cm_inner_of(struct cm_objects *self, PyCodeObject *outer,
            struct cm_code_id *codes, size_t *count, size_t capacity)
{
    PyCodeObject *found[CM_MOST_INNER];
    size_t known = cm_inner_codes(outer, found);
    for (size_t i = 1; i < known && *count < capacity; i++) {
        struct cm_code_id id = cm_objects_code(self, found[i]);
        if (id.index != 0) {
            codes[(*count)++] = id;
        }
    }
}

void
cm_inner_find(struct cm_objects *self, PyObject *names,
              struct cm_code_id *codes, size_t *count, size_t capacity)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (names != NULL && PyDict_Next(names, &position, &key, &value)) {
        for (int depth = 0; value != NULL && depth < CM_MOST_WRAPPERS;
             depth++) {
            PyCodeObject *code = cm_function_code(value);
            if (code != NULL && !cm_is_library(self, code->co_filename)) {
                cm_inner_of(self, code, codes, count, capacity);
            }
            value = cm_wrapped_by(self, value);
        }
    }
}
