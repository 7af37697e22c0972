/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LOCK_H
#define CM_LOCK_H

/* A leaf mutex that survives fork().  fork() waits until no thread holds any
 * of these locks, so a child never inherits one that is held, nor data that
 * its holder was changing.
 *
 * Leaf: while one is held, no other lock is taken, nothing of the user's runs
 * and the process does not fork. */

#include <pthread.h>

#include "status.h"

struct cm_lock {
    pthread_mutex_t mutex;
    struct cm_lock *next; /* borrowed; guarded by the list's own mutex */
    struct cm_lock *previous;
};

/* The lock must not move until it is released. */
enum cm_status cm_lock_init(struct cm_lock *self) CM_CHECKED;
/* Before: cm_lock_init answered CM_OK, and nobody holds the lock. */
void cm_lock_release(struct cm_lock *self);

void cm_lock_take(struct cm_lock *self);
void cm_lock_give(struct cm_lock *self);

#endif
