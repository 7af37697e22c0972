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

/* x[k] = x[k][-n:], x[k] = last(torch.cat([x[k], y])), where x goes by the name;
 * or this line sets x[k] to what another line of the code cuts so. */
bool cm_helped_cuts_item(const struct cm_holding *self,
                         const struct cm_code *code, uint32_t at,
                         const char *name);

/* What is stored is y.clone() or its like. */
bool cm_helped_moves(const struct cm_holding *self,
                     const struct cm_store *store);

/* Functions that the program's code hands something to, or whose results it
 * stores, by name.  Answers how many, at most `capacity`. */
size_t cm_helped_names(const struct cm_holding *self, struct cm_text_id *names,
                       size_t capacity);

#endif
