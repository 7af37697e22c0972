/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_METRIC_H
#define CM_METRIC_H

/* Of the rules of advice (holding.h), that for a metric of torchmetrics, whose
 * state adds up until reset(). */

#include <stdbool.h>

#include "holding.h"

bool cm_metric_is(const struct cm_holding *self);
/* The line that sets the variable that has it is known, and runs once: no epoch
 * has a metric of its own.  What updates it is in a loop within another one: it
 * is not that of a single pass, which is over when it ends. */
bool cm_metric_outlives_epochs(const struct cm_holding *self);
char *cm_metric_say(const struct cm_holding *self);

#endif
