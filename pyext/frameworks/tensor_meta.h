/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TENSOR_META_H
#define CM_TENSOR_META_H

/* The metaclasses of torch's tensors, told of each class that is made: CPython
 * lets an object's class be changed (`p.__class__ = Sub`, which
 * torch.utils.swap_tensors() does too) only where both have one tp_free, so a
 * class derived from a wrapped one is wrapped before anybody has it. */

#include <Python.h>

/* Wraps the root of torch's metaclasses, which is given first and is no class of
 * Python's, or one derived from it that has no __init__ of its own: that calls
 * the root's.  `on_class` is called with the GIL; must not run Python. */
void cm_tensor_meta_wrap(PyTypeObject *type, void (*on_class)(PyTypeObject *));
/* Takes the wrapper back. */
void cm_tensor_meta_unwrap(PyTypeObject *type);

#endif
