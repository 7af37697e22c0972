/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HOOK_H
#define CM_HOOK_H

/* One contract for every source of allocation events; a new source is one new
 * file.
 *
 * What holds for all: start() never loads a library of the framework's, never
 * initialises a device and changes nothing when it refuses.  The sink is
 * called on the thread that allocates, perhaps under the allocator's lock and
 * without the GIL: it takes only leaf locks, calls no framework, and never
 * comes back into the hook (each hook guards itself per thread).  stop() puts
 * everything back; an event that another thread is just telling may still
 * arrive, so what the sink needs lives until the process ends. */

#include <stdbool.h>
#include <stdint.h>

#include "../detector/device_blocks.h"
#include "../detector/event.h"
#include "../detector/event_line.h"

struct cm_sink {
    void (*event)(void *context, const struct cm_event *event);
    /* The stack of this thread now; may be NULL (no stacks).  `awaited` tells
     * that it is the stack of the thread that waits for this one. */
    struct cm_site_id (*site)(void *context, bool *awaited);
    void *context;
    /* Where events of this device may be written without a call, under the
     * allocator's own lock; event() takes what finds no room there.  NULL
     * itself, or for this device: event() takes all.  Lives as long as the
     * process. */
    struct cm_event_line *(*line)(void *context, int device);
    /* The host's blocks, which hear its events without a call; what their filter
     * does not have needs no free, of which there are many.  NULL: event()
     * takes all.  Lives as long as the process. */
    struct cm_device_blocks *host;
};

struct cm_hook_kind {
    const char *name; /* "torch slot", "driver", "replay" */
    /* True: events come.  False: refused; *why is a constant text or one that
     * lives as long as the process, for people: what is missing and what to
     * do.  Asked again it tries again.  `where`: a path for replay and, may be
     * NULL, for the driver's library. */
    bool (*start)(const struct cm_sink *sink, const char *where,
                  const char **why);
    /* Accepts a hook that never started. */
    void (*stop)(void);
    /* Events that are kept back, if any, are told now. */
    void (*flush)(void);
    uint64_t (*lost)(void);
};

extern const struct cm_hook_kind cm_torch_slot;
extern const struct cm_hook_kind cm_host_slot;
extern const struct cm_hook_kind cm_driver;
extern const struct cm_hook_kind cm_replay;

#endif
