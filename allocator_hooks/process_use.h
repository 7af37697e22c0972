/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PROCESS_USE_H
#define CM_PROCESS_USE_H

/* Who uses a device's memory: this process, others, nobody.  The truth beside
 * which the sums of events are put: CUDA's contexts, code and whatever no
 * allocator tells of is in here too.
 *
 * Never loads or initialises CUDA, never makes a context.  Asks the driver
 * (NVML), 0.03 ms a call and 0.4 ms the first time on an H200: call it without
 * the GIL. */

#include <stdbool.h>
#include <stdint.h>

#define CM_USE_UNKNOWN UINT64_MAX

/* Bytes; each may be CM_USE_UNKNOWN. */
struct cm_process_use {
    uint64_t total, used, free; /* of the device */
    uint64_t own, others;       /* parts of `used` */
};

/* `cuda_device`: as CUDA numbers devices in this process.  True: at least
 * total and free are known.  *why is a constant text for people, or NULL when
 * all is known; when not true it says why nothing is. */
bool cm_process_use(int cuda_device, struct cm_process_use *result,
                    const char **why);

#endif
