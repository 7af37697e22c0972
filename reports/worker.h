/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_WORKER_H
#define CM_WORKER_H

/* A native thread that takes frozen heaps one after the other.  It is started
 * by the first heap, sleeps when there is none, blocks every signal, and ends
 * with cm_worker_free().  After a fork the child has no such thread and no call
 * is legal there: the child gives the memory up as it is. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/heap.h"

struct cm_worker;

typedef void cm_worker_task(void *context, struct cm_heap *heap);

/* `task` runs on the thread for each heap, which is released after it. */
struct cm_worker *cm_worker_new(cm_worker_task *task, void *context);
/* Waits for what is queued, then ends the thread.  Accepts NULL. */
void cm_worker_free(struct cm_worker *self);
/* Takes the contents of `heap` (left empty; one without nodes wakes the thread
 * for what the task does besides).  False: the queue is full, or no
 * thread can be had; the heap is released and counted as dropped. */
bool cm_worker_add(struct cm_worker *self, struct cm_heap *heap);
/* [new] An empty heap, with the room of one that was done with if there is one:
 * who fills it need not ask malloc, which first sorts what the program freed
 * just now. */
struct cm_heap cm_worker_spare(struct cm_worker *self);
/* Waits until nothing is queued or under way; negative seconds: without limit.
 * False when the time was over first. */
bool cm_worker_flush(struct cm_worker *self, double seconds);
uint64_t cm_worker_dropped(struct cm_worker *self);

#endif
