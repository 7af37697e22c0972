/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "spans.h"

enum { MOST_MARKS = 1 << 16 }; /* in one code */

/* By its address: names are interned.  NULL: there are too many. */
static uint32_t *
times_of(struct cm_spans *self, const PyObject *name)
{
    uint32_t i = 0;
    while (i < self->name_count && self->names[i].name != name) {
        i++;
    }
    if (i == CM_SPANS_NAMES) {
        return NULL;
    }
    if (i == self->name_count) {
        self->names[self->name_count++].name = name;
    }
    return self->names[i].times;
}

void
cm_spans_read(struct cm_spans *self, const PyObject *name, Py_ssize_t unit)
{
    uint32_t *times = times_of(self, name);
    if (times != NULL) {
        times[CM_SPANS_READ] = (uint32_t)unit + 1;
    }
}

/* A store of a variable has no key, and decides on nothing: until the code is
 * read these say when the variable was read and set before. */
void
cm_spans_set(struct cm_spans *self, struct cm_store *store,
             const PyObject *name)
{
    uint32_t *times = times_of(self, name);
    store->decides = times != NULL ? times[CM_SPANS_READ] : UINT32_MAX;
    store->key.index = times != NULL ? times[CM_SPANS_SET] : 0;
    if (times != NULL) {
        times[CM_SPANS_SET] = store->unit + 1;
    }
}

void
cm_spans_forget(struct cm_store *store)
{
    if (store->kind == CM_STORE_LOCAL) {
        store->decides = 0;
        store->key.index = 0;
    }
    if (store->turn) {
        store->owner.index = 0;
    }
}

/* The first one of a loop's turn that touches the variable is no store. */
static bool
carries(const struct cm_store *store, Py_ssize_t first)
{
    return store->kind == CM_STORE_LOCAL && (Py_ssize_t)store->decides > first
           && (Py_ssize_t)store->key.index <= first;
}

/* What a `for` sets has no owner: until the code is read that is its own loop,
 * the first one to be met. */
static void
repeat(struct cm_store *store, uint32_t first, Py_ssize_t returned)
{
    store->found |= !store->repeated && (Py_ssize_t)store->unit < returned;
    if (store->turn && !store->repeated) {
        store->owner.index = first;
    }
    store->nested |= store->turn && store->owner.index > first;
    store->repeated = true;
}

/* Out of a handler is no loop: from 3.12 on these stand behind the rest,
 * before in it, as that of a `with` in the loop.  Where the bound is met, some
 * are told as if they stood in no loop. */
void
cm_spans_loop(struct cm_spans *self, struct cm_store *stores, uint32_t count,
              Py_ssize_t next, unsigned argument)
{
    uint32_t i = count;
    if (PY_VERSION_HEX >= 0x030C0000 && self->handlers > next - argument
        && self->handlers < next) {
        return;
    }
    while (i > 0 && (Py_ssize_t)stores[i - 1].unit >= next - argument
           && self->marks < MOST_MARKS) {
        repeat(&stores[--i], (uint32_t)(next - argument), self->returned);
        stores[i].carried |= carries(&stores[i], next - argument);
        self->marks++;
    }
}

void
cm_spans_branch(struct cm_spans *self, uint32_t count, Py_ssize_t target)
{
    if (count != 0 && self->open_count < CM_SPANS_OPEN) {
        self->open[self->open_count].target = target;
        self->open[self->open_count++].store = count - 1;
    }
}

/* Where the branch leaves, what follows it is the other branch. */
void
cm_spans_reach(struct cm_spans *self, struct cm_store *stores, uint32_t count,
               Py_ssize_t unit, bool leaves)
{
    while (self->open_count > 0
           && self->open[self->open_count - 1].target <= unit) {
        uint32_t store = self->open[--self->open_count].store;
        stores[store].decides = leaves ? UINT32_MAX : count - store - 1;
    }
}
