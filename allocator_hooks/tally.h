/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TALLY_H
#define CM_TALLY_H

/* Turns calls of the driver into events, and keeps what is allocated: for
 * memory that goes without a call of its own, and for a listener that comes
 * late.  There is one; it does not know where calls come from.
 *
 * Open, close and listen: by one thread at a time, open first.  Calls may come
 * from any thread, also after it was closed. */

#include <stdint.h>

#include "../detector/status.h"
#include "driver_call.h"
#include "hook.h"

/* From now on it keeps what is allocated. */
enum cm_status cm_tally_open(void) CM_CHECKED;
/* Forgets everything. */
void cm_tally_close(void);

/* Before: it is open and nobody listens.  Tells what is allocated, without
 * stacks, in no order; then events as they come.  CM_NO_MEMORY: nothing was
 * told and nobody listens. */
enum cm_status cm_tally_listen(const struct cm_sink *sink) CM_CHECKED;

/* `call->device` is known, or -1.  `context`: what goes when it does. */
void cm_tally_call(enum cm_driver_action action,
                   const struct cm_driver_call *call, uint64_t context);

/* Events that were not told, since the process began. */
uint64_t cm_tally_lost(void);

#endif
