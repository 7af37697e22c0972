/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_EMPTYING_H
#define CM_EMPTYING_H

/* Which lines take out of a container as much as comes, by names: x.clear(),
 * del x[:-n], an append or a pop behind `len(x) < n`; also where x goes by
 * another name: `h = x`, and what trim(x) does to its parameter. */

#include <stdbool.h>

#include "alias.h"
#include "holding.h"

/* What goes by the name in this code, by the store `at`. */
bool cm_emptying_is(const struct cm_holding *self, const struct cm_code *code,
                    uint32_t at, const char *name);

/* append() and its like, not x[k] = y. */
bool cm_emptying_adds(const struct cm_holding *self,
                      const struct cm_store *store, const char *name);
/* pop() and its like, del x[k]: one item. */
bool cm_emptying_removes(const struct cm_holding *self,
                         const struct cm_store *store, const char *name);
/* Any line of the place is about it, or about an item of it. */
bool cm_emptying_is_about(const struct cm_holding *self,
                          const struct cm_store *store, const char *name);

/* A function takes all out of a library's queue of that name:
 * `while not q.empty(): q.get()`, `[q.get() for _ in range(q.qsize())]`. */
bool cm_emptying_takes_all(const struct cm_holding *self, const char *name);

/* Of trim(x): what x goes by in each function of that name. */
void cm_emptying_add_parameters(const struct cm_holding *self,
                                const struct cm_store *handed,
                                struct cm_aliases *all);
/* The parameter of this code that a function of its name is handed. */
struct cm_text_id cm_emptying_parameter(const struct cm_holding *self,
                                        const struct cm_code *code,
                                        const struct cm_store *handed);

/* The caller's line hands something to the code of `to` under that name: trim(x),
 * cache(x), and x.run() of self in run(). */
bool cm_emptying_gives(const struct cm_holding *self,
                       const struct cm_code *caller,
                       const struct cm_store *store,
                       const struct cm_alias *to);
/* What callers hand to the code of `to` under that name, a parameter of it;
 * of self, what they call it on. */
void cm_emptying_add_callers(const struct cm_holding *self,
                             const struct cm_alias *to,
                             struct cm_aliases *all);

/* x[k] = torch.cat([x[k], y]): the line reads the item that it sets. */
bool cm_emptying_extends(const struct cm_holding *self,
                         const struct cm_code *code, uint32_t at,
                         const char *name);

/* x.append(h), where lines of a loop set h to `cell(x, h)` and, now and then, to
 * `h.detach()` or to zeros: with that, another chain begins. */
bool cm_emptying_adds_anew(const struct cm_holding *self, const char *name);

#endif
