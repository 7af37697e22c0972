/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "program.h"

#include "../../detector/alloc.h"
#include "../tables/phrase.h"

enum { MOST_CODES = 100000 };

void
cm_program_release(struct cm_program *self)
{
    cm_free(self->codes);
    *self = (struct cm_program){0};
}

static void
add_code(struct cm_program *self, PyCodeObject *code)
{
    if (self->count == MOST_CODES
        || cm_grow((void **)&self->codes, &self->capacity, self->count + 1,
                   sizeof(*self->codes))
               != CM_OK) {
        self->failed = true;
        return;
    }
    self->codes[self->count++] = code;
}

/* And the functions that it makes. */
static void
add_code_whole(struct cm_program *self, PyCodeObject *code)
{
    size_t first = self->count;
    add_code(self, code);
    for (size_t i = first; i < self->count; i++) {
        PyObject *constants = self->codes[i]->co_consts;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(constants); k++) {
            PyObject *constant = PyTuple_GET_ITEM(constants, k);
            if (PyCode_Check(constant)) {
                add_code(self, (PyCodeObject *)constant);
            }
        }
    }
}

/* What is written at run time is in no file: the module's that has it written, as
 * of a dataclass's methods. */
static PyObject *
file_of(PyObject *function, const PyCodeObject *code)
{
    PyObject *globals = PyFunction_GET_GLOBALS(function);
    bool written = PyUnicode_Check(code->co_filename)
                   && PyUnicode_GET_LENGTH(code->co_filename) != 0
                   && PyUnicode_READ_CHAR(code->co_filename, 0) == '<';
    PyObject *file = written && globals != NULL && PyDict_CheckExact(globals)
                         ? cm_dict_find(globals, "__file__")
                         : NULL;
    return file != NULL && PyUnicode_CheckExact(file) ? file
                                                      : code->co_filename;
}

/* Neighbours of the walk are of one file, as a rule. */
static void
add_functions(struct cm_program *self)
{
    const struct cm_reach *reach = self->reach;
    const PyObject *file = NULL;
    const PyCodeObject *last = NULL;
    bool library = false;
    for (uint32_t i = 1; i <= reach->node_count && !self->failed; i++) {
        PyCodeObject *code = cm_function_code(reach->objects[i]);
        if (code == NULL || code == last) {
            continue;
        }
        PyObject *its = file_of(reach->objects[i], code);
        if (its != file) {
            file = its;
            library = cm_is_library(reach->roots->objects, its);
        }
        last = code;
        if (!library) {
            add_code_whole(self, code);
        }
    }
}

/* NULL: the root is no frame of the program's. */
static PyCodeObject *
running_code(const struct cm_root *root)
{
    bool runs = root->kind == CM_ROOT_FRAME && root->rank == CM_RANK_USER;
    return runs ? cm_raw_frame_code(root->frame) : NULL;
}

/* Of a notebook's cell, or of what is typed, other lines are gone by now, and
 * more may come. */
static bool
is_whole(const struct cm_raw_frame *frame, const PyCodeObject *code)
{
    PyObject *names = frame->globals;
    PyObject *file = names != NULL && PyDict_CheckExact(names)
                         ? cm_dict_find(names, "__file__")
                         : NULL;
    return file != NULL && cm_str_equals(file, code->co_filename);
}

bool
cm_program_has_main(const struct cm_program *self)
{
    const struct cm_roots *roots = self->reach->roots;
    bool runs = false;
    for (size_t i = 0; i < roots->count && !runs; i++) {
        PyCodeObject *code = running_code(&roots->items[i]);
        runs = code != NULL && cm_str_is(code->co_name, "<module>")
               && is_whole(roots->items[i].frame, code);
    }
    return runs;
}

static void
add_running(struct cm_program *self)
{
    const struct cm_roots *roots = self->reach->roots;
    for (size_t i = 0; i < roots->count; i++) {
        PyCodeObject *code = running_code(&roots->items[i]);
        if (code != NULL) {
            add_code_whole(self, code);
        }
    }
}

void
cm_program_list(struct cm_program *self)
{
    if (!self->listed) {
        self->listed = true;
        add_running(self);
        add_functions(self);
    }
}
