/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ATTRIBUTE_H
#define CM_ATTRIBUTE_H

/* Of the rules of advice (holding.h), that for an object that gets one more
 * attribute each time: setattr(log, f"x{i}", y), register_buffer(). */

#include <stdbool.h>

#include "holding.h"

bool cm_attribute_piles_up(const struct cm_holding *self);
char *cm_attribute_say(const struct cm_holding *self);
/* The calls that set them; 0: none, or none is known. */
uint32_t cm_attribute_made(const struct cm_holding *self,
                           struct cm_place places[CM_MAX_PLACES]);

#endif
