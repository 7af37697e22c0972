/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_BOUND_H
#define CM_BOUND_H

/* Whether what piles up at a place (holding.h) does so to an end that is
 * written down somewhere: then growth is no leak, or not yet. */

#include <stdbool.h>

#include "holding.h"

/* The program has said how many at most, or torch does: LBFGS's history. */
bool cm_bound_is_known(const struct cm_holding *self);
/* A line empties it now and then: at the end of an epoch, as a rule; or it is
 * a memo (memo.h) that an epoch fills. */
bool cm_bound_is_emptied(const struct cm_holding *self);

/* Of the rules of advice: a metric that adds up until reset(). */
bool cm_bound_is_metric(const struct cm_holding *self);
char *cm_bound_say_metric(const struct cm_holding *self);

#endif
