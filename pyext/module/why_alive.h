/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_WHY_ALIVE_H
#define CM_WHY_ALIVE_H

/* cumem.why_alive(): the ways from named roots to one object. */

#include "../session/session.h"

/* [new; raises] args: (object, number of ways).  (ways, what it is, objects
 * looked into, whether the walk was cut, whether the variables of running
 * functions could not be read): each way is a list of (annotation, edge), the
 * root first. */
PyObject *cm_why_alive(struct cm_session *self, PyObject *args);

#endif
