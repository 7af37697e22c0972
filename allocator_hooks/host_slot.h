/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HOST_SLOT_H
#define CM_HOST_SLOT_H

/* The host slot's own, besides its cm_hook_kind in hook.h. */

#include <stdint.h>

/* Smaller allocations make no event: what is worth a report is not made of
 * them, and programs make many. */
#define CM_HOST_SLOT_LEAST UINT64_C(4096)

/* How many such small allocations there were. */
uint64_t cm_host_slot_small(void);

#endif
