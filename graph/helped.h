/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HELPED_H
#define CM_HELPED_H

/* What a function of the program's gives back of what it is handed: a part of
 * it, so that what is set to that stays as large as it is. */

#include <stdbool.h>

#include "holding.h"

/* What goes by the name, or what the line makes of it, is handed to the function
 * whose result the store `at` has, which gives back a part of it, or a new one:
 * `x = last(x)`, `x = flush(x)`, `x = last(torch.cat([x, y]))`. */
bool cm_helped_leaves_part(const struct cm_holding *self,
                           const struct cm_code *code, uint32_t at,
                           const char *name);

/* Functions that the holding's code hands something to, by name.  Answers how
 * many, at most `capacity`. */
size_t cm_helped_names(const struct cm_holding *self, struct cm_text_id *names,
                       size_t capacity);

#endif
