/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "spans.h"

enum { MOST_MARKS = 1 << 16 }; /* in one code */

/* Out of a handler is no loop (3.12 on).  Where the bound is met, some are told
 * as if they stood in no loop. */
void
cm_spans_loop(struct cm_spans *self, struct cm_store *stores, uint32_t count,
              Py_ssize_t next, unsigned argument)
{
    uint32_t i = count;
    if (self->handlers > next - argument && self->handlers < next) {
        return;
    }
    while (i > 0 && (Py_ssize_t)stores[i - 1].unit >= next - argument
           && self->marks < MOST_MARKS) {
        stores[--i].repeated = true;
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
