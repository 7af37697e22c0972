/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GRAPH_TEE_H
#define CM_GRAPH_TEE_H

/* Of the rules of advice (holding.h): an iterator of itertools.tee() that lags
 * behind. */

#include <stdbool.h>

#include "holding.h"

bool cm_tee_lags(const struct cm_holding *self);
char *cm_tee_say(const struct cm_holding *self);

#endif
