/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PHRASE_H
#define CM_PHRASE_H

/* A short text being put together on the C stack: labels and names.  What
 * does not fit is left out.  Strings are read in place: no Python object is
 * made, and neither the GIL nor the UTF-8 cache of the string is needed. */

#include <Python.h>

#include <stdbool.h>
#include <stddef.h>

#include "../../detector/text.h"

enum { CM_PHRASE_BYTES = 4096, CM_PHRASE_VALUE_CHARS = 40 };

/* Only `length` has to be set to start one. */
struct cm_phrase {
    size_t length;
    char bytes[CM_PHRASE_BYTES];
};

void cm_phrase_add(struct cm_phrase *self, const char *text);
void cm_phrase_add_number(struct cm_phrase *self, long long number);
/* The characters of a str (or of a subclass: its methods are not asked), at
 * most `max_chars` and then "...".  Another object, or NULL, adds "?".  Lone
 * surrogates that stand for a byte (os.fsdecode) become that byte again. */
void cm_phrase_add_str(struct cm_phrase *self, PyObject *string,
                       size_t max_chars);
/* None, bool, int, float and a str that is a name (of letters, digits and
 * "_.-/:") by value, as repr() would, CM_PHRASE_VALUE_CHARS of it; with
 * `texts` every str and bytes: they may be what nobody is to read.  False, and
 * nothing added, for all else. */
bool cm_phrase_add_value(struct cm_phrase *self, PyObject *object, bool texts);

/* Id 0 on failure. */
struct cm_text_id cm_phrase_intern(const struct cm_phrase *self,
                                   struct cm_texts *texts);

/* Borrowed from a str, up to a NUL in it; "" where it is none, or has lone
 * surrogates.  [never] */
const char *cm_str_utf8(PyObject *string);
/* Whether `object` is exactly a str with these ASCII characters. */
bool cm_str_is(PyObject *object, const char *text);
/* One object, or two strs of one text: no other is asked whether it is equal.
 * Either may be NULL. */
bool cm_str_equals(PyObject *one, PyObject *other);
/* One of these, up to NULL; the same of anything in a tuple. */
bool cm_str_is_one_of(PyObject *object, const char *const *texts);
bool cm_str_any_is_one_of(PyObject *tuple, const char *const *texts);
/* Whether a str is a short ASCII identifier.  Before: exactly a str. */
bool cm_str_is_identifier(PyObject *string);

#endif
