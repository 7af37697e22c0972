/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One word for the kernel's futex (Drepper, "Futexes are tricky", 2011, the
 * second mutex): two atomic instructions where nobody else wants the lock,
 * inline, which a mutex of the C library does not come down to.
 *
 * All locks stand in one list; handlers of pthread_atfork take every one
 * before a fork and give them back in the parent; in the child they are made
 * new.  Taking in the list's order cannot deadlock, because locks are leaves.
 * Cost of a fork: one lock and unlock for each of a handful of tables. */

#define _GNU_SOURCE
#include "lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h> // abort()
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cm_lock *list;    /* guarded by list_mutex */
static int fork_handlers_error; /* written once, by pthread_once */
static pthread_once_t fork_handlers_once = PTHREAD_ONCE_INIT;

#ifdef CM_DEBUG
static _Thread_local const struct cm_lock *held; /* borrowed; NULL: none */

static void
check(bool holds)
{
    if (!holds) {
        abort();
    }
}

void
cm_lock_check_none(void)
{
    check(held == NULL);
}

void
cm_lock_note_taken(const struct cm_lock *self)
{
    held = self;
}

void
cm_lock_note_given(const struct cm_lock *self)
{
    check(held == self);
    held = NULL;
}
#endif

/* All at once, which nobody else may. */
static void
before_fork(void)
{
    cm_lock_check_none();
    pthread_mutex_lock(&list_mutex);
    for (struct cm_lock *lock = list; lock != NULL; lock = lock->next) {
        cm_lock_take(lock);
        cm_lock_note_given(lock);
    }
}

static void
after_fork_in_parent(void)
{
    for (struct cm_lock *lock = list; lock != NULL; lock = lock->next) {
        cm_lock_note_taken(lock);
        cm_lock_give(lock);
    }
    pthread_mutex_unlock(&list_mutex);
}

static void
after_fork_in_child(void)
{
    for (struct cm_lock *lock = list; lock != NULL; lock = lock->next) {
        atomic_store(&lock->state, 0);
    }
    pthread_mutex_unlock(&list_mutex);
}

static void
add_fork_handlers(void)
{
    fork_handlers_error =
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

enum cm_status
cm_lock_init(struct cm_lock *self)
{
    cm_lock_check_none();
    pthread_once(&fork_handlers_once, add_fork_handlers);
    if (fork_handlers_error != 0) {
        return CM_NO_MEMORY;
    }
    atomic_store(&self->state, 0);
    pthread_mutex_lock(&list_mutex);
    self->previous = NULL;
    self->next = list;
    if (list != NULL) {
        list->previous = self;
    }
    list = self;
    pthread_mutex_unlock(&list_mutex);
    return CM_OK;
}

void
cm_lock_release(struct cm_lock *self)
{
    cm_lock_check_none();
    pthread_mutex_lock(&list_mutex);
    if (self->next != NULL) {
        self->next->previous = self->previous;
    }
    if (self->previous != NULL) {
        self->previous->next = self->next;
    }
    else {
        list = self->next;
    }
    pthread_mutex_unlock(&list_mutex);
}

static void
futex(struct cm_lock *self, int what, uint32_t value)
{
    int before = errno; /* the traced program's */
    syscall(SYS_futex, &self->state, what | FUTEX_PRIVATE_FLAG, value, NULL,
            NULL, 0);
    errno = before;
}

void
cm_lock_wait(struct cm_lock *self)
{
    while (atomic_exchange_explicit(&self->state, 2, memory_order_acquire)
           != 0) {
        futex(self, FUTEX_WAIT, 2);
    }
}

void
cm_lock_wake(struct cm_lock *self)
{
    futex(self, FUTEX_WAKE, 1);
}
