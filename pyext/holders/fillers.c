/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "fillers.h"

#include "../objects/maker.h"
#include "inner.h"

static void
add_code(struct cm_fillers *self, struct cm_code_id code)
{
    if (code.index != 0 && self->count < CM_MOST_FILLERS) {
        self->ids[self->count++] = code;
    }
}

static void
add_methods(struct cm_fillers *self, const struct cm_records *records,
            struct cm_type_id type)
{
    const struct cm_type *record = cm_records_type(records, type);
    for (uint32_t i = 0; i < record->method_count; i++) {
        add_code(self, record->methods[i]);
    }
}

static void
add_site(struct cm_fillers *self, const struct cm_records *records,
         struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(records, id);
    for (uint32_t i = 0; i < site->frame_count; i++) {
        if (!cm_records_code(records, site->frames[i].code)->library) {
            add_code(self, site->frames[i].code);
        }
    }
}

static void
add_functions(struct cm_fillers *self, struct cm_objects *objects,
              PyObject *names)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (names != NULL && PyDict_Next(names, &position, &key, &value)) {
        PyCodeObject *code = cm_function_code(value);
        if (code != NULL) {
            add_code(self, cm_objects_code(objects, code));
        }
    }
}

static void
add_nested(struct cm_fillers *self, struct cm_objects *objects,
           PyCodeObject *code)
{
    if (code != NULL) {
        cm_inner_of(objects, code, self->ids, &self->count, CM_MOST_FILLERS);
    }
}

/* Who shares a variable of the function that is its root, or one that a
 * function on the way has in its closure. */
static void
add_sharers(struct cm_fillers *self, struct cm_objects *objects,
            const struct cm_trail *trail, size_t at)
{
    if (at == 1 && trail->root->kind == CM_ROOT_FRAME) {
        add_nested(self, objects, cm_raw_frame_code(trail->root->frame));
    }
    for (size_t i = 1; i < at; i++) {
        PyObject *object = trail->steps[i].object;
        add_nested(self, objects,
                   object != NULL ? cm_maker_code(object) : NULL);
    }
}

/* Of the functions that are kept: a hook is registered where it is made. */
static void
add_makers(struct cm_fillers *self, struct cm_objects *objects,
           const struct cm_trail *trail, size_t at)
{
    for (size_t i = at + 1; i < trail->count; i++) {
        PyCodeObject *code = cm_maker_code(trail->steps[i].object);
        if (code != NULL) {
            add_code(self, cm_objects_code(objects, code));
        }
    }
}

/* Functions within the methods of who has it, and in those of its module. */
static void
add_inner(struct cm_fillers *self, struct cm_objects *objects,
          const struct cm_trail *trail, size_t at)
{
    for (size_t i = at; i-- > 1;) {
        PyObject *owner = trail->steps[i].object;
        PyTypeObject *type = owner == NULL         ? NULL
                             : PyType_Check(owner) ? (PyTypeObject *)owner
                                                   : Py_TYPE(owner);
        cm_inner_find(objects, type != NULL ? type->tp_dict : NULL, self->ids,
                      &self->count, CM_MOST_FILLERS);
    }
    if (trail->root->kind == CM_ROOT_MODULE) {
        cm_inner_find(objects, PyModule_GetDict(trail->root->object),
                      self->ids, &self->count, CM_MOST_FILLERS);
    }
}

void
cm_fillers_find(struct cm_fillers *self, struct cm_objects *objects,
                const struct cm_trail *trail, size_t at, struct cm_site_id own,
                struct cm_site_id site)
{
    struct cm_records *records = objects->records;
    if (at == 1) {
        add_code(self, trail->root->code);
    }
    if (!trail->steps[at].counted) {
        add_site(self, records, own);
        add_site(self, records, site);
    }
    for (size_t i = at; i-- > 1;) {
        PyObject *owner = trail->steps[i].object;
        if (owner != NULL && PyType_Check(owner)) {
            add_methods(self, records,
                        cm_objects_type(objects, (PyTypeObject *)owner));
        }
        else {
            add_methods(self, records, trail->steps[i].type);
        }
        add_code(self, trail->steps[i].code);
    }
    add_code(self, trail->root->code);
    add_site(self, records, site);
    add_site(self, records, own);
    for (size_t i = at + 1; i + 1 < trail->count; i++) {
        if (trail->steps[i + 1].counted) { /* each has one of its own */
            add_methods(self, records, trail->steps[i].type);
        }
    }
    if (trail->root->kind == CM_ROOT_MODULE) {
        add_functions(self, objects, PyModule_GetDict(trail->root->object));
    }
    add_makers(self, objects, trail, at);
    add_inner(self, objects, trail, at);
    add_sharers(self, objects, trail, at);
}
