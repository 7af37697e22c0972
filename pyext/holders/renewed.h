/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_RENEWED_H
#define CM_RENEWED_H

/* Whether the program sets anew, and reads only afterwards, what an object
 * holds by a name: a variable of a module, an attribute, a dict's item.  Then
 * it is not made of what was there before.
 *
 * All code of the program's (program.h) is read for it (code/touch.h): one of
 * which reads it first is enough to say no.  O(the program's functions). */

#include "program.h"

/* By each name that the node, which has it, calls it.  `site`: that allocated
 * it; 0: not known. */
bool cm_renewed_is(struct cm_program *program, uint32_t node, PyObject *target,
                   struct cm_site_id site);

#endif
