/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SUBSCRIPTION_H
#define CM_SUBSCRIPTION_H

/* Events of the driver's memory calls, from this copy of the code: driver.c
 * chooses between the copy in the extension and the one that the driver
 * loaded.  Knows what is allocated also before anybody listens. */

#include <stdbool.h>

#include "hook.h"

/* A hook as hook.h says.  start() after cm_subscription_early() tells first
 * what is allocated by then, without stacks, in no order. */
extern const struct cm_hook_kind cm_subscription;

/* Subscribes with nobody listening yet. */
bool cm_subscription_early(const char *where, const char **why);

/* A constant text, for people: why events no longer come though it was
 * started; NULL: they come, or it is not started.  flush() looks whether they
 * do. */
const char *cm_subscription_trouble(void);

#endif
