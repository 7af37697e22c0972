/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TORCH_STREAM_H
#define CM_TORCH_STREAM_H

/* The CUDA stream on which this thread's torch allocates now. */

#include <stdint.h>

/* Looks for torch's functions; before the first question. */
void cm_torch_stream_find(void);
/* Its handle, 0 the default; CM_STREAM_UNKNOWN.  Any thread, also under the
 * allocator's lock. */
uint64_t cm_torch_stream_now(int device);

#endif
