/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A counter makes keys in order.  Numbers in no order are drawn from so many,
 * unless they are as large as addresses and hashes; so are they in texts that
 * are alike but for them, f"row {i}", and in tuples.  An object that is a key
 * and stands somewhere else too was there before: a name in the list of all
 * names.  Keys of which the last have no value were all made before,
 * {i: None for i in ...}; not where one before them has none either, as in
 * `rows[step] = x if wanted else None`.  O(keys), of the first MOST_KEYS. */

#include "keys.h"

enum {
    MOST_KEYS = 4096,
    FEWEST_KEYS = 4,
    FEWEST_RESERVED = 2,
    MOST_PARTS = 8,
    MOST_DIGITS = 9,
    MOST_INDEX = 1 << 30,
    MOST_CHARACTERS = 256,
};

/* The numbers in a key, and what stands between them. */
struct numbers {
    uint64_t form;
    uint32_t count;
    bool known;
    long parts[MOST_PARTS];
};

struct tally {
    uint32_t keys, numbers, ups, downs, shared;
    uint32_t empty, last_empty; /* None is their value; the last in a row */
    bool plain;                 /* one is a number or a tuple */
    struct numbers last;
};

static void
add_form(struct numbers *self, uint64_t piece)
{
    self->form = (self->form ^ piece) * UINT64_C(0x100000001b3);
}

static void
add_part(struct numbers *self, long number)
{
    self->known = self->known && number >= 0 && number < MOST_INDEX
                  && self->count < MOST_PARTS;
    if (self->known) {
        self->parts[self->count++] = number;
    }
}

/* A number that may be an index, or a size. */
static void
add_number(struct numbers *self, PyObject *object)
{
    int overflow = 0;
    long number = PyLong_AsLongAndOverflow(object, &overflow);
    add_form(self, 'n');
    add_part(self, overflow == 0 ? number : -1);
}

static void
add_text(struct numbers *self, PyObject *object)
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

static void
add_one(struct numbers *self, PyObject *object)
{
    if (PyLong_CheckExact(object)) {
        add_number(self, object);
    }
    else if (PyUnicode_CheckExact(object)) {
        add_text(self, object);
    }
    else {
        self->known = false;
    }
}

static struct numbers
read_key(PyObject *key)
{
    struct numbers numbers = {.known = true};
    bool tuple = PyTuple_CheckExact(key);
    for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(key); i++) {
        add_one(&numbers, PyTuple_GET_ITEM(key, i));
    }
    if (!tuple) {
        add_one(&numbers, key);
    }
    numbers.known = numbers.known && numbers.count != 0;
    return numbers;
}

static int
compare(const struct numbers *left, const struct numbers *right)
{
    int result = 0;
    for (uint32_t i = 0; result == 0 && i < left->count && i < right->count;
         i++) {
        result = (left->parts[i] > right->parts[i])
                 - (left->parts[i] < right->parts[i]);
    }
    return result;
}

/* Of one form with the key before it, or the first one. */
static void
add_key(struct tally *self, PyObject *key)
{
    struct numbers numbers = read_key(key);
    bool alike = numbers.known
                 && (self->keys == 0
                     || (self->last.known && numbers.form == self->last.form));
    int order = alike && self->keys != 0 ? compare(&numbers, &self->last) : 0;
    self->keys++;
    self->numbers += alike;
    self->ups += order > 0;
    self->downs += order < 0;
    self->shared += Py_REFCNT(key) > 1;
    self->plain = self->plain || PyLong_CheckExact(key)
                  || (PyTuple_CheckExact(key) && numbers.known);
    self->last = numbers;
}

/* The newest key may be in use just now, and is not counted. */
static enum cm_holding_keys
judge(const struct tally *self)
{
    bool numbers = self->numbers == self->keys;
    if (self->keys < FEWEST_KEYS) {
        return CM_KEYS_UNKNOWN;
    }
    if (self->empty >= FEWEST_RESERVED && self->empty == self->last_empty) {
        return CM_KEYS_RESERVED;
    }
    if (numbers) {
        return self->ups != 0 && self->downs != 0 ? CM_KEYS_OF_A_SET
                                                  : CM_KEYS_COUNTED;
    }
    return !self->plain && self->shared + 1 >= self->keys ? CM_KEYS_OF_A_SET
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
        tally.empty += value == Py_None;
        tally.last_empty = value == Py_None ? tally.last_empty + 1 : 0;
    }
    return judge(&tally);
}
