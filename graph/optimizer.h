/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GRAPH_OPTIMIZER_H
#define CM_GRAPH_OPTIMIZER_H

/* Of the rules of advice (holding.h), that for an optimizer that is given more
 * and more parameters. */

#include <stdbool.h>

#include "holding.h"

bool cm_optimizer_is_given(const struct cm_holding *self);
char *cm_optimizer_say(const struct cm_holding *self);
/* The calls of add_param_group(); 0: it is none. */
uint32_t cm_optimizer_made(const struct cm_holding *self,
                           struct cm_place places[CM_MAX_PLACES]);

#endif
