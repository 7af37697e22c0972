/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_CALLBACKS_H
#define CM_CALLBACKS_H

/* The library CUPTI, found at run time, and our one subscription in it.  What
 * a callback means is not known here.
 *
 * Before: one thread at a time calls these, but for cm_callbacks_device(). */

#include <stdbool.h>
#include <stdint.h>

#include "driver_layout.h"

/* Entry points have numbers below this. */
enum { CM_CUPTI_MAX_IDS = 4096 };

/* Finds the library: the one that is in the process, else `where` unless that
 * is NULL, else the one on the loader's path.  On failure *why is a text that
 * lives as long as the process. */
bool cm_callbacks_load(const char *where, const char **why);

/* Before: it is loaded.  The name of an entry point of the driver; NULL: there
 * is none of this number. */
const char *cm_callbacks_name(uint32_t id);

/* Callbacks may come before it returns.  After a failure it is not
 * subscribed. */
bool cm_callbacks_begin(cm_cupti_callback *callback, const char **why);
/* False: this CUPTI does not know it. */
bool cm_callbacks_enable(int domain, uint32_t id);
/* No callback begins afterwards; one that is running may still run. */
void cm_callbacks_end(void);
/* The subscription was taken away: it must not be touched any more. */
void cm_callbacks_forget(void);
/* Whether the callback of this number, which was enabled, still is. */
bool cm_callbacks_enabled(int domain, uint32_t id);

/* From any thread, in a callback too: CUDA's number of the device of this
 * context; -1: not known. */
int cm_callbacks_device(void *context);

#endif
