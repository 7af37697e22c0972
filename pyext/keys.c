/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A counter makes keys in order.  Numbers in no order are drawn from so many,
 * unless they are as large as addresses and hashes.  An object that is a key
 * and stands somewhere else too was there before: a name in the list of all
 * names.  O(keys), of the first MOST_KEYS. */

#include "keys.h"

enum {
    MOST_KEYS = 4096,
    FEWEST_KEYS = 4,
    MOST_PARTS = 8,
    MOST_INDEX = 1 << 30,
};

struct tally {
    uint32_t keys, numbers, ups, downs, shared;
    PyObject *last; /* borrowed; the number or tuple before */
};

/* A number that may be an index, or a size; -1: none. */
static long
index_of(PyObject *object)
{
    int overflow = 0;
    if (!PyLong_CheckExact(object)) {
        return -1;
    }
    long number = PyLong_AsLongAndOverflow(object, &overflow);
    return overflow == 0 && number >= 0 && number < MOST_INDEX ? number : -1;
}

/* An index, or a short tuple of them. */
static bool
is_number(PyObject *key)
{
    if (!PyTuple_CheckExact(key)) {
        return index_of(key) >= 0;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(key);
    bool numbers = count > 0 && count <= MOST_PARTS;
    for (Py_ssize_t i = 0; numbers && i < count; i++) {
        numbers = index_of(PyTuple_GET_ITEM(key, i)) >= 0;
    }
    return numbers;
}

static int
compare_numbers(PyObject *left, PyObject *right)
{
    long a = index_of(left), b = index_of(right);
    return (a > b) - (a < b);
}

/* Of two that are numbers; 0 where they are not alike. */
static int
compare(PyObject *left, PyObject *right)
{
    if (!PyTuple_CheckExact(left) || !PyTuple_CheckExact(right)) {
        return compare_numbers(left, right);
    }
    int result = 0;
    Py_ssize_t count = PyTuple_GET_SIZE(left);
    for (Py_ssize_t i = 0;
         result == 0 && i < count && i < PyTuple_GET_SIZE(right); i++) {
        result = compare_numbers(PyTuple_GET_ITEM(left, i),
                                 PyTuple_GET_ITEM(right, i));
    }
    return result;
}

static void
add_key(struct tally *self, PyObject *key)
{
    bool number = is_number(key);
    int order = number && self->last != NULL ? compare(key, self->last) : 0;
    self->keys++;
    self->numbers += number;
    self->ups += order > 0;
    self->downs += order < 0;
    self->shared += Py_REFCNT(key) > 1;
    self->last = number ? key : NULL;
}

/* The newest key may be in use just now, and is not counted. */
static enum cm_holding_keys
judge(const struct tally *self)
{
    bool numbers = self->numbers == self->keys;
    if (self->keys < FEWEST_KEYS) {
        return CM_KEYS_UNKNOWN;
    }
    if (numbers) {
        return self->ups != 0 && self->downs != 0 ? CM_KEYS_OF_A_SET
                                                  : CM_KEYS_COUNTED;
    }
    return self->numbers == 0 && self->shared + 1 >= self->keys
               ? CM_KEYS_OF_A_SET
               : CM_KEYS_UNKNOWN;
}

enum cm_holding_keys
cm_keys_of(PyObject *object)
{
    struct tally tally = {0};
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (object == NULL || !PyDict_Check(object)) {
        return CM_KEYS_UNKNOWN;
    }
    while (tally.keys < MOST_KEYS
           && PyDict_Next(object, &position, &key, &value)) {
        add_key(&tally, key);
    }
    return judge(&tally);
}
