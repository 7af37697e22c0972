/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Thin: each call reads the document with the same reader as cyclereport and
 * hands it to one writer. */

#include "documents.h"

#include <string.h>

#include "../../reports/buffer.h"
#include "../../reports/html.h"
#include "../../reports/leak.h"
#include "../../reports/leak_json.h"
#include "../../reports/summary.h"

/* [0 or -1; raises] `leak` is zeroed before. */
static int
read_document(PyObject *bytes, struct cm_leak *leak)
{
    char error[CM_LEAK_JSON_ERROR_BYTES] = "";
    if (!PyBytes_Check(bytes)) {
        PyErr_Format(PyExc_TypeError, "bytes were expected, not %.100s",
                     Py_TYPE(bytes)->tp_name);
        return -1;
    }
    enum cm_status status =
        cm_leak_json_read(PyBytes_AS_STRING(bytes),
                          (size_t)PyBytes_GET_SIZE(bytes), leak, error);
    if (status == CM_OK) {
        cm_leak_sort(leak);
        return 0;
    }
    if (status == CM_NO_MEMORY) {
        PyErr_NoMemory();
    }
    else {
        PyErr_Format(PyExc_ValueError, "not a leak.json document: %s",
                     error[0] != '\0' ? error : cm_status_text(status));
    }
    cm_leak_release(leak);
    return -1;
}

/* [new; raises] takes the buffer. */
static PyObject *
text_of(struct cm_buffer *out, enum cm_status status)
{
    PyObject *result = NULL;
    if (status == CM_OK) {
        status = cm_buffer_status(out);
    }
    if (status == CM_OK) {
        result = PyUnicode_DecodeUTF8(cm_buffer_text(out),
                                      (Py_ssize_t)out->length, "replace");
    }
    else {
        PyErr_SetString(PyExc_MemoryError, cm_status_text(status));
    }
    cm_buffer_release(out);
    return result;
}

PyObject *
cm_document_text(PyObject *module, PyObject *args)
{
    struct cm_leak leak = {0};
    struct cm_buffer out = {0};
    PyObject *bytes;
    int all;
    unsigned long long min_bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "SpK:text", &bytes, &all, &min_bytes)
        || read_document(bytes, &leak) < 0) {
        return NULL;
    }
    struct cm_summary_options options = {.all = all != 0,
                                         .min_bytes = min_bytes};
    enum cm_status status = cm_summary_write(&leak, &options, &out);
    cm_leak_release(&leak);
    return text_of(&out, status);
}

PyObject *
cm_document_page(PyObject *module, PyObject *bytes)
{
    struct cm_leak leak = {0};
    struct cm_buffer out = {0};
    (void)module;
    if (read_document(bytes, &leak) < 0) {
        return NULL;
    }
    struct cm_html_options options = {0};
    enum cm_status status = cm_html_write(&leak, &options, &out);
    cm_leak_release(&leak);
    return text_of(&out, status);
}
