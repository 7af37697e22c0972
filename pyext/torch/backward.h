/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_BACKWARD_H
#define CM_BACKWARD_H

/* Who waits in backward(): autograd's own threads run no Python, so what they
 * allocate is said to come from the line that waits for them. */

#include <stdbool.h>

#include "../objects/objects.h"

/* Wraps the C function behind torch's engine; with the GIL, once torch is
 * imported.  False: not there, or it cannot be changed.  Again is fine. */
bool cm_backward_start(struct cm_objects *objects);
void cm_backward_stop(void);
/* Called with the GIL at each entry; it must not run Python. */
void cm_backward_on_enter(void (*hook)(void));
/* With the GIL: our function is called. */
bool cm_backward_heard(void);
/* The stack of this thread, or where it runs no Python of who waits for it in
 * backward(), or that it is one of several who wait there: *awaited then.  As
 * the site of a sink (hook.h). */
struct cm_site_id cm_backward_stack(struct cm_objects *objects, bool *awaited);

#endif
