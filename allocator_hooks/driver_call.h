/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DRIVER_CALL_H
#define CM_DRIVER_CALL_H

/* What one call of the driver does to physical device memory, read from its
 * arguments.  Not for: host memory, address reservations, memory of other
 * processes (IPC), nodes of graphs, and the old entry points of CUDA 3.
 *
 * A key names a piece of memory.  Linear memory: its address.  What has a
 * handle and no address: the handle with a bit set that no address has, since
 * devices and hosts address 57 bits at most. */

#include <stdbool.h>
#include <stdint.h>

#define CM_KEY_HANDLE (UINT64_C(1) << 63)  /* from cuMemCreate */
#define CM_KEY_ARRAY (UINT64_C(1) << 62)   /* arrays, mipmapped arrays */
#define CM_KEY_MAPPING (UINT64_C(1) << 61) /* an address that is mapped */

enum cm_driver_action {
    CM_DRIVER_ALLOCATE = 1,
    CM_DRIVER_FREE,
    CM_DRIVER_RETAIN,  /* one more holds the handle */
    CM_DRIVER_RELEASE, /* one less */
    CM_DRIVER_MAP,     /* `key` is mapped at `address` */
    CM_DRIVER_UNMAP,
    CM_DRIVER_CONTEXT_GONE,
    CM_DRIVER_DEVICE_GONE /* its primary context is reset */
};

struct cm_driver_call {
    uint64_t key;
    uint64_t bytes;  /* of an allocation, of a mapping */
    uint64_t stream; /* CM_STREAM_UNKNOWN */
    uint64_t address;
    uint64_t context; /* that is gone */
    int device;       /* -1: the current context's */
};

struct cm_driver_entry {
    const char *name; /* as CUPTI names it */
    enum cm_driver_action action;
    /* Told when the call has succeeded.  Else told when it begins, since from
     * its end on another thread may be given the same address: a call that
     * then fails, as it does for a dead context, counts as done. */
    bool at_exit;
    /* False: it does nothing to memory of ours.  `params` as CUPTI gives
     * it. */
    bool (*read)(const void *params, struct cm_driver_call *result);
};

/* NULL: not one of ours. */
const struct cm_driver_entry *cm_driver_entry_named(const char *name);

/* Bytes of an array's elements; 0: a format that is not known, or no memory
 * of its own. */
uint64_t cm_driver_array_bytes(uint64_t width, uint64_t height, uint64_t depth,
                               int format, unsigned channels, unsigned flags);

#endif
