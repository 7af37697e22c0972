/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_KEY_NUMBERS_H
#define CM_KEY_NUMBERS_H

/* The numbers in a dict's key: of 7, "row 7", (7, "a"), (x.shape, x.device).
 * Runs no code of the program. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

enum { CM_KEY_MOST_NUMBERS = 8 };

struct cm_key_numbers {
    uint64_t form; /* what stands between them: alike in keys of one kind */
    uint32_t count;
    bool known; /* it has some, and each may be an index or a size */
    long parts[CM_KEY_MOST_NUMBERS];
};

struct cm_key_numbers cm_key_numbers_of(PyObject *key);

/* Of two keys of one form: which number is the first that differs; `count`
 * where all are the same. */
uint32_t cm_key_numbers_differ(const struct cm_key_numbers *left,
                               const struct cm_key_numbers *right);

#endif
