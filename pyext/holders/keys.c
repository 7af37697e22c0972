/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A counter makes keys in order.  Numbers in no order are drawn from so many,
 * unless they are as large as addresses and hashes; so are they in texts that
 * are alike but for them, f"row {i}", and in tuples.  Numbers in order that
 * come in uneven steps, each a size of the tensor that it stands for, are the
 * lengths of data that is sorted.  An object that is a key and stands
 * somewhere else too was there before: a name in the list of all names.  Keys
 * of which the last have no value were all made before,
 * {i: None for i in ...}; not where one before them has none either, as in
 * `rows[step] = x if wanted else None`.  O(keys), of the first MOST_KEYS. */

#include "keys.h"

#include <stdlib.h>

#include "../frameworks/devices.h"
#include "key_numbers.h"

enum {
    MOST_KEYS = 4096,
    FEWEST_KEYS = 4,
    FEWEST_RESERVED = 2,
    FEWEST_DRAWN = 16,
    WIDEST_DRAWN = 1024, /* so many numbers for each key */
    MOST_SIZES = 64,     /* keys whose values are asked for their sizes */
    FEWEST_SIZES = 8,
    MOST_VALUES = 4, /* of one key: (cos, sin) */
    SHAPE_BYTES = 128,
};

struct tally {
    struct cm_devices *devices;
    uint32_t keys, numbers, ups, downs, shared;
    uint32_t empty, last_empty; /* None is their value; the last in a row */
    uint32_t asked, sizes; /* values; those that are as large as the key */
    long least, most;      /* step from one number to the next */
    uint32_t rising;       /* numbers, as bits: larger in each key */
    uint32_t all, plain_numbers;
    long smallest, largest, largest_of_half; /* the first half of all */
    bool plain;                              /* one is a number or a tuple */
    struct cm_key_numbers last;
};

/* ---- the sizes of what a key stands for */

/* In "[64, 512] float32". */
static bool
has_size(const char *shape, long size)
{
    bool found = false;
    const char *at = shape;
    while (!found && (*at == '[' || *at == ',')) {
        char *end;
        found = strtol(at + 1, &end, 10) == size;
        at = end;
    }
    return found;
}

static bool
is_as_large(const struct tally *self, PyObject *object, long size)
{
    struct cm_device_memory memory;
    char shape[SHAPE_BYTES] = "";
    if (cm_devices_claim(self->devices, Py_TYPE(object))
        && cm_devices_read(self->devices, object, &memory)) {
        cm_devices_shape(self->devices, object, &memory, shape, sizeof shape);
    }
    return has_size(shape, size);
}

static bool
has_as_large(const struct tally *self, PyObject *value, long size)
{
    bool found = is_as_large(self, value, size);
    bool tuple = PyTuple_CheckExact(value);
    for (Py_ssize_t i = 0;
         tuple && !found && i < MOST_VALUES && i < PyTuple_GET_SIZE(value);
         i++) {
        found = is_as_large(self, PyTuple_GET_ITEM(value, i), size);
    }
    return found;
}

/* Of a tuple one may be a counter's, and those before it lengths. */
static void
note_rising(struct tally *self, const struct cm_key_numbers *numbers)
{
    for (uint32_t i = 0; i < CM_KEY_MOST_NUMBERS; i++) {
        bool larger = i < numbers->count && i < self->last.count
                      && numbers->parts[i] > self->last.parts[i];
        self->rising &= larger ? ~0u : ~(1u << i);
    }
}

/* `numbers`: of one form with those of the key before. */
static void
add_step(struct tally *self, const struct cm_key_numbers *numbers,
         PyObject *value)
{
    uint32_t at = cm_key_numbers_differ(numbers, &self->last);
    if (at >= numbers->count || at >= self->last.count) {
        return;
    }
    long step = numbers->parts[at] - self->last.parts[at];
    bool first = self->ups + self->downs == 0;
    self->ups += step > 0;
    self->downs += step < 0;
    self->least = first || step < self->least ? step : self->least;
    self->most = first || step > self->most ? step : self->most;
    if (self->devices != NULL && self->asked < MOST_SIZES) {
        self->asked++;
        self->sizes += has_as_large(self, value, numbers->parts[at]);
    }
}

/* ---- all keys */

static void
note_number(struct tally *self, PyObject *key,
            const struct cm_key_numbers *numbers)
{
    if (!PyLong_CheckExact(key) || !numbers->known) {
        return;
    }
    bool first = self->plain_numbers == 0;
    bool larger = first || numbers->parts[0] > self->largest;
    bool smaller = first || numbers->parts[0] < self->smallest;
    self->smallest = smaller ? numbers->parts[0] : self->smallest;
    self->largest = larger ? numbers->parts[0] : self->largest;
    self->plain_numbers++;
    if (self->plain_numbers * 2 <= self->all) {
        self->largest_of_half = self->largest;
    }
}

/* Of one form with the key before it, or the first one. */
static void
add_key(struct tally *self, PyObject *key, PyObject *value)
{
    struct cm_key_numbers numbers = cm_key_numbers_of(key);
    bool alike = numbers.known
                 && (self->keys == 0
                     || (self->last.known && numbers.form == self->last.form));
    if (alike && self->keys != 0) {
        note_rising(self, &numbers);
        add_step(self, &numbers, value);
    }
    note_number(self, key, &numbers);
    self->keys++;
    self->numbers += alike;
    self->shared += Py_REFCNT(key) > 1;
    self->plain = self->plain || PyLong_CheckExact(key)
                  || (PyTuple_CheckExact(key) && numbers.known);
    self->last = numbers;
}

/* As indices of a data set are that is shuffled; ids of requests, of which ever
 * more come, are larger and larger, in whatever order. */
static bool
are_drawn(const struct tally *self)
{
    long range = self->largest - self->smallest;
    return self->plain_numbers == self->keys && self->keys >= FEWEST_DRAWN
           && range / WIDEST_DRAWN < (long)self->keys
           && self->largest_of_half > self->largest - range / 4;
}

/* In uneven steps; the newest may not have its value yet. */
static bool
are_sizes(const struct tally *self)
{
    return self->asked >= FEWEST_SIZES && self->sizes + 1 >= self->asked
           && self->least != self->most;
}

/* The newest key may be in use just now, and is not counted. */
static enum cm_holding_keys
judge(const struct tally *self)
{
    bool numbers = self->numbers == self->keys;
    bool order = self->ups == 0 || self->downs == 0 || self->rising != 0;
    if (self->keys < FEWEST_KEYS) {
        return CM_KEYS_UNKNOWN;
    }
    if (self->empty >= FEWEST_RESERVED && self->empty == self->last_empty) {
        return CM_KEYS_RESERVED;
    }
    if (numbers && order && !are_sizes(self)) {
        return self->empty >= FEWEST_RESERVED ? CM_KEYS_WITH_GAPS
                                              : CM_KEYS_COUNTED;
    }
    if (numbers) {
        return !order && are_drawn(self) ? CM_KEYS_DRAWN : CM_KEYS_OF_A_SET;
    }
    return !self->plain && self->shared + 1 >= self->keys ? CM_KEYS_OF_A_SET
                                                          : CM_KEYS_UNKNOWN;
}

enum cm_holding_keys
cm_keys_of(PyObject *object, struct cm_devices *devices)
{
    struct tally tally = {.devices = devices,
                          .rising = (1u << CM_KEY_MOST_NUMBERS) - 1};
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (object == NULL || !PyDict_Check(object)) {
        return CM_KEYS_UNKNOWN;
    }
    Py_ssize_t all = PyDict_GET_SIZE(object);
    tally.all = all < MOST_KEYS ? (uint32_t)all : MOST_KEYS;
    while (tally.keys < MOST_KEYS
           && PyDict_Next(object, &position, &key, &value)) {
        add_key(&tally, key, value);
        tally.empty += value == Py_None;
        tally.last_empty = value == Py_None ? tally.last_empty + 1 : 0;
    }
    return judge(&tally);
}
