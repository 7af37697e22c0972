/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SETTLE_H
#define CM_SETTLE_H

/* Sums that a loop makes and a backward() behind it takes: total = total + x,
 * and then total.backward() where the next turn of the loop around begins with
 * another sum, or the function ends; or `return total`, and a caller's
 * backward() (graph/given.h).  Such a sum keeps the graph of each turn, and is
 * meant to.  Needs no GIL. */

#include "pass.h"

/* Marks the stores of variables whose sums are all like that, and the calls
 * that return what is taken; once all code is read and before the stores' units
 * are forgotten.
 * Cost: a few looks at each instruction for each such variable, and for each
 * call where the code names a backward(); nothing in other code without a loop,
 * or that returns nothing. */
void cm_settle_mark(struct cm_pass *pass);

#endif
