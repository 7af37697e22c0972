/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FORWARD_H
#define CM_FORWARD_H

/* Which line of the forward pass a step of the backward pass belongs to.
 * autograd numbers its nodes in the order in which a thread makes them; with
 * each tensor we note how far the number has come, and at which line.
 *
 * Known of one thread's nodes, whose numbers no other has come near. */

#include <Python.h>

#include <stdbool.h>

#include "../objects/objects.h"

/* That this thread's next operation will take; 0: not known. */
uint64_t cm_forward_number(void);
/* A tensor was made at this site, and all nodes since the last; or its memory
 * was, for which the newest node alone is known to be; any thread. */
void cm_forward_note(struct cm_site_id site, bool newest_alone);
/* Of the node that this thread works for; any thread, without the GIL, calls
 * only autograd's own question for it.  Id 0: none, or not known. */
struct cm_site_id cm_forward_site(void);
/* Where the operation ran whose backward step this Node is; with the GIL, read
 * through the kernel. */
struct cm_site_id cm_forward_site_of(uint64_t node);
/* The stack of the forward line, then that of the thread that waits in
 * backward(), with a frame between them that says so.  Any thread. */
struct cm_site_id cm_forward_join(struct cm_objects *objects,
                                  struct cm_site_id forward,
                                  struct cm_site_id waiting);
/* The stack of a thread that works for another one, then that of the other. */
struct cm_site_id cm_forward_append(struct cm_objects *objects,
                                    struct cm_site_id own,
                                    struct cm_site_id awaited);
/* The stack of who waits in backward() where several do, and which of them is
 * not known: a frame that says so.  Any thread; id 0: no room. */
struct cm_site_id cm_forward_several(struct cm_objects *objects);
/* Looks for what torch says; with the GIL, once torch is loaded. */
void cm_forward_start(void);
/* Nothing is known any more; with the GIL. */
void cm_forward_stop(void);
const char *cm_forward_status(void);

/* [none; raises] a list of (grad_fn object's address, its number), at least
 * two: where nodes keep their number. */
PyObject *cm_forward_probe(PyObject *module, PyObject *facts);
/* [new; raises] the site of the node with this number; 0: not known. */
PyObject *cm_forward_of(PyObject *module, PyObject *number);
/* [new; raises] the number of the node that this thread works for, or None. */
PyObject *cm_forward_running(PyObject *module, PyObject *unused);

#endif
