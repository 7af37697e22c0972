/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_STEPS_H
#define CM_STEPS_H

/* Ends of iterations, and what each device held at them. */

#include <Python.h>

#include "session.h"

/* [none; never] cumem.step(). */
PyObject *cm_session_step(struct cm_session *self);
/* [none; never] torch's hook after the step of every optimizer: its arguments
 * are the optimizer and those of the step. */
PyObject *cm_session_stepped(struct cm_session *self, PyObject *const *args,
                             Py_ssize_t count);
/* [none; never] That hook is in place. */
PyObject *cm_session_attached(struct cm_session *self);
/* Where nobody steps, a slice of time may be over. */
void cm_steps_time(struct cm_session *self, uint64_t now_ns);
/* The same, and the devices are asked, at the next safe point: that is some
 * large allocations, the first since all that a collection has freed, which
 * may take 8 ms, and its pause is to have none of them. */
void cm_steps_soon(struct cm_session *self);
/* Else both are to be done at once. */
bool cm_steps_may_wait(const struct cm_session *self);
/* The same, where no Python code may run: it ends at the next safe point of
 * the main thread.  A tensor was made: mostly one comparison.  How many more
 * before the next call (tags.h). */
uint32_t cm_steps_consider(struct cm_session *self);
/* The document gets the rows that wait; before it is written. */
void cm_steps_tell(struct cm_session *self);

#endif
