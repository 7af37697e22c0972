/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TORCH_SLOT_H
#define CM_TORCH_SLOT_H

/* The torch slot's own, besides its cm_hook_kind in hook.h. */

#include <stdint.h>

/* Events after which the allocator's total was not what the events before add
 * up to: it changed what the events mean, or told some of them elsewhere. */
uint64_t cm_torch_slot_mismatches(void);

#endif
