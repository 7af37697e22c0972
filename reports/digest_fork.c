/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A digest may be held for as long as a long document takes, so a fork does
 * not wait for it, as it does for the leaf locks (lock.h).  It tries: what it
 * can take is whole in the child as well.  Of what it cannot, the holder is
 * not in the child, and what it was changing is half changed: the child gives
 * that up as it is, and begins anew with a document that was made for it
 * before, since little is safe to call there.  Where there is no memory for
 * one, the fork waits after all.
 *
 * A document has leaf locks, so one is made and released outside lock.c's own
 * handlers, which stand around these: they are registered before. */

#include "digest_private.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cm_digest *list;  /* guarded by list_mutex */
static int fork_handlers_error; /* written once, by pthread_once */
static pthread_once_t fork_handlers_once = PTHREAD_ONCE_INIT;

static void
before_fork(void)
{
    pthread_mutex_lock(&list_mutex);
    for (struct cm_digest *self = list; self != NULL; self = self->next) {
        self->whole_at_fork = pthread_mutex_trylock(&self->lock) == 0;
        if (!self->whole_at_fork
            && cm_digest_make_document(&self->spare) != CM_OK) {
            self->whole_at_fork = pthread_mutex_lock(&self->lock) == 0;
        }
    }
}

static void
after_fork_in_parent(void)
{
    for (struct cm_digest *self = list; self != NULL; self = self->next) {
        if (self->whole_at_fork) {
            pthread_mutex_unlock(&self->lock);
        }
        else {
            cm_leak_release(&self->spare);
        }
    }
    pthread_mutex_unlock(&list_mutex);
}

static void
after_fork_in_child(void)
{
    for (struct cm_digest *self = list; self != NULL; self = self->next) {
        if (self->whole_at_fork) {
            self->writing = false; /* who wrote is not in the child */
            pthread_cond_init(&self->written, NULL);
            pthread_mutex_unlock(&self->lock);
        }
        else {
            *self = (struct cm_digest){.records = self->records,
                                       .next = self->next,
                                       .leak = self->spare};
            cm_digest_begin(self);
        }
    }
    pthread_mutex_unlock(&list_mutex);
}

static void
add_fork_handlers(void)
{
    fork_handlers_error =
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Before: its document is made, which has lock.c register its handlers. */
enum cm_status
cm_digest_outlive_forks(struct cm_digest *self)
{
    pthread_once(&fork_handlers_once, add_fork_handlers);
    if (fork_handlers_error != 0) {
        return CM_NO_MEMORY;
    }
    pthread_mutex_lock(&list_mutex);
    self->next = list;
    list = self;
    pthread_mutex_unlock(&list_mutex);
    return CM_OK;
}

void
cm_digest_forget_forks(struct cm_digest *self)
{
    pthread_mutex_lock(&list_mutex);
    struct cm_digest **at = &list;
    while (*at != NULL && *at != self) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = self->next;
    }
    pthread_mutex_unlock(&list_mutex);
}
