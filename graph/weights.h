/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_WEIGHTS_H
#define CM_WEIGHTS_H

/* Of the rules of advice (holding.h), those for a model's weights that are
 * there twice: the dict they were loaded from, or another model; and for those
 * that are made anew with more rows. */

#include <stdbool.h>

#include "holding.h"

bool cm_weights_is_checkpoint(const struct cm_holding *self);
char *cm_weights_say_checkpoint(const struct cm_holding *self);
/* One for each epoch, in a container that grows. */
bool cm_weights_pile_up(const struct cm_holding *self);
char *cm_weights_say_pile(const struct cm_holding *self);
/* What was watched, and nobody has touched. */
bool cm_weights_is_copy(const struct cm_holding *self);
char *cm_weights_say_copy(const struct cm_holding *self);
/* An embedding that each step enlarges; its gradients, and its state in an
 * optimizer, which no name need lead to. */
bool cm_weights_get_larger(const struct cm_holding *self);
char *cm_weights_say_larger(const struct cm_holding *self);

#endif
