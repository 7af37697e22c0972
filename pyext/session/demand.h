/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DEMAND_H
#define CM_DEMAND_H

/* A signal by which one asks a running job for its report (CUMEM_SIGNAL).  One
 * per process, for the main session.  A program's own handler is never
 * replaced: where there is one we refuse, and one that comes later wins. */

#include <Python.h>

/* [new; raises] the number of the signal; 0: none any more; negative: nobody
 * is to be asked any more, but the signal is still caught, since it would end
 * the process.  None, or a text: why it cannot be had. */
PyObject *cm_demand(PyObject *module, PyObject *number);
/* In a forked child: nobody is asked any more. */
void cm_demand_off(void);
/* Asked while there was no time for it: at a later safe point.  Cheap. */
void cm_demand_again(void);
/* [new; never] for cumem.status(). */
PyObject *cm_demand_status(void);

#endif
