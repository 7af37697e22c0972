/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TEE_H
#define CM_TEE_H

/* Several iterators of one itertools.tee() refer to what the stream gave, in
 * blocks that are chained.  What is held is held by the one that lags behind,
 * whichever the walk has met first: it becomes the parent. */

#include "reach.h"

/* After the walk.  A parent may then have a larger number than its node. */
void cm_tee_settle(struct cm_reach *reach);

#endif
