/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MEMORIES_H
#define CM_MEMORIES_H

/* The memory behind objects, that of several views once. */

#include "holders.h"

/* Bytes behind the targets of a group; 0: not known. */
uint64_t cm_memories_bytes(const struct cm_holders_query *query,
                           uint32_t group);

#endif
