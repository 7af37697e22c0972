/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Dicts of modules are walked, never asked.  O(names in the program's own). */

#include "helpers.h"

#include "../../graph/helped.h"
#include "../tables/phrase.h"

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
add(struct found *found, struct cm_code_id code)
{
    if (code.index != 0 && found->count < found->capacity
        && !is_there(found->codes, found->count, code)) {
        found->codes[found->count++] = code;
    }
}

/* With what it wraps: @contextmanager, @torch.no_grad(). */
static void
add_function(struct cm_objects *self, PyObject *function, struct found *found)
{
    for (int depth = 0; depth < CM_MOST_WRAPPERS; depth++) {
        PyCodeObject *own = cm_function_code(function);
        if (own == NULL || found->count == found->capacity) {
            return;
        }
        add(found, cm_objects_code(self, own));
        function = cm_wrapped_by(self, function);
    }
}

static void
look_in(struct cm_objects *self, PyObject *names,
        const struct cm_text_id *wanted, size_t count, struct found *found)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (found->count < found->capacity
           && PyDict_Next(names, &at, &name, &value)) {
        if (is_wanted(self, name, wanted, count)) {
            add_function(self, value, found);
        }
    }
}

/* What these hand on, the next round finds. */
void
cm_helpers_find(const struct cm_roots *roots, struct cm_holding *holding,
                struct cm_code_id *codes, size_t capacity)
{
    struct found found = {codes, holding->code_count, capacity};
    size_t before = 0;
    for (int round = 0; round < ROUNDS && found.count != before; round++) {
        struct cm_text_id wanted[MOST_NAMES];
        size_t count = cm_helped_names(holding, wanted, MOST_NAMES);
        before = found.count;
        for (size_t i = 0; count != 0 && i < roots->count; i++) {
            const struct cm_root *root = &roots->items[i];
            if (root->kind == CM_ROOT_MODULE && root->rank == CM_RANK_USER) {
                look_in(roots->objects, PyModule_GetDict(root->object), wanted,
                        count, &found);
            }
        }
        holding->helper_count = found.count - holding->code_count;
    }
}

static void
add_methods(struct cm_objects *self, PyTypeObject *class, struct found *found)
{
    const struct cm_type *type =
        cm_records_type(self->records, cm_objects_type(self, class));
    for (uint32_t i = 0; !type->library && i < type->method_count; i++) {
        add(found, type->methods[i]);
    }
}

/* Handlers are defined where they are registered: the functions that stand in
 * this one. */
static void
add_nested(struct cm_objects *self, PyObject *function, struct found *found)
{
    PyCodeObject *own = cm_function_code(function);
    PyObject *constants = own != NULL ? own->co_consts : NULL;
    for (Py_ssize_t i = 0;
         constants != NULL && i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *constant = PyTuple_GET_ITEM(constants, i);
        if (PyCode_Check(constant)) {
            add(found, cm_objects_code(self, (PyCodeObject *)constant));
        }
    }
}

static void
add_module(struct cm_objects *self, PyObject *names, struct found *found)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (found->count < found->capacity
           && PyDict_Next(names, &at, &name, &value)) {
        if (PyType_Check(value)) {
            add_methods(self, (PyTypeObject *)value, found);
        }
        else {
            add_function(self, value, found);
            add_nested(self, value, found);
        }
    }
}

void
cm_helpers_add_all(const struct cm_roots *roots, struct cm_holding *holding,
                   struct cm_code_id *codes, size_t capacity)
{
    struct found found = {codes, holding->code_count, capacity};
    for (size_t i = 0; i < roots->count; i++) {
        const struct cm_root *root = &roots->items[i];
        if (root->kind == CM_ROOT_MODULE && root->rank == CM_RANK_USER) {
            add_module(roots->objects, PyModule_GetDict(root->object), &found);
        }
    }
    holding->code_count = found.count;
}
