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
 * a memo (memo.h) that an epoch fills, or a sum that goes with its graph where
 * a backward() behind the loop, or the caller's, has taken it. */
bool cm_bound_is_emptied(const struct cm_holding *self);
/* Or sets it, one of its places, or what is added to it, to something else. */
bool cm_bound_is_made_anew(const struct cm_holding *self);

/* The next turn of a loop may find in the variable what this one has left
 * there: it is read before it is set.  A function without a loop leaves
 * nothing. */
bool cm_bound_is_carried(const struct cm_records *records,
                         struct cm_code_id code, struct cm_text_id name);

/* Each turn of a loop sets it, before it reads it. */
bool cm_bound_is_renewed(const struct cm_records *records,
                         struct cm_code_id code, struct cm_text_id name);

/* Of the rules of advice: what would empty it is not called. */
bool cm_bound_is_uncalled(const struct cm_holding *self);
char *cm_bound_say_uncalled(const struct cm_holding *self);

#endif
