/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_INHERIT_H
#define CM_GROWTH_INHERIT_H

/* What a new look at growth does not know any more, and the one before did. */

#include <stdbool.h>

#include "leak.h"

/* `growth` is to take the place of one in the list of `leak`, which may lose
 * its holder and its names to it. */
void cm_growth_inherit(struct cm_leak *leak, struct cm_leak_growth *growth,
                       bool at_end);

#endif
