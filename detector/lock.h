/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LOCK_H
#define CM_LOCK_H

/* A leaf mutex that survives fork().  fork() waits until no thread holds any
 * of these locks, so a child never inherits one that is held, nor data that
 * its holder was changing.
 *
 * Leaf: while one is held, no other lock is taken, made or released, nothing
 * of the user's runs and the process does not fork.  A debug build aborts
 * where a thread does so. */

#include <stdatomic.h>
#include <stdint.h>

#include "status.h"

struct cm_lock {
    _Atomic uint32_t state; /* 0 free, 1 held, 2 held and waited for */
    struct cm_lock *next;   /* borrowed; guarded by the list's own mutex */
    struct cm_lock *previous;
};

/* The lock must not move until it is released. */
enum cm_status cm_lock_init(struct cm_lock *self) CM_CHECKED;
/* Before: cm_lock_init answered CM_OK, and nobody holds the lock. */
void cm_lock_release(struct cm_lock *self);

/* What take and give do where another thread wants it too. */
void cm_lock_wait(struct cm_lock *self);
void cm_lock_wake(struct cm_lock *self);

/* What a debug build knows of the calling thread. */
#ifdef CM_DEBUG
void cm_lock_check_none(void);
void cm_lock_note_taken(const struct cm_lock *self);
void cm_lock_note_given(const struct cm_lock *self);
#else
static inline void
cm_lock_check_none(void)
{
}

static inline void
cm_lock_note_taken(const struct cm_lock *self)
{
    (void)self;
}

static inline void
cm_lock_note_given(const struct cm_lock *self)
{
    (void)self;
}
#endif

static inline void
cm_lock_take(struct cm_lock *self)
{
    uint32_t is_free = 0;
    cm_lock_check_none();
    if (!atomic_compare_exchange_strong_explicit(&self->state, &is_free, 1,
                                                 memory_order_acquire,
                                                 memory_order_relaxed)) {
        cm_lock_wait(self);
    }
    cm_lock_note_taken(self);
}

static inline void
cm_lock_give(struct cm_lock *self)
{
    cm_lock_note_given(self);
    if (atomic_exchange_explicit(&self->state, 0, memory_order_release) == 2) {
        cm_lock_wake(self);
    }
}

#endif
