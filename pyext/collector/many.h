/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MANY_H
#define CM_MANY_H

/* How many references are left to each of a few objects: those that more refer
 * to than the byte counts which a trial has for all (trial.c).  Types and the
 * globals of a module are such.  A zeroed one is a valid empty one. */

#include <Python.h>

#include <stddef.h>
#include <stdint.h>

#include "../../detector/status.h"

struct cm_many_count {
    const PyObject *object; /* NULL: this entry is free; never followed */
    int64_t left;
};

struct cm_many {
    struct cm_many_count *counts; /* owned; open addressing */
    size_t capacity, count;       /* 0 or a power of two; in use */
};

void cm_many_release(struct cm_many *self);
/* Replaces the count of an object that is there. */
enum cm_status cm_many_set(struct cm_many *self, const PyObject *object,
                           int64_t left) CM_CHECKED;

static inline size_t
cm_many_place(const struct cm_many *self, const PyObject *object)
{
    uint64_t bits = ((uintptr_t)object >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    size_t place = (size_t)(bits >> 32) & (self->capacity - 1);
    while (self->counts[place].object != NULL
           && self->counts[place].object != object)
        place = (place + 1) & (self->capacity - 1);
    return place;
}

/* Borrowed.  Before: the object is there. */
static inline int64_t *
cm_many_left(const struct cm_many *self, const PyObject *object)
{
    return &self->counts[cm_many_place(self, object)].left;
}

#endif
