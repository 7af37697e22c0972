/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Of n warnings some log2(n / CM_BACKLOG_FREE) come after the free ones, and
 * as many again at most that are twice as large as all before. */
#include "backlog.h"

#include <string.h>

#include "../detector/alloc.h"

void
cm_backlog_release(struct cm_backlog *self)
{
    cm_ledger_news_release(&self->waiting);
    *self = (struct cm_backlog){0};
}

enum cm_status
cm_backlog_pass(struct cm_backlog *self, uint64_t bytes,
                struct cm_ledger_news *news)
{
    self->warnings++;
    if (self->warnings > CM_BACKLOG_FREE && self->warnings < self->due
        && bytes / 2 < self->largest) {
        return cm_ledger_news_move(&self->waiting, news);
    }
    self->due = self->warnings * 2;
    self->largest = bytes > self->largest ? bytes : self->largest;
    return cm_ledger_news_move(news, &self->waiting);
}
