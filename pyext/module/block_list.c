/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "block_list.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../allocations/allocations.h"
#include "../session/session_private.h"

/* [new; raises] */
static PyObject *
text_of(const struct cm_records *records, struct cm_text_id id)
{
    const char *text = cm_records_text(records, id);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* [new; raises] */
static PyObject *
frame_of(const struct cm_records *records, const struct cm_frame *frame)
{
    const struct cm_code *code = cm_records_code(records, frame->code);
    PyObject *file = text_of(records, code->filename);
    PyObject *name = text_of(records, code->qualified_name);
    PyObject *result = file != NULL && name != NULL
                           ? Py_BuildValue("OIO", file, frame->line, name)
                           : NULL;
    Py_XDECREF(file);
    Py_XDECREF(name);
    return result;
}

/* [new; raises] */
static PyObject *
make_frames(const struct cm_records *records, struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(records, id);
    PyObject *result = PyList_New((Py_ssize_t)site->frame_count);
    for (uint32_t i = 0; result != NULL && i < site->frame_count; i++) {
        PyObject *frame = frame_of(records, &site->frames[i]);
        if (frame == NULL) {
            Py_CLEAR(result);
        }
        else {
            PyList_SET_ITEM(result, (Py_ssize_t)i, frame);
        }
    }
    return result;
}

/* [new; raises] `known`: the lists that were made already, by site. */
static PyObject *
frames_of(const struct cm_records *records, struct cm_site_id id,
          PyObject *known)
{
    PyObject *key = PyLong_FromUnsignedLong(id.index);
    PyObject *frames = key != NULL ? PyDict_GetItemWithError(known, key)
                                   : NULL; /* borrowed */
    if (frames != NULL) {
        Py_INCREF(frames);
    }
    else if (!PyErr_Occurred()) {
        frames = make_frames(records, id);
        if (frames != NULL && PyDict_SetItem(known, key, frames) < 0) {
            Py_CLEAR(frames);
        }
    }
    Py_XDECREF(key);
    return frames;
}

/* [new; raises] */
static PyObject *
row_of(const struct cm_records *records, const struct cm_block *block,
       PyObject *known)
{
    PyObject *frames = frames_of(records, block->site, known);
    PyObject *stream = block->stream == CM_STREAM_UNKNOWN
                           ? Py_NewRef(Py_None)
                           : PyLong_FromUnsignedLongLong(block->stream);
    PyObject *result = NULL;
    if (frames != NULL && stream != NULL) {
        result =
            Py_BuildValue("KKiOIOO", (unsigned long long)block->address,
                          (unsigned long long)block->bytes, (int)block->device,
                          stream, (unsigned int)block->thread,
                          block->awaited ? Py_True : Py_False, frames);
    }
    Py_XDECREF(frames);
    Py_XDECREF(stream);
    return result;
}

/* [new; raises] */
static PyObject *
list_of(const struct cm_records *records, const struct cm_block *blocks,
        size_t count)
{
    PyObject *known = PyDict_New();
    PyObject *result = known != NULL ? PyList_New(0) : NULL;
    for (size_t i = 0; result != NULL && i < count; i++) {
        PyObject *row = row_of(records, &blocks[i], known);
        if (row == NULL || PyList_Append(result, row) < 0) {
            Py_CLEAR(result);
        }
        Py_XDECREF(row);
    }
    Py_XDECREF(known);
    return result;
}

PyObject *
cm_session_blocks(struct cm_session *self)
{
    struct cm_blocks *table = cm_allocations_blocks();
    struct cm_block *blocks = NULL;
    size_t count = 0;
    /* The sites are those of one interpreter's records. */
    if (table != NULL && cm_session_is_main(self)
        && cm_blocks_copy(table, &blocks, &count) != CM_OK) {
        return PyErr_NoMemory();
    }
    PyObject *result = list_of(self->records, blocks, count);
    cm_free(blocks);
    return result;
}
