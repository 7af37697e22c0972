/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_INTERRUPTS_H
#define CM_INTERRUPTS_H

/* What the program raises while Python code of ours runs: by a signal's
 * handler, which the interpreter calls wherever the main thread is (Ctrl-C is
 * such), or in a thread from another one.  It is not ours to swallow, and most
 * of our callers cannot raise: so it is kept until that code is over, and
 * raised in the program's own at the next safe point.
 *
 * Guarded by the GIL. */

#include <Python.h>

#include <stdbool.h>

/* Around each call of our Python: what is kept waits until the outermost one
 * of this thread is left.  [none; never] */
void cm_interrupts_enter(void);
void cm_interrupts_leave(void);

/* Whether an exception is the program's: one that is no Exception, which ours
 * never are, or that went through a signal's handler.  What an observer raises
 * by itself, SystemExit too, is not.  [never] */
bool cm_interrupts_raised(PyObject *error, bool by_observer);
bool cm_interrupts_on_main_thread(void);
/* Takes the error that is set, if it is the program's; false: it is still set.
 * Before: the call that raised it is over.  [never] */
bool cm_interrupts_keep(bool by_observer);

#endif
