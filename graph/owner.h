/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_OWNER_H
#define CM_OWNER_H

/* Who has a container, on the way to it, is another one each epoch:
 * `meter = Meter()` in the loop over them, `self.store = Store()` where one
 * ends.  What piles up goes with it. */

#include "holding.h"

bool cm_owner_is_another(const struct cm_holding *self);

#endif
