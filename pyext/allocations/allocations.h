/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ALLOCATIONS_H
#define CM_ALLOCATIONS_H

/* The device blocks that torch's allocator has given out in this process, as
 * the hooks of allocator_hooks/ tell them.  One table per process; it stays
 * until the process ends, since another thread may be telling an event. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "../../detector/blocks.h"
#include "../../detector/heap.h"
#include "../objects/objects.h"

/* Hooks torch's allocator if it is there; cheap when it is hooked already, or
 * can never be.  `objects` captures the stacks and then lives until the
 * process ends.  With the GIL. */
void cm_allocations_notice(struct cm_objects *objects, bool stacks);
/* The same for memory of the host, as long as it counts: from then on nothing
 * of it is in the table. */
void cm_allocations_notice_host(struct cm_objects *objects, bool stacks,
                                bool counts);
/* Takes the hooks out again; what was seen of devices is kept until they are
 * heard again. */
void cm_allocations_stop(void);
/* True once `objects` has been handed to a hook. */
bool cm_allocations_use(const struct cm_objects *objects);
/* In a forked child: nothing is heard any more. */
void cm_allocations_off(void);

/* Bytes that were allocated so far, in all, as far as we heard. */
uint64_t cm_allocations_bytes(void);
/* Borrowed; NULL: none yet. */
struct cm_blocks *cm_allocations_blocks(void);
/* For blocks that no hook tells of; false: no memory. */
bool cm_allocations_make_table(void);
/* The hook tells events: the blocks are those of now. */
bool cm_allocations_heard(void);
/* And it has told of memory, which another allocator's does not. */
bool cm_allocations_told(void);
/* The blocks of CM_DEVICE_HOST are those of now. */
bool cm_allocations_host_heard(void);
/* "cuda:1"; "cpu" for CM_DEVICE_HOST. */
enum { CM_DEVICE_NAME_BYTES = 32 };
void cm_allocations_device(int device, char name[CM_DEVICE_NAME_BYTES]);
/* "torch slot", "recorder" or "none"; *why lives as long as the process. */
const char *cm_allocations_hook(const char **why);

/* The same, or "host slot" where torch's memory of the host alone is heard. */
const char *cm_allocations_heard_by(void);

/* Each storage of the heap learns of its block; `records` has its texts.  May
 * run in a collection. */
void cm_allocations_explain(struct cm_heap *heap,
                            const struct cm_records *records);
/* Of a storage that was explained: its memory has been given back since.  What
 * is not known to be gone may be. */
bool cm_allocations_gone(const struct cm_storage *storage);

/* [none; raises] blocks that are live and were not seen being allocated: a
 * list of (address, bytes, device, stream or None, site). */
PyObject *cm_allocations_seed(PyObject *module, PyObject *blocks);
/* [none; never] forgets what was seeded, unless a hook keeps it up to date. */
PyObject *cm_allocations_clear(PyObject *module, PyObject *unused);
/* [none; raises] torch's allocator tells nobody (a text says why): its slot is
 * given back until all is started again. */
PyObject *cm_allocations_silent(PyObject *module, PyObject *args);
/* [none; raises] (torch's own recorder is read instead of the hook, why or why
 * not: a text). */
PyObject *cm_allocations_recorder(PyObject *module, PyObject *args);
/* [new; never]: {"hook", "why", "events", ...}; NULL without memory.
 * `no_stacks`: why there are none; NULL: there are. */
PyObject *cm_allocations_status(const char *no_stacks);

#endif
