/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The line that made the largest of its tensors stands for a whole copy. */

#include "copies.h"

#include "../../detector/alike.h"
#include "../../detector/alloc.h"
#include "../../graph/birth.h"
#include "../allocations/unhooked.h"
#include "../tables/phrase.h"
#include "session_private.h"

#define CONFIDENCE 0.9 /* it may be used once, long after */

PyObject *
cm_session_origin(struct cm_session *self, PyObject *tensor)
{
    struct cm_block block;
    if (!cm_unhooked_block(self->devices, tensor, &block)
        || block.site.index == 0) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("KKiIi", (unsigned long long)block.address,
                         (unsigned long long)block.bytes,
                         (int)cm_birth_of(self->records, block.site),
                         (unsigned)block.site.index, block.device);
}

/* ---- whether one is possible */

/* [0 or -1; raises] the addresses of these tensors' blocks, sorted; *known is
 * the caller's to free. */
static int
find_known(struct cm_session *self, PyObject *tensors,
           struct cm_sought **known, size_t *count)
{
    struct cm_block block;
    size_t most = (size_t)PyList_GET_SIZE(tensors);
    *known = cm_calloc(most + 1, sizeof(**known));
    if (*known == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < most; i++) {
        if (cm_unhooked_block(self->devices,
                              PyList_GET_ITEM(tensors, (Py_ssize_t)i),
                              &block)) {
            (*known)[(*count)++].address = block.address;
        }
    }
    cm_sought_sort(*known, *count);
    return 0;
}

/* Not what was computed with a model, such as cuBLAS's workspaces, nor what
 * was made by deepcopy(). */
static bool
may_be_source(const struct cm_session *self, const struct cm_block *block)
{
    enum cm_birth birth = cm_birth_of(self->records, block->site);
    return !block->awaited && birth != CM_BIRTH_COMPUTED
           && birth != CM_BIRTH_COPIED;
}

/* Returns how many are left: those that were there by then. */
static size_t
keep_sources(const struct cm_session *self, struct cm_block *blocks,
             size_t count, uint64_t until_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].site.index != 0 && blocks[i].time_ns <= until_ns
            && may_be_source(self, &blocks[i])) {
            blocks[kept++] = blocks[i];
        }
    }
    return kept;
}

PyObject *
cm_session_alike(struct cm_session *self, PyObject *args)
{
    PyObject *tensors;
    unsigned long long until_ns;
    struct cm_sought *known;
    struct cm_block *blocks;
    size_t known_count = 0, count;
    if (!PyArg_ParseTuple(args, "O!K:alike", &PyList_Type, &tensors,
                          &until_ns)) {
        return NULL;
    }
    if (cm_allocations_blocks() == NULL) {
        return PyLong_FromLong(0);
    }
    if (cm_blocks_copy(cm_allocations_blocks(), &blocks, &count) != CM_OK) {
        return PyErr_NoMemory();
    }
    uint64_t bytes = 0;
    int found = find_known(self, tensors, &known, &known_count);
    if (found == 0) {
        count = keep_sources(self, blocks, count, until_ns);
        bytes = cm_alike_bytes(blocks, count, known, known_count);
    }
    cm_free(known);
    cm_free(blocks);
    return found == 0 ? PyLong_FromUnsignedLongLong(bytes) : NULL;
}

/* ---- as findings */

/* Borrows the names. */
static void
add_names(struct cm_growing *finding, PyObject *names)
{
    for (Py_ssize_t i = 0;
         i < PyList_GET_SIZE(names) && finding->name_count < MOST_NAMES; i++) {
        const char *name = cm_str_utf8(PyList_GET_ITEM(names, i));
        if (name[0] != '\0') {
            finding->names[finding->name_count++] = name;
        }
    }
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
    add_names(finding, names);
    return 0;
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
