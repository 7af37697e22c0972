/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LINE_TABLE_H
#define CM_LINE_TABLE_H

/* The line of each instruction of a code object, read in one pass.  The format
 * is that of CPython's Objects/locations.md (3.11 to 3.15). */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

struct cm_line_table {
    const uint8_t *next, *end; /* borrowed of the code */
    Py_ssize_t until;          /* first unit after the current run */
    int line;                  /* of the run, as the table counts */
    bool known;                /* the run has a line */
};

/* Before: co_linetable is a bytes object. */
void cm_line_table_init(struct cm_line_table *self, const PyCodeObject *code);
/* 0: it has none.  Before: `unit` is not smaller than at the last call. */
uint32_t cm_line_table_at(struct cm_line_table *self, Py_ssize_t unit);

#endif
