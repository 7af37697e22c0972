/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PASS_H
#define CM_PASS_H

/* What one pass over the instructions (bytecode.c) remembers, and the stores
 * that it finds. */

#include "bytecode.h"
#include "line_table.h"
#include "pushed.h"
#include "sieve.h"
#include "spans.h"

enum {
    CM_PASS_NUMBERS = 8,
    CM_PASS_UNITS = (1 << 17) - 1, /* a store knows its one up to here */
};

struct cm_pass {
    const struct cm_bytecode *tables;
    const PyCodeObject *code;
    struct cm_texts *texts;
    struct cm_store *stores;
    uint32_t count, capacity;
    struct cm_line_table lines;
    Py_ssize_t unit;
    struct pushed stack[CM_PUSHED_DEPTH]; /* the last one first */
    bool just_stored; /* a variable, by the instruction before this one */
    bool fresh;       /* nothing of this statement was a branch */
    uint32_t line;    /* of the instruction before this one */
    bool measured; /* a length was compared, by the instruction before this */
    bool called; /* the instruction before this one made a value: no branch */
    bool left;   /* that returns, raises, or goes back */
    struct cm_spans spans;
    struct cm_sieve sieve;
    bool own; /* what it hands on and its second names are told too */
    struct {
        PyObject *name;
        struct pushed value;
    } numbers[CM_PASS_NUMBERS]; /* n of `n = len(x)`, `n = step % 9`, x[:9] */
    uint32_t number_count;
    struct pushed built[CM_PUSHED_DEPTH]; /* of a tuple, the last one first, */
    unsigned built_count; /* which the instruction before this one has made */
    struct pushed other;  /* x of `x if a else y`, */
    Py_ssize_t joins;     /* which joins y at this instruction */
};

static inline void
cm_pass_push(struct cm_pass *pass, struct pushed last)
{
    last.fresh = pass->fresh;
    cm_pushed_push(pass->stack, last);
}

/* No id for what is no str. */
struct cm_text_id cm_pass_text(const struct cm_pass *pass, PyObject *string);
/* Nothing where there is no room any more. */
void cm_pass_add(struct cm_pass *pass, enum cm_store_kind kind, PyObject *name,
                 PyObject *owner, PyObject *within);
/* x.NAME(...): what x is. */
void cm_pass_add_call(struct cm_pass *pass, PyObject *name,
                      const struct pushed *bound);
/* x[k], k in x, x[k] = ...: what is `of`. */
void cm_pass_add_key(struct cm_pass *pass, enum cm_store_kind kind,
                     PyObject *name, const struct pushed *of,
                     const struct pushed *key);
void cm_pass_add_item(struct cm_pass *pass, const struct pushed *of,
                      const struct pushed *key, const struct pushed *value);
/* `value`: what is stored, as far as it is known.  A constant that is only one
 * branch of an expression (`a or None`) does not open its statement. */
void cm_pass_add_value(struct cm_pass *pass, enum cm_store_kind kind,
                       PyObject *name, PyObject *owner, struct pushed value);
/* del from[k], from[a:b] = ...; `part`: more than one item, or what is old. */
void cm_pass_add_removal(struct cm_pass *pass, const struct pushed *from,
                         bool part);
void cm_pass_add_attribute(struct cm_pass *pass, PyObject *name,
                           PyObject *owner, struct pushed value);
/* A variable is set. */
void cm_pass_add_variable(struct cm_pass *pass, enum cm_store_kind kind,
                          PyObject *name, struct pushed value);
/* The variable that was pushed last may be such a number, or a part. */
void cm_pass_recall(struct cm_pass *pass);
/* a, b, c, d = x, y, None, None: the tuple is made, of so many that were pushed
 * last (0: it is none), and taken apart at once. */
void cm_pass_note_built(struct cm_pass *pass, unsigned count);
void cm_pass_unpack(struct cm_pass *pass, unsigned count);
/* One branch of an expression ends; the instruction is where both meet: a part
 * by either of them is one. */
void cm_pass_jump(struct cm_pass *pass, Py_ssize_t to);
void cm_pass_join(struct cm_pass *pass);
/* Those of a call, as far as they have names. */
void cm_pass_add_arguments(struct cm_pass *pass, unsigned arguments);
void cm_pass_add_parameters(struct cm_pass *pass);
/* The code is left, `returns`: with what was pushed last. */
void cm_pass_add_return(struct cm_pass *pass, bool returns);
/* Once all code is read: where it may return something else too, `if not rows:
 * return []` says nothing. */
void cm_pass_end_returns(struct cm_pass *pass, bool complete);

#endif
