/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_KEPT_H
#define CM_KEPT_H

/* Of the rules of advice (holding.h), those that go by what is kept in the
 * container, or by what kind that is: clearing it would be wrong or not
 * enough. */

#include <stdbool.h>

#include "holding.h"
#include "way.h"

/* "value" of `self.values.append(value)`, the line that fills the place; NULL
 * where that is no variable. */
const char *cm_kept_argument(const struct cm_holding *self,
                             const struct cm_way_name *place);

/* That line appends what has no name: `self.norms.append(x.norm())`. */
bool cm_kept_is_expression(const struct cm_holding *self,
                           const struct cm_way_name *place);

/* Methods of objects that are done: listeners nobody took out. */
bool cm_kept_are_methods(const struct cm_holding *self);
char *cm_kept_say_methods(const struct cm_holding *self);

/* asyncio's tasks, in a set or a list. */
bool cm_kept_are_tasks(const struct cm_holding *self);
char *cm_kept_say_tasks(const struct cm_holding *self);

/* Values of a WeakKeyDictionary that lead to their keys. */
bool cm_kept_by_weak_keys(const struct cm_holding *self);
char *cm_kept_say_weak_keys(const struct cm_holding *self);

/* A library's queue, and a deque without a length. */
bool cm_kept_in_queue(const struct cm_holding *self);
char *cm_kept_say_queue(const struct cm_holding *self);
bool cm_kept_in_deque(const struct cm_holding *self);
char *cm_kept_say_deque(const struct cm_holding *self);

/* What a person calls the thing that is kept, else `otherwise`; "x" for a "loss"
 * that the function which keeps it does not know. */
const char *cm_kept_name(const struct cm_holding *self, const char *otherwise);

#endif
