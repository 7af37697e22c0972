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
repeat(struct cm_store *store, uint32_t first)
{
    if (store->turn && !store->repeated) {
        store->owner.index = first;
    }
    store->nested |= store->turn && store->owner.index > first;
    store->repeated = true;
}

/* One that continues in two places is one. */
static void
keep_loop(struct cm_spans *self, Py_ssize_t first, Py_ssize_t next)
{
    uint32_t i = 0;
    while (i < self->loop_count && self->loops[i].first != first) {
        i++;
    }
    if (i < CM_SPANS_LOOPS) {
        self->loops[i].first = first;
        self->loops[i].next = self->loops[i].end = next;
        self->loop_count += i == self->loop_count;
    }
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
    keep_loop(self, next - argument, next);
    while (i > 0 && (Py_ssize_t)stores[i - 1].unit >= next - argument
           && self->marks < MOST_MARKS) {
        repeat(&stores[--i], (uint32_t)(next - argument));
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

void
cm_spans_exit(struct cm_spans *self, Py_ssize_t at, Py_ssize_t target)
{
    if (self->exit_count < CM_SPANS_EXITS) {
        self->exits[self->exit_count].at = at;
        self->exits[self->exit_count++].target = target;
    }
}

void
cm_spans_return(struct cm_spans *self, Py_ssize_t unit)
{
    if (self->return_count < CM_SPANS_RETURNS) {
        self->returns[self->return_count++] = unit;
    }
    for (uint32_t i = 0; i < self->exit_count; i++) {
        Py_ssize_t target = self->exits[i].target;
        self->exits[i].returns |= target >= self->straight && target <= unit;
    }
}

/* The innermost one.  -1: none. */
static int
loop_of(const struct cm_spans *self, Py_ssize_t unit)
{
    int found = -1;
    for (uint32_t i = 0; i < self->loop_count; i++) {
        if (unit >= self->loops[i].first && unit < self->loops[i].end
            && (found < 0
                || self->loops[i].first > self->loops[found].first)) {
            found = (int)i;
        }
    }
    return found;
}

static bool
is_within(const struct cm_spans *self, int loop, Py_ssize_t unit)
{
    return unit >= self->loops[loop].first && unit < self->loops[loop].end;
}

/* Where the program goes on behind a loop: furthest of where it jumps to,
 * unless that is another loop's next turn. */
static Py_ssize_t
behind(const struct cm_spans *self, int loop)
{
    Py_ssize_t last = self->loops[loop].end;
    for (uint32_t i = 0; i < self->exit_count; i++) {
        if (is_within(self, loop, self->exits[i].at)
            && self->exits[i].target > last) {
            last = self->exits[i].target;
        }
    }
    for (uint32_t i = 0; i < self->loop_count; i++) {
        if (self->loops[i].first < self->loops[loop].first
            && is_within(self, loop, self->loops[i].next)) {
            last = PY_SSIZE_T_MAX;
        }
    }
    return last;
}

/* From 3.14 on a loop that ends another one's turn goes on in its midst. */
static void
extend_loops(struct cm_spans *self)
{
    for (uint32_t i = 0; i < self->loop_count; i++) {
        for (uint32_t j = 0; j < self->loop_count; j++) {
            if (self->loops[j].first > self->loops[i].first
                && self->loops[j].first < self->loops[i].end
                && self->loops[j].next > self->loops[i].end) {
                self->loops[i].end = self->loops[j].next;
            }
        }
    }
}

void
cm_spans_close(struct cm_spans *self)
{
    extend_loops(self);
    for (uint32_t i = 0; i < self->loop_count; i++) {
        self->loops[i].behind = behind(self, (int)i);
    }
}

/* From 3.14 on what a loop returns may stand behind it. */
static bool
returns_behind(const struct cm_spans *self, int loop, Py_ssize_t unit)
{
    bool found = false;
    for (uint32_t i = 0; i < self->exit_count; i++) {
        found |= self->exits[i].returns && self->exits[i].at > unit
                 && is_within(self, loop, self->exits[i].at)
                 && self->exits[i].target >= self->loops[loop].end
                 && self->exits[i].target < self->loops[loop].behind;
    }
    return found;
}

static uint32_t
depth_of(const struct cm_spans *self, Py_ssize_t unit)
{
    const uint32_t most = 3;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < self->loop_count; i++) {
        depth += depth < most && is_within(self, (int)i, unit);
    }
    return depth;
}

void
cm_spans_find(const struct cm_spans *self, struct cm_store *store)
{
    Py_ssize_t unit = (Py_ssize_t)store->unit;
    int loop = loop_of(self, unit);
    store->depth = depth_of(self, unit) & 3;
    if (loop < 0) {
        return;
    }
    store->found = returns_behind(self, loop, unit);
    for (uint32_t i = 0; i < self->return_count; i++) {
        store->found |= self->returns[i] > unit
                        && self->returns[i] < self->loops[loop].end;
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
