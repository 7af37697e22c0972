/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MEMORY_H
#define CM_MEMORY_H

/* Where the devices' memory is: what Python asked the frameworks and the
 * driver goes into the document, and what only C knows goes to Python. */

#include <Python.h>

#include "../session/session.h"

/* [none; raises] `rows`: a list of dicts as cumem._memory makes them. */
PyObject *cm_session_memory(struct cm_session *self, PyObject *rows);
/* (error, device, bytes or None, [(way, bytes)]): memory ran out. */
PyObject *cm_session_exhausted(struct cm_session *self, PyObject *args);
PyObject *cm_session_exhausted_all(struct cm_session *self);
/* [none; raises] Live blocks that no Python object explains, by site; of those
 * that the driver gave, none of these libraries, which are counted elsewhere:
 * a list of how their files' names begin. */
PyObject *cm_session_held(struct cm_session *self, PyObject *libraries);
/* [new; raises] As cm_objects_told_stack(). */
PyObject *cm_session_add_site(struct cm_session *self, PyObject *frames);
/* [none; never] Asks the objects of frameworks without a hook anew. */
PyObject *cm_session_ask_objects(struct cm_session *self);
/* [new; raises] As cm_unhooked_use(). */
PyObject *cm_objects_use_of(PyObject *module, PyObject *index);
/* [new; raises] (total, used, free, own, others, why) of a CUDA device; bytes
 * or None. */
PyObject *cm_process_use_of(PyObject *module, PyObject *index);
/* [new; raises] {device index: (live bytes, live blocks, allocated, reserved,
 * peak bytes)} of torch's allocator, from its events. */
PyObject *cm_blocks_use_of(PyObject *module, PyObject *unused);

#endif
