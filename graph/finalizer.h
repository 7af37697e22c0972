/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FINALIZER_H
#define CM_FINALIZER_H

/* Of the rules of advice (holding.h), that for what weakref.finalize() keeps
 * until its object goes. */

#include <stdbool.h>

#include "holding.h"

bool cm_finalizer_holds(const struct cm_holding *self);
char *cm_finalizer_say(const struct cm_holding *self);

#endif
