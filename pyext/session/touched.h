/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TOUCHED_H
#define CM_TOUCHED_H

/* Which of some objects running code has in its hands.  Whenever a tensor is
 * made, the functions of that thread are looked at: a tensor that one of them
 * computes with, or a variable of one that began since, has been touched.
 *
 * Errs on one side: a slot of a stack may still show what lay there before.
 * What was handed over within a container, to C alone, is not seen.
 *
 * Holds addresses, not objects.  Guarded by the GIL; one per process. */

#include "session.h"

/* [new; raises] groups: a list of lists of objects; an empty one ends it.
 * Whether the functions that run can be read here. */
PyObject *cm_session_touch(struct cm_session *self, PyObject *groups);
/* [new; raises] for each group whether any of it was touched. */
PyObject *cm_session_touched(struct cm_session *self);

/* A tensor was made.  Whether the next one counts too: somebody asks. */
bool cm_touched_look(void);
/* Nothing is looked at any more. */
void cm_touched_off(void);

#endif
