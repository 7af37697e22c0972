/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_OPCODES_H
#define CM_OPCODES_H

/* What the interpreter's instructions do to references, as far as the pass of
 * bytecode.c cares. */

#include "bytecode.h"

enum action {
    ACT_OTHER = 0, /* forgets what was pushed */
    ACT_KEEP,      /* changes nothing that matters */
    ACT_EXTEND,
    ACT_LOAD_LOCAL,
    ACT_LOAD_TWO,
    ACT_LOAD_NAME,
    ACT_LOAD_GLOBAL,
    ACT_LOAD_CONSTANT,
    ACT_LOAD_NUMBER,
    ACT_LOAD_COMMON,
    ACT_LOAD_OTHER,
    ACT_LOAD_ATTR,
    ACT_LOAD_PLAIN_ATTR,
    ACT_LOAD_METHOD,
    ACT_LOAD_SUPER,
    ACT_LOAD_ITEM,
    ACT_LOAD_NULL,
    ACT_DROP, /* what an expression leaves */
    ACT_COPY,
    ACT_SWAP,
    ACT_UNPACK,
    ACT_WITH,         /* of what a `with` is given: what `as` names (3.13) */
    ACT_WITH_METHOD,  /* its __enter__ (0), __exit__ (1), ...: a call (3.14) */
    ACT_PUT_ASIDE,    /* what a variable was before a comprehension */
    ACT_SET_FUNCTION, /* its closure, its defaults: one more goes (3.13) */
    ACT_SLICE,        /* the key of an item */
    ACT_TAKE_SLICE,   /* x[a:b] */
    ACT_STORE_SLICE,  /* x[a:b] = ... */
    ACT_DELETE_ITEM,
    ACT_COMPARE,
    ACT_CONTAINS, /* k in x */
    ACT_TAKE_ONE, /* what was pushed goes, and something comes */
    ACT_TAKE_TWO,
    ACT_TAKE_MANY,
    ACT_TAKE_FORMAT,
    ACT_TAKE_SPEC, /* f"{x:y}" */
    ACT_TAKE_CALL,
    ACT_TAKE_CALL_KEYS,
    ACT_STORE_LOCAL,
    ACT_STORE_AND_LOAD,
    ACT_STORE_TWO,
    ACT_STORE_CELL,
    ACT_STORE_NAME,
    ACT_STORE_GLOBAL,
    ACT_STORE_ATTR,
    ACT_STORE_ITEM,
    ACT_FUNCTION,
    ACT_DELETE_LOCAL,
    ACT_DELETE_CELL,
    ACT_DELETE_NAME,
    ACT_DELETE_ATTR,
    ACT_BUILD,
    ACT_BUILD_MAP,
    ACT_BUILD_KEYS, /* a dict of constant keys */
    ACT_TURN,       /* of a `for`: the next item */
    ACT_LOOP,
    ACT_HANDLER,
    ACT_BRANCH, /* forwards, unless ... */
    ACT_JUMP,   /* forwards */
    ACT_LEAVE,  /* the function */
    ACT_RETURN, /* it, with a value that was pushed */
    ACT_UNKNOWN,
};

struct cm_instruction {
    enum action action;
    unsigned argument;
    Py_ssize_t unit, next; /* without what extends its argument */
};

/* Borrowed, as the next; NULL: there is none. */
PyObject *cm_instruction_item(PyObject *tuple, unsigned index);
/* Of co_names what it loads, sets or deletes: a variable of the module, or
 * NAME of x.NAME. */
PyObject *cm_instruction_name(const PyCodeObject *code,
                              const struct cm_instruction *one);
/* Variables that it sets or deletes, and then reads; borrowed. */
struct cm_variables {
    PyObject *set[2], *read[2];
};
struct cm_variables cm_instruction_variables(const PyCodeObject *code,
                                             const struct cm_instruction *one);
/* x.NAME is loaded to be called. */
static inline bool
cm_instruction_is_method(const struct cm_instruction *one)
{
    return one->action == ACT_LOAD_METHOD
           || (one->action == ACT_LOAD_ATTR && (one->argument & 1) != 0);
}

/* The one that begins at one->next: at first 0.  False: there are no more. */
bool cm_instruction_next(const struct cm_bytecode *tables,
                         const PyCodeObject *code, struct cm_instruction *one);

#endif
