/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SAVED_H
#define CM_SAVED_H

/* Of the rules of advice (holding.h), that for a custom autograd Function that
 * keeps a tensor as an attribute of its ctx, which C++ alone holds, or nobody:
 * the tensor's own graph, where torch would have to be told of it by
 * ctx.save_for_backward(). */

#include <stdbool.h>

#include "holding.h"

bool cm_saved_on_context(const struct cm_holding *self);
char *cm_saved_say(const struct cm_holding *self);
/* The lines that set the attribute; 0: none is known. */
uint32_t cm_saved_made(const struct cm_holding *self,
                       struct cm_place places[CM_MAX_PLACES]);

#endif
