/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_ANEW_H
#define CM_GROWTH_ANEW_H

/* What was seen so far was something else than what begins now: setting up
 * before the first iterations, or training before slices of time. */

#include <stdbool.h>
#include <stdint.h>

#include "site_growth.h"

/* As if this one were the first.  At its end, before it is judged.  Of a leak
 * that somebody may have `heard` of it is remembered that he did. */
void cm_growth_begin_anew(struct cm_growth *self, int64_t iteration,
                          bool heard);

/* Slices of time begin after iterations: the same for what nobody was told of;
 * the rest is told as it was.  [Whether there is any] */
bool cm_growth_begin_slices(struct cm_growth *self, int64_t iteration);

/* They are over: the same for what came in them, and nobody `heard` of. */
void cm_growth_end_slices(struct cm_growth *self, int64_t iteration,
                          bool heard);

#endif
