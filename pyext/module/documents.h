/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DOCUMENTS_H
#define CM_DOCUMENTS_H

/* leak.json documents as bytes -> what people see.  Each takes the module and
 * its argument(s); raises ValueError for what is no document. */

#include <Python.h>

/* (bytes, all: bool, min_bytes: int) -> str, the terminal summary */
PyObject *cm_document_text(PyObject *module, PyObject *args);
/* bytes -> str, the page without drawings */
PyObject *cm_document_page(PyObject *module, PyObject *document);

#endif
