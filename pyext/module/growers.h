/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWERS_H
#define CM_GROWERS_H

/* holders.h for those who ask from Python: groups of objects in, dicts out.
 * For tests alone: they ask for shapes that no series would single out. */

#include "../session/session.h"

/* [new; raises] args: (groups, categories, depths, whether what goes with the
 * holder is asked for, most nodes): lists of one length.  {"holders": [...],
 * "nodes", "nodes_left", "cut"}. */
PyObject *cm_growers_holders(struct cm_session *self, PyObject *args);

#endif
