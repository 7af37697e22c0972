/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MEMO_H
#define CM_MEMO_H

/* A dict that a line fills only with what is not in it yet: what was computed
 * once is found there when it is wanted again. */

#include <stdbool.h>

#include "holding.h"

bool cm_memo_is(const struct cm_holding *self);
/* Its keys come from a set, so that it is full after an epoch. */
bool cm_memo_fills(const struct cm_holding *self);
/* The same of what functools.lru_cache() keeps without a size. */
bool cm_memo_fills_cache(const struct cm_holding *self);

#endif
