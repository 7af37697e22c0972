/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* All locks stand in one list; handlers of pthread_atfork take every one
 * before a fork and give them back in the parent.  In the child they are made
 * new instead: POSIX lets only the thread that locked a mutex unlock it, and
 * checkers see the child's thread as another one.  Taking in the list's order
 * cannot deadlock, because locks are leaves.  Cost of a fork: one lock and
 * unlock for each of a handful of tables. */

#include "lock.h"

#include <stddef.h>

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cm_lock *list;    /* guarded by list_mutex */
static int fork_handlers_error; /* written once, by pthread_once */
static pthread_once_t fork_handlers_once = PTHREAD_ONCE_INIT;

static void
before_fork(void)
{
    pthread_mutex_lock(&list_mutex);
    for (struct cm_lock *lock = list; lock != NULL; lock = lock->next) {
        pthread_mutex_lock(&lock->mutex);
    }
}

static void
after_fork_in_parent(void)
{
    for (struct cm_lock *lock = list; lock != NULL; lock = lock->next) {
        pthread_mutex_unlock(&lock->mutex);
    }
    pthread_mutex_unlock(&list_mutex);
}

static void
after_fork_in_child(void)
{
    for (struct cm_lock *lock = list; lock != NULL; lock = lock->next) {
        pthread_mutex_init(&lock->mutex, NULL);
    }
    pthread_mutex_init(&list_mutex, NULL);
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
    pthread_once(&fork_handlers_once, add_fork_handlers);
    if (fork_handlers_error != 0) {
        return CM_NO_MEMORY;
    }
    if (pthread_mutex_init(&self->mutex, NULL) != 0) {
        return CM_NO_MEMORY;
    }
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
    pthread_mutex_destroy(&self->mutex);
}

void
cm_lock_take(struct cm_lock *self)
{
    pthread_mutex_lock(&self->mutex);
}

void
cm_lock_give(struct cm_lock *self)
{
    pthread_mutex_unlock(&self->mutex);
}
