/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GC_LIST_H
#define CM_GC_LIST_H

/* The collector's lists, read from outside: the two words before a tracked
 * object, the heads of the generations, and gc's own C functions without the
 * interpreter in between.  Not for free-threaded builds, which have no lists.
 *
 * The low two bits of both words are flags; the only one read or cleared here
 * is COLLECTING, which every object of the set under collection has and the
 * head of its list has not. */

#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../detector/status.h"
#include "type_set.h"

/* gc's functions, called directly: no recursion check, no frame, no trace.
 * A zeroed one is a valid empty one. */
struct cm_gc_module {
    PyObject *module; /* owned */
    /* All owned; builtin functions of that module. */
    PyObject *get_debug, *set_debug;
    PyObject *get_threshold, *get_count, *get_freeze_count;
};

/* [0 or -1; raises ImportError when gc is not CPython's own] */
int cm_gc_module_init(struct cm_gc_module *self);
void cm_gc_module_release(struct cm_gc_module *self);
/* [-1 when it failed; never] */
long cm_gc_debug(const struct cm_gc_module *self);
void cm_gc_set_debug(const struct cm_gc_module *self, long flags);
/* [never] gc.get_freeze_count(), -1 when it failed. */
Py_ssize_t cm_gc_frozen(const struct cm_gc_module *self);
/* gc's C list of this name ("callbacks", "garbage").  [new; raises] */
PyObject *cm_gc_list(const struct cm_gc_module *self, const char *name);

/* A zeroed one is valid and empty. */
struct cm_objects_array {
    PyObject **items; /* owned; borrowed references */
    size_t count, capacity;
};

void cm_objects_array_release(struct cm_objects_array *self);
/* Room for `more` objects. */
enum cm_status cm_objects_array_reserve(struct cm_objects_array *self,
                                        size_t more) CM_CHECKED;

static inline enum cm_status CM_CHECKED
cm_objects_array_add(struct cm_objects_array *self, PyObject *object)
{
    enum cm_status status = self->count < self->capacity
                                ? CM_OK
                                : cm_objects_array_reserve(self, 1);
    if (status == CM_OK)
        self->items[self->count++] = object;
    return status;
}

#ifndef Py_GIL_DISABLED

/* Some builds (Debian's 3.13.18) put the heads of the generations at addresses
 * that only 4 divides. */
struct cm_gc_head {
    uintptr_t next, prev;
} __attribute__((packed, aligned(4)));

#define CM_GC_FLAGS ((uintptr_t)3)
#define CM_GC_COLLECTING ((uintptr_t)2)

static inline struct cm_gc_head *
cm_gc_of(PyObject *object)
{
    return (struct cm_gc_head *)(void *)object - 1;
}

static inline PyObject *
cm_gc_object(struct cm_gc_head *head)
{
    return (PyObject *)(void *)(head + 1);
}

static inline struct cm_gc_head *
cm_gc_next(const struct cm_gc_head *head)
{
    return (struct cm_gc_head *)(head->next & ~CM_GC_FLAGS);
}

static inline struct cm_gc_head *
cm_gc_prev(const struct cm_gc_head *head)
{
    return (struct cm_gc_head *)(head->prev & ~CM_GC_FLAGS);
}

static inline bool
cm_gc_collecting(const struct cm_gc_head *head)
{
    return (head->prev & CM_GC_COLLECTING) != 0;
}

/* In a list. */
static inline bool
cm_gc_tracked(const struct cm_gc_head *node)
{
    return node->next != 0;
}

/* Takes `node` out of its list and puts it first in that of `head`, where it is
 * not under collection; other flags stay as they are. */
void cm_gc_link_first(struct cm_gc_head *node, struct cm_gc_head *head);

/* Where the generations begin; all borrowed from the interpreter state. */
struct cm_gc_heads {
    bool known;
    bool incremental;             /* CPython 3.14.0 to 3.14.4 */
    struct cm_gc_head *young[3];  /* the three collected ones */
    struct cm_gc_head *permanent; /* NULL when not found */
};

/* Finds the heads and proves them: thresholds and counts beside them are what
 * gc says, and each list closes.  What does not hold is left unknown.
 * Before: `newest` is a GC object that is not tracked.
 * After: it is not tracked.  [none; never] */
void cm_gc_heads_find(struct cm_gc_heads *self, const struct cm_gc_module *gc,
                      PyObject *newest);
/* Where gc.get_debug() reads, just before the heads: proved by setting flags
 * that have no meaning, and setting them back.  NULL: not found. */
const int *cm_gc_debug_find(const struct cm_gc_heads *heads,
                            const struct cm_gc_module *gc);

/* The list that `first` is in is the one that a collection has found, and has
 * nothing else but `twin`: what cm_gc_read_garbage() finds out for any list.
 * Before: `first` has the COLLECTING bit. */
static inline bool
cm_gc_are_alone(PyObject *first, PyObject *twin)
{
    const struct cm_gc_head *one = cm_gc_of(first), *two = cm_gc_of(twin);
    const struct cm_gc_head *head = cm_gc_prev(one);
    return cm_gc_next(one) == two && cm_gc_prev(two) == one
           && cm_gc_next(two) == head && cm_gc_next(head) == one
           && cm_gc_prev(head) == two && cm_gc_collecting(two)
           && !cm_gc_collecting(head);
}

/* Reads the list that `first` is in, which must have one head without the
 * COLLECTING bit, all else with it, and `twin` in it once.  The two are left
 * out; `types` gets those of the others.  CM_BAD_INPUT: it is no such list
 * (nothing that was read counts); CM_NO_MEMORY. */
enum cm_status cm_gc_read_garbage(PyObject *first, const PyObject *twin,
                                  struct cm_objects_array *result,
                                  struct cm_type_set *types) CM_CHECKED;
#endif
#endif
