/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_LOOK_H
#define CM_GROWTH_LOOK_H

/* Who holds what grows: the sites with a verdict, the tensors whose memory
 * they allocated, the way to these from a named root; into the document. */

#include <Python.h>

#include "session.h"

/* [none; raises] a list of (tensor, category, name): the model's parameters,
 * their gradients, what its optimizers keep.  Remembers of which category each
 * site is. */
PyObject *cm_session_categories(struct cm_session *self, PyObject *rows);
/* [new; raises] (rows as above, {device index: bytes that are free}, second
 * copies of the weights as copies.h takes them): looks and tells; how many
 * findings a person should hear of. */
PyObject *cm_session_growth(struct cm_session *self, PyObject *args);
/* [new; raises] how many lines grow or linger by now: whether a look is worth
 * its time. */
PyObject *cm_session_growing(struct cm_session *self);
/* [new; raises] the document as it is now, as JSON. */
PyObject *cm_session_document(struct cm_session *self);
/* A backward pass begins. */
void cm_growth_on_backward(void);

#endif
