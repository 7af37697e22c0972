/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SETTLE_H
#define CM_SETTLE_H

/* Sums that a loop makes and a backward() behind it takes: total = total + x,
 * and then total.backward() where the next turn of the loop around begins with
 * another sum, or the function ends.  Such a sum keeps the graph of each turn,
 * and is meant to.  Needs no GIL. */

#include "pass.h"

/* Marks the stores of variables whose sums are all like that, once all code is
 * read and before the stores' units are forgotten.
 * Cost: a few looks at each instruction for each such variable, and nothing in
 * code that names no backward(). */
void cm_settle_mark(struct cm_pass *pass);

#endif
