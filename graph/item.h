/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ITEM_H
#define CM_ITEM_H

/* Of the rules of advice (holding.h), that for a container that does not grow,
 * but whose items get something to keep, one after the other:
 * `for row in data: row.prediction = model(row.x)`. */

#include <stdbool.h>

#include "holding.h"

/* An attribute of an item each, which nobody gives it from outside: it is made
 * when it is first asked for, as by functools.cached_property.  So it ends where
 * the container does not get more items, which is not known here. */
bool cm_item_fills(const struct cm_holding *self);

/* What bounds or empties it (bound.h) stands below an item, and is none of the
 * items: a table of hooks, each with a dict that is emptied.  Not where their
 * keys say that no more of them will come, or a line takes them out. */
bool cm_item_has_bound_alone(const struct cm_holding *self);

bool cm_item_is_given(const struct cm_holding *self);
char *cm_item_say(const struct cm_holding *self);
/* The lines that give it; how many. */
uint32_t cm_item_made(const struct cm_holding *self,
                      struct cm_place places[CM_MAX_PLACES]);

#endif
