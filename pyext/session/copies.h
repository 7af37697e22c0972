/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_COPIES_H
#define CM_COPIES_H

/* Second copies of a model's weights, which cumem._copies finds: findings
 * beside those of the series, since such a copy never grows. */

#include "growth_private.h"

/* [new; raises] how a tensor's memory came to be: None, or (address, bytes,
 * enum cm_birth, site, device). */
PyObject *cm_session_origin(struct cm_session *self, PyObject *tensor);
/* [new; raises] `args`: (tensors that are no copies, a time).  Bytes of blocks
 * that existed by then (CLOCK_MONOTONIC, ns) and may be copies by their sizes:
 * none, and there is no copy to look for. */
PyObject *cm_session_alike(struct cm_session *self, PyObject *args);
/* [0 or -1; raises] `copies`: a list of (category, the dict or module that is
 * the copy, or None where it is gone by now, site, device, bytes, tensors,
 * names). */
int cm_growing_copies(struct cm_growth_look *look, PyObject *copies);

#endif
