/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HOT_H
#define CM_HOT_H

/* Runs for each allocation, free or tensor of the traced program: the linker
 * puts these functions beside each other, so that they take few pages and
 * cache lines from the program, and give them back. */
#define CM_HOT __attribute__((hot, aligned(64)))

/* A part of one: in line, so that what it is handed stays in registers. */
#define CM_HOT_PART inline __attribute__((always_inline))

/* What is seldom, out of the way of what is not. */
#define CM_SELDOM(condition) __builtin_expect((condition), 0)

#endif
