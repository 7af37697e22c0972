/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_THREAD_H
#define CM_THREAD_H

/* Of the rules of advice (holding.h), that for threads which never end: each has
 * the arguments that it was given.  Thread.run() is the library's own, so no
 * variable of its is the program's to drop.  O(length of the names). */

#include <stdbool.h>

#include "holding.h"

bool cm_thread_keeps_arguments(const struct cm_holding *self);
char *cm_thread_say(const struct cm_holding *self);

#endif
