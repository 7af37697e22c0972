/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_RESULTS_H
#define CM_RESULTS_H

/* What a call, a sum, an f-string or a tuple leaves of what was pushed, for the
 * pass of bytecode.c. */

#include "opcodes.h"
#include "pass.h"

void cm_results_take(struct cm_pass *pass, enum action action,
                     unsigned argument);
/* Of the two that were pushed last: a length, or an attribute. */
void cm_results_compare(struct cm_pass *pass, unsigned argument);

#endif
