/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GRAPH_TEE_H
#define CM_GRAPH_TEE_H

/* Of the rules of advice (holding.h), those for iterators of itertools: one of
 * tee() that lags behind, and cycle(), which keeps all that it is given. */

#include <stdbool.h>

#include "holding.h"

bool cm_tee_lags(const struct cm_holding *self);
char *cm_tee_say(const struct cm_holding *self);
bool cm_tee_is_cycle(const struct cm_holding *self);
char *cm_tee_say_cycle(const struct cm_holding *self);
uint32_t cm_tee_made_cycle(const struct cm_holding *self,
                           struct cm_place places[CM_MAX_PLACES]);

#endif
