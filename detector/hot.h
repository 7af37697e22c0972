/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HOT_H
#define CM_HOT_H

/* Runs for each allocation, free or tensor of the traced program: the linker
 * puts these functions beside each other, so that they take few pages and
 * cache lines from the program, and give them back. */
#define CM_HOT __attribute__((hot))

#endif
