/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DYNAMO_H
#define CM_DYNAMO_H

/* What torch.compile() does with each Python function that is called in what
 * it compiles: not with ours.  Guarded by the GIL. */

#include <Python.h>

/* [new; never] what this thread's calls go through until they are given back;
 * NULL: nothing.  No code of the program runs. */
PyObject *cm_dynamo_pause(void);
/* Takes what was answered. */
void cm_dynamo_resume(PyObject *before);

#endif
