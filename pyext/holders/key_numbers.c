/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Of other objects than numbers, texts and tuples only those are known that a
 * program does not make anew for each key: constants, classes, and torch's own
 * (a device, a dtype, the Size that is a tuple).  O(parts), bounded. */

#include "key_numbers.h"

#include <string.h>

enum {
    MOST_DIGITS = 9,
    MOST_INDEX = 1 << 30,
    MOST_CHARACTERS = 256,
    MOST_PIECES = 32, /* of a tuple */
};

static void
add_form(struct cm_key_numbers *self, uint64_t piece)
{
    self->form = (self->form ^ piece) * UINT64_C(0x100000001b3);
}

static void
add_part(struct cm_key_numbers *self, long number)
{
    self->known = self->known && number >= 0 && number < MOST_INDEX
                  && self->count < CM_KEY_MOST_NUMBERS;
    if (self->known) {
        self->parts[self->count++] = number;
    }
}

/* A number that may be an index, or a size. */
static void
add_number(struct cm_key_numbers *self, PyObject *object)
{
    int overflow = 0;
    long number = PyLong_AsLongAndOverflow(object, &overflow);
    add_form(self, 'n');
    add_part(self, overflow == 0 ? number : -1);
}

static void
add_text(struct cm_key_numbers *self, PyObject *object)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(object);
    long number = 0;
    int digits = 0;
    self->known = self->known && length <= MOST_CHARACTERS;
    for (Py_ssize_t i = 0; self->known && i <= length; i++) {
        Py_UCS4 c = i < length ? PyUnicode_READ_CHAR(object, i) : 0;
        if (c >= '0' && c <= '9') {
            number = digits < MOST_DIGITS ? 10 * number + (long)(c - '0') : -1;
            digits++;
            continue;
        }
        if (digits != 0) {
            add_part(self, digits <= MOST_DIGITS ? number : -1);
        }
        number = digits = 0;
        add_form(self, c);
    }
}

/* A class of torch's that is written in C: torch.device, torch.Size. */
static bool
is_of_torch(PyTypeObject *type)
{
    return !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)
           && strncmp(type->tp_name, "torch.", 6) == 0;
}

static bool
is_tuple(PyObject *object)
{
    return PyTuple_CheckExact(object)
           || (PyTuple_Check(object) && is_of_torch(Py_TYPE(object)));
}

/* Objects of torch's by their class: each tensor makes a device of its own. */
static void
add_constant(struct cm_key_numbers *self, PyObject *object)
{
    if (object == Py_None || PyBool_Check(object) || PyType_Check(object)) {
        add_form(self, (uint64_t)(uintptr_t)object);
    }
    else if (is_of_torch(Py_TYPE(object))) {
        add_form(self, (uint64_t)(uintptr_t)Py_TYPE(object));
    }
    else {
        self->known = false;
    }
}

static void
add_plain(struct cm_key_numbers *self, PyObject *object)
{
    if (PyLong_CheckExact(object)) {
        add_number(self, object);
    }
    else if (PyUnicode_CheckExact(object)) {
        add_text(self, object);
    }
    else {
        add_constant(self, object);
    }
}

typedef void add_function(struct cm_key_numbers *self, PyObject *object);

static void
add_all(struct cm_key_numbers *self, PyObject *tuple, add_function *add)
{
    Py_ssize_t size = PyTuple_GET_SIZE(tuple);
    self->known = self->known && size <= MOST_PIECES;
    add_form(self, '(');
    for (Py_ssize_t i = 0; self->known && i < size; i++) {
        add(self, PyTuple_GET_ITEM(tuple, i));
    }
}

/* A tuple within it has no other one. */
static void
add_piece(struct cm_key_numbers *self, PyObject *object)
{
    if (is_tuple(object)) {
        add_all(self, object, add_plain);
    }
    else {
        add_plain(self, object);
    }
}

struct cm_key_numbers
cm_key_numbers_of(PyObject *key)
{
    struct cm_key_numbers numbers = {.known = true};
    if (is_tuple(key)) {
        add_all(&numbers, key, add_piece);
    }
    else {
        add_plain(&numbers, key);
    }
    numbers.known = numbers.known && numbers.count != 0;
    return numbers;
}

uint32_t
cm_key_numbers_differ(const struct cm_key_numbers *left,
                      const struct cm_key_numbers *right)
{
    uint32_t i = 0;
    while (i < left->count && i < right->count
           && left->parts[i] == right->parts[i]) {
        i++;
    }
    return i;
}
