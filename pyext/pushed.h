/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PUSHED_H
#define CM_PUSHED_H

#include <Python.h>

#include <stdbool.h>
#include <string.h>

#include "phrase.h" // cm_str_is()

/* What an instruction pushed: at most one of the first two is set. */
struct pushed {
    PyObject *name;
    PyObject *constant;
    PyObject *within; /* of an item: the name of what it was taken from */
    bool fresh;       /* it opens a statement */
    bool attribute;   /* the name is no variable's: the last one of y.x */
    bool empty;       /* a new container without items */
    bool made;        /* by a call, or a container that is written out */
    bool slice;       /* a:b */
    bool part;        /* x[a:b] of `of` */
    bool few;         /* 0 or 1 */
    bool length;      /* len(x) of `of` */
    PyObject *of;     /* x of these two; NULL: what has no name */
    PyObject *called; /* a method: its name */
};

#define CM_PUSHED_DEPTH 8 /* things that are remembered, the last one first */

static inline void
cm_pushed_push(struct pushed stack[CM_PUSHED_DEPTH], struct pushed last)
{
    memmove(stack + 1, stack, (CM_PUSHED_DEPTH - 1) * sizeof *stack);
    stack[0] = last;
}

static inline void
cm_pushed_pop(struct pushed stack[CM_PUSHED_DEPTH], unsigned count)
{
    unsigned kept = count < CM_PUSHED_DEPTH ? CM_PUSHED_DEPTH - count : 0;
    memmove(stack, stack + CM_PUSHED_DEPTH - kept, kept * sizeof *stack);
    memset(stack + kept, 0, (CM_PUSHED_DEPTH - kept) * sizeof *stack);
}

static inline void
cm_pushed_swap(struct pushed stack[CM_PUSHED_DEPTH], unsigned with)
{
    struct pushed last = stack[0], other = {0};
    if (with != 0 && with <= CM_PUSHED_DEPTH) {
        other = stack[with - 1];
        stack[with - 1] = last;
    }
    stack[0] = other;
}

/* a, b = 4, None: the items of a constant, the first one on top. */
static inline void
cm_pushed_unpack(struct pushed stack[CM_PUSHED_DEPTH], unsigned count)
{
    struct pushed whole = stack[0];
    PyObject *items = whole.constant;
    bool known = items != NULL && PyTuple_CheckExact(items)
                 && PyTuple_GET_SIZE(items) == (Py_ssize_t)count;
    cm_pushed_pop(stack, known ? 1 : CM_PUSHED_DEPTH);
    for (unsigned i = known ? count : 0; i > 0; i--) {
        whole.constant = PyTuple_GET_ITEM(items, i - 1);
        whole.few = false;
        cm_pushed_push(stack, whole);
    }
}

/* What the call's function is named; its slot is the one before the arguments,
 * or the one before that. */
static inline PyObject *
cm_pushed_function(const struct pushed stack[CM_PUSHED_DEPTH],
                   unsigned arguments)
{
    if (arguments + 1 >= CM_PUSHED_DEPTH) {
        return NULL;
    }
    const struct pushed *near = &stack[arguments], *far = near + 1;
    return near->called != NULL ? near->called
           : near->name != NULL ? near->name
                                : far->name;
}

static inline bool
cm_sets_attribute(PyObject *function, unsigned arguments)
{
    return (arguments == 3 && cm_str_is(function, "setattr"))
           || ((arguments == 2 || arguments == 3)
               && cm_str_is(function, "__setattr__"));
}

/* From 3.14 on a constant one is a constant. */
static inline bool
cm_is_slice(const struct pushed *key)
{
    return key->slice
           || (key->constant != NULL && PySlice_Check(key->constant));
}

/* 0 or 1; needs no GIL. */
static inline bool
cm_is_few(PyObject *constant)
{
    int overflow = 0;
    long number = constant != NULL && PyLong_CheckExact(constant)
                      ? PyLong_AsLongAndOverflow(constant, &overflow)
                      : 2;
    return overflow == 0 && number < 2;
}

#endif
