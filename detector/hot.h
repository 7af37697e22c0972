/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HOT_H
#define CM_HOT_H

/* Runs for each allocation, free or tensor of the traced program: the linker
 * puts these functions beside each other, so that they take few pages and
 * cache lines from the program, and give them back. */
#define CM_HOT __attribute__((hot, aligned(64)))

/* Of these, what each event of an allocator runs through, and what it reads of
 * ours: an event comes when the processor has other things in its caches, and a
 * page that is not in there costs more than ten lines of code. */
#define CM_EVENT_PATH                                                         \
    __attribute__((hot, aligned(64), section(".text.sorted.cumem")))
#define CM_EVENT_DATA __attribute__((section("cumem_events")))

/* A part of one: in line, so that what it is handed stays in registers. */
#define CM_HOT_PART inline __attribute__((always_inline))

/* What is seldom, out of the way of what is not. */
#define CM_SELDOM(condition) __builtin_expect((condition), 0)

#endif
