/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DEATHS_H
#define CM_DEATHS_H

/* Whether code objects that stand in known stacks die.  As long as none does,
 * an instruction's address names its code, and a stack is known by its frames
 * alone, without a look at each code object, which is mostly one cache line
 * more for every frame.
 *
 * Guarded by the GIL of the interpreter that it was started in, except for
 * cm_deaths_note(). */

#include <Python.h>

#include "objects.h"

/* From here on `objects` knows the turn (objects_private.h): a number that is
 * another one after the death of code that was noted, 0 where that would not
 * be heard.  One reader at a time.  Nothing happens where Python does not tell
 * (from 3.12 on: others watch on all its places). */
void cm_deaths_start(struct cm_objects *objects);
/* Nothing happens when it is another's. */
void cm_deaths_stop(const struct cm_objects *objects);
/* Now and then: after a quiet while a new turn begins. */
void cm_deaths_rest(void);
/* Called when the code of a module ends, as it does once an import has run it
 * (from its file): from within a deallocation, with the GIL and perhaps an
 * exception set.  NULL: nobody asks. */
void cm_deaths_on_module(void (*hook)(void));
/* How code is told apart; constant text. */
const char *cm_deaths_status(void);

/* This code, which a frame of this thread runs, stands in a stack that will
 * be known; before that is. */
void cm_deaths_note(const PyCodeObject *code);

#endif
