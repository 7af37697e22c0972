/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Life of the reader, and the names of variables that cells are known by. */

#include "objects_private.h"

#include "../../detector/alloc.h"
#include "deaths.h"
#include "../tables/phrase.h"

struct cm_objects *
cm_objects_new(struct cm_records *records)
{
    struct cm_objects *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    if (cm_lock_init(&self->lock) != CM_OK) {
        cm_free(self);
        return NULL;
    }
    self->records = records;
    self->texts = cm_records_texts(records);
    self->names.most = CM_MOST_NAMES;
    self->other_keys.most = CM_MOST_OTHER_KEYS;
    cm_objects_prove(self);
    return self;
}

void
cm_objects_show_texts(struct cm_objects *self, bool shown)
{
    self->texts_shown = shown;
}

void
cm_objects_free(struct cm_objects *self)
{
    if (self == NULL) {
        return;
    }
    cm_deaths_stop(self);
    cm_stack_release(self);
    cm_addresses_release(&self->codes);
    cm_addresses_release(&self->types);
    cm_addresses_release(&self->cells);
    cm_addresses_release(&self->attributes);
    cm_addresses_release(&self->keys);
    cm_lock_release(&self->lock);
    cm_free(self->found);
    cm_free(self->places);
    for (size_t i = 0; i < self->library_count; i++) {
        cm_free(self->library_folders[i]);
    }
    Py_CLEAR(self->modules);
    Py_CLEAR(self->partial);
    cm_free(self);
}

void
cm_objects_status(const struct cm_objects *self,
                  struct cm_objects_status *result)
{
    static const char proven[] = "struct layout";
    *result = (struct cm_objects_status){
        .stack = self->no_stack != NULL ? self->no_stack : proven,
        .attributes =
            self->no_attributes != NULL ? self->no_attributes : proven,
        .frames = self->no_frames != NULL ? self->no_frames : proven,
        .unnamed_edges = self->unnamed_edges,
        .known_stacks = cm_stack_known(self),
        .lost_stacks = atomic_load(&self->lost_stacks),
    };
}

static void
learn_cell(struct cm_objects *self, PyObject *cell, PyObject *name)
{
    if (cell == NULL || Py_TYPE(cell) != &PyCell_Type || name == NULL) {
        return;
    }
    struct cm_phrase phrase;
    phrase.length = 0;
    cm_phrase_add_str(&phrase, name, CM_PHRASE_BYTES / 8);
    struct cm_text_id id = cm_phrase_intern(&phrase, self->texts);
    if (id.index != 0) {
        cm_addresses_put(&self->cells, cell, 0, id.index);
    }
}

/* A closure's cells follow the other variables of the function's code. */
static void
learn_closure(struct cm_objects *self, const PyFunctionObject *function)
{
    PyObject *cells = function->func_closure;
    const PyCodeObject *code = (const PyCodeObject *)function->func_code;
    if (cells == NULL || !PyTuple_Check(cells) || code == NULL) {
        return;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(cells);
    Py_ssize_t first = code->co_nlocalsplus - count;
    for (Py_ssize_t i = 0; first >= 0 && i < count; i++) {
        learn_cell(self, PyTuple_GET_ITEM(cells, i),
                   PyTuple_GET_ITEM(code->co_localsplusnames, first + i));
    }
}

static void
learn_variables(struct cm_objects *self, PyObject *object)
{
    struct cm_variables variables;
    if (!cm_variables_of(self, object, &variables)) {
        return;
    }
    PyObject *names = variables.code->co_localsplusnames;
    for (Py_ssize_t i = 0; i < variables.count; i++) {
        learn_cell(self, cm_stack_ref_object(variables.slots[i]),
                   PyTuple_GET_ITEM(names, i));
    }
}

void
cm_objects_begin(struct cm_objects *self, PyObject *const *objects,
                 size_t count)
{
    cm_addresses_clear(&self->cells);
    for (size_t i = 0; i < count; i++) {
        PyTypeObject *type = Py_TYPE(objects[i]);
        if (type == &PyFunction_Type) {
            learn_closure(self, (PyFunctionObject *)objects[i]);
        }
        else if (type == &PyFrame_Type || cm_is_generator(type)) {
            learn_variables(self, objects[i]);
        }
    }
}
