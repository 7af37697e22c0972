/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A bounded ring of heaps behind one mutex and two conditions.  The producer
 * holds the GIL, so it never waits: a full ring drops the heap and counts it. */

#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "../detector/alloc.h"

#define MAX_QUEUED 32u
#define MAX_QUEUED_BYTES ((size_t)256 * 1024 * 1024)
#define LINGER_SECONDS 0.02
#define MAX_SPARES 8u
#define MAX_SPARE_BYTES ((size_t)1024 * 1024)

struct cm_worker {
    cm_worker_task *task;
    void *context; /* borrowed */
    pthread_mutex_t lock;
    pthread_cond_t more, idle;
    pthread_t thread;
    /* Guarded by lock, all below. */
    struct cm_heap queue[MAX_QUEUED];
    struct cm_heap spares[MAX_SPARES]; /* empty, with room */
    size_t spare_count, spare_bytes;
    size_t first, count, bytes;
    uint64_t dropped;
    bool started, busy, lingering, ending;
};

struct cm_worker *
cm_worker_new(cm_worker_task *task, void *context)
{
    struct cm_worker *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->more, &monotonic);
    pthread_cond_init(&self->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    self->task = task;
    self->context = context;
    return self;
}

/* Before: lock held, count > 0. */
static struct cm_heap
take_first(struct cm_worker *self)
{
    struct cm_heap heap = self->queue[self->first];
    self->first = (self->first + 1) % MAX_QUEUED;
    self->count--;
    self->bytes -= cm_heap_footprint(&heap);
    return heap;
}

static struct timespec
deadline_after(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (seconds > 1e8) {
        seconds = 1e8;
    }
    double nanoseconds = (seconds - (double)(long)seconds) * 1e9;
    t.tv_sec += (time_t)seconds;
    t.tv_nsec += (long)nanoseconds;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_nsec -= 1000000000L;
        t.tv_sec++;
    }
    return t;
}

/* Before: lock held, nothing queued.  Where one leak was there soon is another:
 * for a while the thread looks again by itself, because to be woken costs the
 * collecting thread more than all the rest of handing over. */
static void
wait_for_more(struct cm_worker *self, bool worked)
{
    struct timespec deadline = deadline_after(LINGER_SECONDS);
    if (worked && !self->ending) {
        self->lingering = true;
        pthread_cond_timedwait(&self->more, &self->lock, &deadline);
        self->lingering = false;
    }
    while (self->count == 0 && !self->ending) {
        pthread_cond_wait(&self->more, &self->lock);
    }
}

/* Keeps its room, or releases it. */
static void
done_with(struct cm_worker *self, struct cm_heap *heap)
{
    size_t bytes = cm_heap_footprint(heap);
    cm_heap_clear(heap);
    pthread_mutex_lock(&self->lock);
    if (self->spare_count < MAX_SPARES
        && self->spare_bytes + bytes <= MAX_SPARE_BYTES) {
        self->spares[self->spare_count++] = *heap;
        self->spare_bytes += bytes;
        *heap = (struct cm_heap){0};
    }
    pthread_mutex_unlock(&self->lock);
    cm_heap_release(heap);
}

static void *
run(void *argument)
{
    struct cm_worker *self = argument;
    bool worked = false;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        if (self->count == 0) {
            wait_for_more(self, worked);
        }
        if (self->count == 0) {
            break;
        }
        worked = true;
        struct cm_heap heap = take_first(self);
        self->busy = true;
        pthread_mutex_unlock(&self->lock);
        self->task(self->context, &heap);
        done_with(self, &heap);
        pthread_mutex_lock(&self->lock);
        self->busy = false;
        pthread_cond_broadcast(&self->idle);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* The user's signal handlers are not for this thread. */
static bool
start_thread(struct cm_worker *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&self->thread, NULL, run, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    self->started = failed == 0;
    return self->started;
}

bool
cm_worker_add(struct cm_worker *self, struct cm_heap *heap)
{
    size_t bytes = cm_heap_footprint(heap);
    pthread_mutex_lock(&self->lock);
    bool room =
        self->count < MAX_QUEUED
        && (self->count == 0 || self->bytes + bytes <= MAX_QUEUED_BYTES);
    bool taken = room && (self->started || start_thread(self));
    if (taken) {
        self->queue[(self->first + self->count) % MAX_QUEUED] = *heap;
        self->count++;
        self->bytes += bytes;
        *heap = (struct cm_heap){0};
        if (!self->lingering || self->count >= MAX_QUEUED / 2) {
            pthread_cond_signal(&self->more);
        }
    }
    else {
        self->dropped += heap->node_count != 0;
    }
    pthread_mutex_unlock(&self->lock);
    cm_heap_release(heap);
    return taken;
}

struct cm_heap
cm_worker_spare(struct cm_worker *self)
{
    struct cm_heap heap = {0};
    pthread_mutex_lock(&self->lock);
    if (self->spare_count != 0) {
        heap = self->spares[--self->spare_count];
        self->spare_bytes -= cm_heap_footprint(&heap);
    }
    pthread_mutex_unlock(&self->lock);
    return heap;
}

bool
cm_worker_flush(struct cm_worker *self, double seconds)
{
    struct timespec deadline = deadline_after(seconds < 0 ? 0 : seconds);
    int answer = 0;
    pthread_mutex_lock(&self->lock);
    pthread_cond_signal(&self->more);
    while ((self->count != 0 || self->busy) && answer != ETIMEDOUT) {
        if (seconds < 0) {
            pthread_cond_wait(&self->idle, &self->lock);
        }
        else {
            answer =
                pthread_cond_timedwait(&self->idle, &self->lock, &deadline);
        }
    }
    bool done = self->count == 0 && !self->busy;
    pthread_mutex_unlock(&self->lock);
    return done;
}

uint64_t
cm_worker_dropped(struct cm_worker *self)
{
    pthread_mutex_lock(&self->lock);
    uint64_t dropped = self->dropped;
    pthread_mutex_unlock(&self->lock);
    return dropped;
}

void
cm_worker_free(struct cm_worker *self)
{
    if (self == NULL) {
        return;
    }
    pthread_mutex_lock(&self->lock);
    self->ending = true;
    bool started = self->started;
    pthread_cond_signal(&self->more);
    pthread_mutex_unlock(&self->lock);
    if (started) {
        pthread_join(self->thread, NULL);
    }
    pthread_cond_destroy(&self->more);
    pthread_cond_destroy(&self->idle);
    pthread_mutex_destroy(&self->lock);
    for (size_t i = 0; i < self->spare_count; i++) {
        cm_heap_release(&self->spares[i]);
    }
    cm_free(self);
}
