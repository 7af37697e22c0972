/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_REPEAT_H
#define CM_REPEAT_H

/* Which functions run again and again, of the code that a holding has: by the
 * names that are called. */

#include "holding.h"

/* A line of the code is of this kind, and about what has this name. */
bool cm_repeat_has(const struct cm_code *code, enum cm_store_kind kind,
                   struct cm_text_id name);
/* The caller's line is f(x) of a function, or module.f(x); y.f(x) of a method, of
 * which nothing else has the name. */
bool cm_repeat_calls(const struct cm_holding *self,
                     const struct cm_code *caller,
                     const struct cm_store *store, const struct cm_code *code);
/* In a loop of another one, or by one that is. */
bool cm_repeat_is_called(const struct cm_holding *self,
                         const struct cm_code *code);
/* So does this line of it: in a loop, or as its function is. */
bool cm_repeat_runs(const struct cm_holding *self, const struct cm_code *code,
                    const struct cm_store *store);

#endif
