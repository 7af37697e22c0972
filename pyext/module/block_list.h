/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_BLOCK_LIST_H
#define CM_BLOCK_LIST_H

/* Every live block of torch's allocator, one by one: for whoever wants to
 * know whose each byte is.  Nothing here runs unless it is asked for. */

#include <Python.h>

#include "../session/session.h"

/* [new; raises] a list of (address, bytes, device, stream or None, thread,
 * awaited, [(filename, line, name), ...]), in no order; frames innermost
 * first.  Blocks of one site share their list of frames. */
PyObject *cm_session_blocks(struct cm_session *self);

#endif
