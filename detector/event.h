/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_EVENT_H
#define CM_EVENT_H

/* One thing that happened to device memory, as its allocator told it: plain
 * data, so that a hook, a replay file and a test give the same. */

#include <stdbool.h>
#include <stdint.h>

#include "records.h"

enum cm_event_kind {
    CM_EVENT_ALLOCATE = 1,
    CM_EVENT_FREE,
    CM_EVENT_SEGMENT,      /* an allocator took memory from the driver */
    CM_EVENT_SEGMENT_FREE, /* and gave it back */
    CM_EVENT_OUT_OF_MEMORY /* bytes: what was asked for */
};

#define CM_STREAM_UNKNOWN UINT64_MAX

/* More devices than any machine has; a higher number is counted as lost.
 * Memory of the host has the number that CUDA gives the CPU. */
enum { CM_MAX_DEVICES = 64, CM_DEVICE_HOST = -1 };

struct cm_event {
    uint64_t address; /* on the device; 0 for out of memory */
    uint64_t bytes;   /* as the allocator rounds them; may be 0 for a free */
    uint64_t stream;  /* its handle, 0 the default; CM_STREAM_UNKNOWN */
    /* What the allocator holds on this device after the event; 0 where it
     * does not say. */
    uint64_t allocated, reserved;
    uint64_t time_ns; /* CLOCK_MONOTONIC, a few ms coarse; 0: not told */
    uint32_t thread;  /* the kernel's thread id; 0: not known */
    struct cm_site_id site;
    int16_t device; /* CM_DEVICE_HOST */
    uint8_t kind;   /* enum cm_event_kind */
    bool awaited;   /* site is of the thread that waits for this one, as in
                    * backward() */
    bool doubtful;  /* a free of what perhaps was never told */
    bool in_order;  /* the allocator holds a lock of its own that lets no two
                     * events of this device come at a time */
    /* The native library that asked, for cm_caller_name(); 0: not known. */
    uint16_t library;
};

#endif
