/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_UNCALLED_H
#define CM_UNCALLED_H

/* Whether what would empty a place is left to a function that nobody calls: a
 * metric whose reset() no line names.  Such a function is held by its class or
 * module alone, and the program's code and that of packages says its name
 * nowhere, nor what getattr() could make it of.  Python, torch and what it needs
 * are not asked: they know no method of a class that is not derived from theirs.
 * A method of a class that is derived from a package's may be called by that.
 * Once the main module's code is gone, what was found before holds; in a
 * notebook, whose cells come and go, nothing is found.
 * O(objects of the walk) and O(names of that code). */

#include "../../graph/holding.h"
#include "program.h"

/* Sets holding->uncalled to one that would. */
bool cm_uncalled_empties(struct cm_program *program,
                         struct cm_holding *holding);

#endif
