/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SUMMED_H
#define CM_SUMMED_H

/* What is kept is made of a sum: of `self.sum += x; self.avg = self.sum / n` the
 * graph is that of sum, whichever of the two the way leads to. */

#include "holding.h"

/* The attribute that is added to; 0: none, or the place itself. */
struct cm_text_id cm_summed_in(const struct cm_holding *self);
/* The lines that add to it, or to the place itself; 0: none is known. */
uint32_t cm_summed_made(const struct cm_holding *self,
                        struct cm_place places[CM_MAX_PLACES]);
/* Not `+=` where the line multiplies what it had: x = 0.9 * x + 0.1 * y. */
char *cm_summed_say(const struct cm_holding *self);

/* `sums[name] += x`, of losses with their graphs. */
bool cm_summed_by_key(const struct cm_holding *self);
char *cm_summed_say_by_key(const struct cm_holding *self);

#endif
