/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SIGHTING_H
#define CM_SIGHTING_H

/* What one collection or scan found, for Python: an opaque object that writes
 * its document only when somebody asks, since most observers look at a page
 * that they have had before. */

#include <Python.h>

#include "../../reports/digest.h"
#include "../frameworks/devices.h"

struct cm_sighting;

/* [new; raises] `module` is kept, since it owns the digest.  Takes the
 * contents of the heaps (left empty), at most two; with `recorded` they are
 * folded into the process's document as well. */
PyObject *cm_sighting_new(PyObject *module, struct cm_digest *digest,
                          struct cm_heap *heaps, size_t count, bool recorded);
/* Findings in it. */
size_t cm_sighting_count(PyObject *event);

/* Each takes an event and raises TypeError for anything else.  key: bytes,
 * equal for equal sets of findings.  The document has what the digest was told
 * of iterations so far. */
PyObject *cm_sighting_document(PyObject *module, PyObject *event);
PyObject *cm_sighting_key(PyObject *module, PyObject *event);

/* What one observer asked to hear of. */
struct cm_sighting_wish {
    const struct cm_devices *devices;
    const struct cm_records *records; /* of the event's heaps */
    const char *names;                /* as cm_devices_watch() has them */
    uint64_t min_bytes;               /* on these devices */
};
/* [new; raises] An event of those findings alone: `event` itself where that is
 * all of them, None where it is none. */
PyObject *cm_sighting_select(PyObject *event,
                             const struct cm_sighting_wish *wish);

#endif
