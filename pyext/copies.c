/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The line that made the largest of its tensors stands for a whole copy. */

#include "copies.h"

#include "../graph/birth.h"
#include "session_private.h"

#define CONFIDENCE 0.9 /* it may be used once, long after */

PyObject *
cm_session_origin(struct cm_session *self, PyObject *tensor)
{
    struct cm_block block;
    if (cm_allocations_blocks() == NULL
        || !cm_growing_block(self, tensor, &block) || block.site.index == 0) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("KKiIi", (unsigned long long)block.address,
                         (unsigned long long)block.bytes,
                         (int)cm_birth_of(self->records, block.site),
                         (unsigned)block.site.index, block.device);
}

/* ---- as findings */

/* [0 or -1; raises] borrows the names. */
static int
add_names(struct cm_growing *finding, PyObject *names)
{
    for (Py_ssize_t i = 0;
         i < PyList_GET_SIZE(names) && finding->name_count < MOST_NAMES; i++) {
        const char *name = PyUnicode_AsUTF8(PyList_GET_ITEM(names, i));
        if (name == NULL) {
            return -1;
        }
        finding->names[finding->name_count++] = name;
    }
    return 0;
}

static int
add_copy(struct cm_growth_look *look, PyObject *copy)
{
    PyObject *owner, *names;
    int category, device;
    unsigned int site;
    unsigned long long bytes, count;
    if (!PyArg_ParseTuple(copy, "iOIiKKO!", &category, &owner, &site, &device,
                          &bytes, &count, &PyList_Type, &names)) {
        return -1;
    }
    if (look->count == MOST_FINDINGS) {
        return 0;
    }
    struct cm_growing *finding = &look->findings[look->count];
    *finding =
        (struct cm_growing){.group = (uint32_t)look->count, .copy = true};
    finding->row = (struct cm_growth_row){
        .site = site,
        .device = device,
        .category = category == CM_PARAMETER ? CM_PARAMETER : CM_OTHER,
        .bytes = bytes,
        .count = count,
        .peak_bytes = bytes,
        .result = {.verdict = CM_VERDICT_LINGERING,
                   .confidence = CONFIDENCE,
                   .lingering_bytes = bytes},
    };
    cm_allocations_device(device, finding->device);
    look->count++;
    if (owner != Py_None && !cm_growing_add(look, finding, owner)) {
        PyErr_NoMemory();
        return -1;
    }
    return add_names(finding, names);
}

int
cm_growing_copies(struct cm_growth_look *look, PyObject *copies)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(copies); i++) {
        if (add_copy(look, PyList_GET_ITEM(copies, i)) < 0) {
            return -1;
        }
    }
    return 0;
}
