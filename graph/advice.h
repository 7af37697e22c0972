/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ADVICE_H
#define CM_ADVICE_H

/* The sentence for one cycle, with its names: what a person writes instead.
 * One builder for each shape of suspect.h.  Each returns a new text, NULL when
 * memory ran out. */

#include "made.h"
#include "suspect.h"

typedef char *cm_advice_builder(const struct cm_cycle *cycle,
                                const struct cm_suspect *suspect,
                                const struct cm_made *made);

/* `advice`, which it takes over, and the attributes of suspect->also. */
char *cm_advise_others(const struct cm_cycle *cycle,
                       const struct cm_suspect *suspect, char *advice);

cm_advice_builder cm_advise_hook;
cm_advice_builder cm_advise_packed;
cm_advice_builder cm_advise_lambda;
cm_advice_builder cm_advise_method;
cm_advice_builder cm_advise_partial;
cm_advice_builder cm_advise_exception;
cm_advice_builder cm_advise_kept_exception;
cm_advice_builder cm_advise_frame;
cm_advice_builder cm_advise_generator;
cm_advice_builder cm_advise_class;
cm_advice_builder cm_advise_recursion;
cm_advice_builder cm_advise_cell;
cm_advice_builder cm_advise_own_dict;
cm_advice_builder cm_advise_self;
cm_advice_builder cm_advise_back_link;
cm_advice_builder cm_advise_container;
cm_advice_builder cm_advise_unknown;

#endif
