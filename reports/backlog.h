/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_BACKLOG_H
#define CM_BACKLOG_H

/* So that a program with hundreds of different findings does not fill its log:
 * the first warnings pass as they come, later ones wait and are told together
 * once there are as many as before.  What is twice as large as all that was
 * told never waits.  Not guarded: one thread at a time. */

#include <stdint.h>

#include "ledger.h"

/* Warnings that pass one by one. */
#define CM_BACKLOG_FREE 32

/* A zeroed value is valid and empty. */
struct cm_backlog {
    struct cm_ledger_news waiting;
    uint64_t warnings, due; /* so many so far; what waits is told at `due` */
    uint64_t largest;       /* bytes of the largest finding that passed */
};
void cm_backlog_release(struct cm_backlog *self);

/* One warning's news, of which the largest finding has `bytes`.  After: `news`
 * is what is to be told now, with all that waited, or is empty and waits. */
enum cm_status cm_backlog_pass(struct cm_backlog *self, uint64_t bytes,
                               struct cm_ledger_news *news) CM_CHECKED;

#endif
