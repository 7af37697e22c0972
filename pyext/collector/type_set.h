/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TYPE_SET_H
#define CM_TYPE_SET_H

/* The types of a collection's garbage, noted while its list is read, when each
 * object is at hand: mostly they are few, and none of them concerns us.  Then
 * nobody need look at the objects again.  A zeroed one is empty. */

#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CM_TYPE_SET_SIZE = 32, CM_TYPE_SET_PROBES = 4 };

struct cm_type_set {
    PyTypeObject *last;
    PyTypeObject *items[CM_TYPE_SET_SIZE]; /* borrowed; NULL: none */
    bool full;                             /* some are not here */
};

static inline void
cm_type_set_add(struct cm_type_set *self, PyTypeObject *type)
{
    if (type == self->last) { /* as neighbours mostly are */
        return;
    }
    self->last = type;
    size_t at = (size_t)((uintptr_t)type >> 5);
    for (size_t i = 0; i < CM_TYPE_SET_PROBES; i++, at++) {
        PyTypeObject **item = &self->items[at % CM_TYPE_SET_SIZE];
        if (*item == NULL || *item == type) {
            *item = type;
            return;
        }
    }
    self->full = true;
}

#endif
