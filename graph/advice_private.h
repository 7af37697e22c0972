/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ADVICE_PRIVATE_H
#define CM_ADVICE_PRIVATE_H

/* What the sentences of advice.h share. */

#include "advice.h"

struct cm_name cm_advice_type_name(const struct cm_cycle *cycle,
                                   uint32_t node);
/* Of the code of a function, a frame, a generator. */
struct cm_name cm_advice_callable_name(const struct cm_cycle *cycle,
                                       uint32_t node);
/* "f" of `self.f`. */
struct cm_name cm_advice_method_name(const struct cm_cycle *cycle,
                                     uint32_t method);
/* Of what the edge leads to. */
enum cm_species cm_advice_species(const struct cm_cycle *cycle, uint32_t edge);
bool cm_advice_leads_into_container(const struct cm_cycle *cycle,
                                    uint32_t edge);
/* Tuples and frozen sets cannot be. */
bool cm_advice_can_be_cleared(const struct cm_cycle *cycle, uint32_t edge);
/* module.forward = ...: it is called as the class's method that it hides. */
bool cm_advice_hides_method(const struct cm_cycle *cycle, uint32_t edge);
/* Can the edge lead to what it leads to through a weak reference? */
bool cm_advice_can_be_weak(const struct cm_cycle *cycle, uint32_t edge);
/* `before`, and "set X.attr = None", "clear X.attr" for what leads into a
 * container, or "del X.attr" where the class's own then speaks again.  Returns
 * a new text, NULL when memory ran out. */
char *cm_advice_clearing(const struct cm_cycle *cycle, uint32_t edge,
                         const char *object, const char *before);

/* How the function or the partial `maker` of an attribute is to have what it
 * keeps.  Returns a new text, NULL when memory ran out. */
char *cm_advice_captured(const struct cm_cycle *cycle,
                         const struct cm_suspect *suspect, const char *object);

#endif
