/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Depth first, by a stack that leaves out what has no room.  O(constants of
 * the functions). */

#include "inner.h"

enum { MOST_WAITING = 32, MOST_WRAPPERS = 4 };

struct waiting {
    PyCodeObject *codes[MOST_WAITING]; /* borrowed */
    size_t count;
};

static void
add(struct waiting *self, PyObject *code)
{
    if (PyCode_Check(code) && self->count < MOST_WAITING) {
        self->codes[self->count++] = (PyCodeObject *)code;
    }
}

static void
add_all_within(struct waiting *self, const PyCodeObject *code)
{
    PyObject *constants = code->co_consts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        add(self, PyTuple_GET_ITEM(constants, i));
    }
}

static void
find_within(struct cm_objects *self, const PyCodeObject *outer,
            struct cm_code_id *codes, size_t *count, size_t capacity)
{
    struct waiting waiting = {.count = 0};
    add_all_within(&waiting, outer);
    while (waiting.count > 0 && *count < capacity) {
        PyCodeObject *code = waiting.codes[--waiting.count];
        struct cm_code_id id = cm_objects_code(self, code);
        if (id.index != 0) {
            codes[(*count)++] = id;
        }
        add_all_within(&waiting, code);
    }
}

void
cm_inner_find(struct cm_objects *self, PyObject *names,
              struct cm_code_id *codes, size_t *count, size_t capacity)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (names != NULL && PyDict_Next(names, &position, &key, &value)) {
        for (int depth = 0; value != NULL && depth < MOST_WRAPPERS; depth++) {
            PyCodeObject *code = cm_function_code(value);
            if (code != NULL && !cm_is_library(self, code->co_filename)) {
                find_within(self, code, codes, count, capacity);
            }
            value = cm_wrapped_by(self, value);
        }
    }
}
