/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GIVEN_H
#define CM_GIVEN_H

/* A sum that a function returns, and whose caller takes it by backward() each
 * time (pyext/code/settle.h): it goes with its graph then. */

#include "holding.h"

/* The store is one of such a sum, or of one that its own code takes.  Who calls
 * that is known by the stack that allocated what is kept, and which calls are
 * meant, by the name. */
bool cm_given_settles(const struct cm_holding *self,
                      const struct cm_code *code,
                      const struct cm_store *store);

#endif
