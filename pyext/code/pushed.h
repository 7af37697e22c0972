/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PUSHED_H
#define CM_PUSHED_H

#include <Python.h>

#include <stdbool.h>
#include <string.h>

#include "../tables/phrase.h" // cm_str_is()

#define CM_PUSHED_SCALED 4 /* of two products, both sides */

/* What an instruction pushed: at most one of the first two is set. */
struct pushed {
    PyObject *name;
    PyObject *constant;
    PyObject *within;  /* of an item: the name of what it was taken from */
    bool fresh;        /* no branch of its statement came before */
    bool attribute;    /* the name is no variable's: the last one of y.x */
    bool empty;        /* a new container without items, or a dict of such */
    bool made;         /* by a call, or a container that is written out */
    bool slice;        /* a:b */
    bool chosen;       /* of an item: its key is no constant */
    bool part;         /* x[a:b] of `of`, or made of that */
    bool few;          /* 0 or 1 */
    bool length;       /* len(x) of `of` */
    bool excess;       /* and less something: len(x) - n */
    bool before;       /* step - n */
    bool modulo;       /* step % n */
    PyObject *of;      /* x of these two; NULL: what has no name */
    PyObject *called;  /* a method: its name */
    PyObject *object;  /* y of y.x, an attribute or a method */
    PyObject *plain;   /* the same, where that is a variable */
    PyObject *by;      /* f of f(...), what a call has made */
    bool by_other;     /* f is y.f, and y is not self */
    PyObject *from;    /* a text or a tuple: the one variable in it; x.to(y) */
    PyObject *size;    /* len(x), x.shape[1], x.size(1): the variable x */
    PyObject *sizes;   /* x.shape, x.size(), or the method: likewise */
    PyObject *key;     /* of an item: the variable k of y[k] */
    PyObject *whole;   /* made of the whole of what has this name */
    PyObject *operand; /* of an operation: the attribute, the left one first */
    bool sum;          /* of these two, as far as they have names */
    struct summand {
        PyObject *name;
        bool plain; /* a variable, and nothing else */
    } left, right;
    /* of a * x + b * y, each that is multiplied */
    struct scaled {
        PyObject *name;
        bool attribute;
    } scaled[CM_PUSHED_SCALED];
    bool turn;      /* of a loop: what it goes over */
    PyObject *over; /* of that: the name, or the one in enumerate(x) */
    bool listed;    /* the function of a comprehension */
    bool sieved;    /* and that leaves items out */
    bool enters;    /* the __enter__() of a `with` */
};

#define CM_PUSHED_DEPTH 8 /* things that are remembered, the last one first */

/* NAME of x, a variable, says all its sizes. */
static inline PyObject *
cm_pushed_sizes(const struct pushed *of, PyObject *name, const char *wanted)
{
    return !of->attribute && of->name != NULL && cm_str_is(name, wanted)
               ? of->name
               : NULL;
}

/* x.NAME(...) has the shape of x. */
static inline bool
cm_pushed_moves(PyObject *name)
{
    static const char *const names[] = {
        "to",   "cuda",   "cpu",   "pin_memory", "float",      "half",
        "long", "detach", "clone", "bfloat16",   "contiguous", NULL};
    return cm_str_is_one_of(name, names);
}

/* NAME of x.NAME(...), which is as large as x, a variable. */
static inline PyObject *
cm_pushed_moved(const struct pushed *of, PyObject *name)
{
    return !of->attribute && cm_pushed_moves(name) ? of->name : NULL;
}

/* x[key], where x goes by this name: y['x'] is remembered as x too. */
static inline struct pushed
cm_pushed_item(PyObject *of, const struct pushed *key)
{
    bool named = key->constant != NULL && PyUnicode_CheckExact(key->constant);
    return (struct pushed){.name = named ? key->constant : NULL,
                           .within = of,
                           .key = key->attribute ? NULL : key->name,
                           .chosen =
                               key->name != NULL || key->made || key->part,
                           .attribute = true};
}

/* Of {"loss": [], "steps": 0} what was pushed for it: as good as {}. */
static inline bool
cm_pushed_are_empty(const struct pushed stack[CM_PUSHED_DEPTH], unsigned count)
{
    bool one = false, all = count <= CM_PUSHED_DEPTH;
    for (unsigned i = 0; i < count && all; i++) {
        one |= stack[i].empty;
        all = stack[i].empty || stack[i].constant != NULL;
    }
    return one && all;
}

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

/* a, b = x, None: what is to be stored, the last one first. */
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

/* a, b = 4, None: the items of a constant, the first one on top; or parts of
 * what a loop goes over, of x.shape, of y[k]. */
static inline void
cm_pushed_unpack(struct pushed stack[CM_PUSHED_DEPTH], unsigned count)
{
    struct pushed whole = stack[0];
    PyObject *items = whole.constant;
    bool known = items != NULL && PyTuple_CheckExact(items)
                 && PyTuple_GET_SIZE(items) == (Py_ssize_t)count;
    bool parts =
        known || whole.turn || whole.sizes != NULL || whole.key != NULL;
    cm_pushed_pop(stack, parts ? 1 : CM_PUSHED_DEPTH);
    if (parts && !known && !whole.turn) {
        whole = (struct pushed){.fresh = whole.fresh,
                                .within = whole.within,
                                .key = whole.key,
                                .size = whole.sizes};
    }
    for (unsigned i = parts ? count : 0; i > 0; i--) {
        whole.constant = known ? PyTuple_GET_ITEM(items, i - 1) : NULL;
        whole.few = false;
        cm_pushed_push(stack, whole);
    }
}

/* The one variable in so many things, besides constants; NULL: none, or more
 * than one, or what is not known. */
static inline PyObject *
cm_pushed_source(const struct pushed stack[CM_PUSHED_DEPTH], unsigned count)
{
    PyObject *found = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (i < CM_PUSHED_DEPTH && stack[i].constant != NULL) {
            continue;
        }
        PyObject *one = i >= CM_PUSHED_DEPTH || stack[i].attribute ? NULL
                        : stack[i].name != NULL ? stack[i].name
                                                : stack[i].from;
        if (one == NULL || (found != NULL && found != one)) {
            return NULL;
        }
        found = one;
    }
    return found;
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

/* x[a:b], x[:, a:b] */
static inline bool
cm_is_part(const struct pushed *key)
{
    PyObject *items = key->constant;
    bool part = cm_is_slice(key);
    for (Py_ssize_t i = 0; !part && items != NULL && PyTuple_CheckExact(items)
                           && i < PyTuple_GET_SIZE(items);
         i++) {
        part = PySlice_Check(PyTuple_GET_ITEM(items, i));
    }
    return part;
}

static inline PyObject *
cm_pushed_whole(const struct pushed *self)
{
    return self->name != NULL ? self->name : self->whole;
}

/* The result is made of so many things: of a part of x, unless of x too. */
static inline void
cm_pushed_mix(const struct pushed stack[CM_PUSHED_DEPTH], unsigned count,
              struct pushed *result)
{
    PyObject *part = NULL;
    for (unsigned i = 0; i < count && i < CM_PUSHED_DEPTH; i++) {
        PyObject *whole = cm_pushed_whole(&stack[i]);
        part = stack[i].part && stack[i].of != NULL ? stack[i].of : part;
        result->whole = result->whole != NULL ? result->whole : whole;
    }
    for (unsigned i = 0; i < count && i < CM_PUSHED_DEPTH; i++) {
        if (part != NULL && cm_pushed_whole(&stack[i]) == part) {
            result->whole = part;
            part = NULL;
        }
    }
    if (part != NULL && !result->length) {
        result->part = true;
        result->of = part;
    }
}

/* The left one of x + y + z is x. */
static inline struct summand
cm_pushed_summand(const struct pushed *side)
{
    return side->sum ? (struct summand){.name = side->left.name}
                     : (struct summand){.name = side->name,
                                        .plain = side->name != NULL
                                                 && !side->attribute};
}

/* y of `name` = name + y, or y + name; NULL: it is no such sum. */
static inline const struct summand *
cm_pushed_added(const struct pushed *self, PyObject *name)
{
    return !self->sum || name == NULL ? NULL
           : self->left.name == name  ? &self->right
           : self->right.name == name ? &self->left
                                      : NULL;
}

/* x of 0.9 * x + 0.1 * y; of one name a variable and an attribute are two. */
static inline bool
cm_pushed_scales(const struct pushed *self, PyObject *name, bool attribute)
{
    bool found = false;
    for (unsigned i = 0; name != NULL && i < CM_PUSHED_SCALED; i++) {
        found |= self->scaled[i].name == name
                 && self->scaled[i].attribute == attribute;
    }
    return found;
}

static inline void
cm_pushed_add_scaled(struct pushed *self, struct scaled one)
{
    for (unsigned i = 0; one.name != NULL && i < CM_PUSHED_SCALED; i++) {
        if (self->scaled[i].name == NULL) {
            self->scaled[i] = one;
            return;
        }
    }
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
