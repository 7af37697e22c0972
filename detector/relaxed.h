/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_RELAXED_H
#define CM_RELAXED_H

/* Numbers that one thread writes and any may read, each for itself: the same
 * instructions as for plain ones, which a locked addition is not. */

#include <stdatomic.h>

#define CM_GET(number) atomic_load_explicit(number, memory_order_relaxed)
#define CM_SET(number, value)                                                 \
    atomic_store_explicit(number, value, memory_order_relaxed)
/* Of two threads that do this at a time one may be lost. */
#define CM_ADD(number, value) CM_SET(number, CM_GET(number) + (value))

#endif
