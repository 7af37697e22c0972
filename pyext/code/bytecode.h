/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_BYTECODE_H
#define CM_BYTECODE_H

/* Where a code object makes references: its stores and method calls, with
 * their lines.  Read from the bytecode that runs, specialised or not, so that
 * nothing is cached in the user's code object and no GIL is needed. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "../../detector/records.h"

struct cm_bytecode {
    bool known;          /* the tables below are filled and proven */
    uint8_t base[256];   /* specialised opcode -> the compiler's opcode */
    uint8_t caches[256]; /* inline cache entries after an opcode */
    uint8_t action[256]; /* by base opcode: what it does to references */
};

/* `numbers`: dict, name -> opcode of the compiler's opcodes.  `base` and
 * `caches`: bytes of 256.  Does not set `known`. */
void cm_bytecode_init(struct cm_bytecode *self, PyObject *numbers,
                      PyObject *base, PyObject *caches);

/* Whether `expected` (what the compiler emitted, as bytes) is what we read
 * in `code`. */
bool cm_bytecode_agrees(const struct cm_bytecode *self,
                        const PyCodeObject *code, PyObject *expected);

enum { CM_MAX_STORES = 4096 };

/* At most `capacity` stores, in order of the bytecode; of code that is no
 * library's, where `own`, also those that only such code has.  Returns how
 * many.  Needs no GIL. */
uint32_t cm_bytecode_stores(const struct cm_bytecode *self,
                            const PyCodeObject *code, bool own,
                            struct cm_texts *texts, struct cm_store *result,
                            uint32_t capacity);

#endif
