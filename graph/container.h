/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_CONTAINER_H
#define CM_CONTAINER_H

/* Of the rules of advice (holding.h), those for a container that is filled and
 * never emptied. */

#include <stdbool.h>

#include "holding.h"

/* What the place has in it grows, not the place: a dict of lists. */
bool cm_container_is_of_others(const struct cm_holding *self);
char *cm_container_say_each(const struct cm_holding *self);

/* Objects that are added, each with a container of its own: not those grow. */
bool cm_container_has_objects(const struct cm_holding *self);
char *cm_container_say_objects(const struct cm_holding *self);

/* A dict that the whole program can reach: by a module or a class. */
bool cm_container_is_global(const struct cm_holding *self);
char *cm_container_say_bound(const struct cm_holding *self);

/* Of a table of modules that are made once, each with a container that grows:
 * the step of that container; 0: it is none. */
size_t cm_container_of_modules(const struct cm_holding *self);

/* Of a place with the same things in it for ever, tensors of which get longer:
 * the step of the tensor, an attribute or a buffer that is set anew; 0: none. */
size_t cm_container_of_longer(const struct cm_holding *self);

/* A container with as many tensors as before, of which some get longer. */
bool cm_container_has_longer(const struct cm_holding *self);
/* By lines of the program's that set its items. */
bool cm_container_is_set_longer(const struct cm_holding *self);
char *cm_container_say_longer(const struct cm_holding *self);

/* Of a place with the same modules or parameters for ever, each with hooks: the
 * step of such a table of hooks; 0: none. */
size_t cm_container_of_hooks(const struct cm_holding *self);

/* Of a threading.local(), which has an attribute for each thread: the step of the
 * container that such a one is; 0: none. */
size_t cm_container_of_threads(const struct cm_holding *self);

bool cm_container_grows(const struct cm_holding *self);
char *cm_container_say(const struct cm_holding *self);

/* Its modules are ever more: layers that are added to a ModuleList, or to the
 * model. */
bool cm_container_has_modules(const struct cm_holding *self);
char *cm_container_say_modules(const struct cm_holding *self);

#endif
