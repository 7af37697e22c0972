/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DEVICE_COUNT_H
#define CM_DEVICE_COUNT_H

/* What to call the device of memory whose framework does not say which: in a
 * process that sees one CUDA device it can be no other.  Guarded by the GIL. */

#include <stddef.h>

/* Asks the CUDA driver once it is loaded and initialised, which is never done
 * here; gives the GIL back meanwhile, so not inside a collection. */
void cm_device_count_notice(void);
/* Forgets the answer. */
void cm_device_count_forget(void);
/* "cuda:<index>"; below 0 (not known): "cuda:0" when there is one, "cuda". */
void cm_cuda_name(long index, char *device, size_t room);

#endif
