/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_VIEW_H
#define CM_VIEW_H

/* Of the rules of advice (holding.h), that for views: a row of an output that
 * is kept keeps the memory of all of it. */

#include <stdbool.h>

#include "holding.h"

bool cm_view_is_kept(const struct cm_holding *self);
char *cm_view_say(const struct cm_holding *self);

#endif
