/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_STATE_H
#define CM_STATE_H

/* Of the rules of advice: the state of a recurrent network that is handed on
 * with its graph, `out, (h, c) = lstm(x, (h, c))`, as one tuple. */

#include "holding.h"

bool cm_state_is_tuple(const struct cm_holding *self);
char *cm_state_say_tuple(const struct cm_holding *self);

/* Weights that are computed from those before them, `params = {k: p - rate * g
 * for ...}`, in a dict or a list that each turn makes anew. */
bool cm_state_is_container(const struct cm_holding *self);
char *cm_state_say_container(const struct cm_holding *self);

#endif
