/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SESSION_H
#define CM_SESSION_H

/* What this interpreter is asked to see: ties the interceptor to the freezer,
 * and the frozen heaps to whoever wants to know.
 *
 * Two ways for a heap (DESIGN.md section 2): with an observer it is analysed
 * in the collection's own stop callback and handed over there; with warnings
 * only, a native thread takes it.  Guarded by the GIL of its interpreter. */

#include <Python.h>

#include <stdbool.h>

#include "../../detector/heap.h"

struct cm_session;

/* [new; raises] */
struct cm_session *cm_session_new(PyObject *module);
/* [none; never] accepts NULL. */
void cm_session_free(struct cm_session *self);
int cm_session_traverse(struct cm_session *self, visitproc visit, void *arg);

/* Each as cumem._core's function of that name; see _core.pyi. */
PyObject *cm_session_install(struct cm_session *self, PyObject *args);
PyObject *cm_session_remove(struct cm_session *self, PyObject *types);
PyObject *cm_session_configure(struct cm_session *self, PyObject *args);
PyObject *cm_session_watch(struct cm_session *self, PyObject *args);
PyObject *cm_session_show_texts(struct cm_session *self, PyObject *on);
PyObject *cm_session_describe(struct cm_session *self, PyObject *facts);
PyObject *cm_session_suppressions(struct cm_session *self, PyObject *paths);
PyObject *cm_session_scan(struct cm_session *self, PyObject *args);
PyObject *cm_session_looks(struct cm_session *self, PyObject *args);
PyObject *cm_session_looked(struct cm_session *self, PyObject *args);
PyObject *cm_session_flush(struct cm_session *self, PyObject *seconds);
PyObject *cm_session_drain(struct cm_session *self);
PyObject *cm_session_event_document(struct cm_session *self, PyObject *event);
PyObject *cm_session_event_for(struct cm_session *self, PyObject *args);
PyObject *cm_session_close(struct cm_session *self);
PyObject *cm_session_status(struct cm_session *self);
PyObject *cm_session_report_path(struct cm_session *self); /* or None */
PyObject *cm_session_accelerator(struct cm_session *self);
PyObject *cm_session_tag_types(struct cm_session *self, PyObject *types);
PyObject *cm_session_forked(struct cm_session *self);
PyObject *cm_session_out_of_memory(struct cm_session *self, PyObject *args);
PyObject *cm_session_hold_collections(struct cm_session *self);
PyObject *cm_session_allow_collections(struct cm_session *self,
                                       PyObject *args);

#endif
