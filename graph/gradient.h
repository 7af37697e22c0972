/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GRADIENT_H
#define CM_GRADIENT_H

/* Of the rules of advice (holding.h), those for gradients that live through
 * the next forward pass: where the program forgot to clear them, and where
 * its trainer does so only after that pass; and for those that lead to what
 * they were made from. */

#include <stdbool.h>

#include "holding.h"

bool cm_gradient_lingers(const struct cm_holding *self);
char *cm_gradient_say(const struct cm_holding *self);

/* The calls of backward() that make them; 0: none is known. */
uint32_t cm_gradient_made(const struct cm_holding *self,
                          struct cm_place places[CM_MAX_PLACES]);
/* Of ever more parameters, and held by nothing else. */
bool cm_gradient_is_of_more(const struct cm_holding *self);
char *cm_gradient_say_more(const struct cm_holding *self);
/* backward(create_graph=True), and gradients that are set to zero in place. */
bool cm_gradient_keeps_graph(const struct cm_holding *self);
char *cm_gradient_say_graph(const struct cm_holding *self);
/* Lightning's automatic optimization: the program has no line to move. */
bool cm_gradient_is_lightnings(const struct cm_holding *self);
char *cm_gradient_say_lightning(const struct cm_holding *self);
/* Another package's loop, which calls backward() and clears gradients. */
bool cm_gradient_is_packages(const struct cm_holding *self);
char *cm_gradient_say_package(const struct cm_holding *self);

#endif
