/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LEAK_JSON_H
#define CM_LEAK_JSON_H

/* The document as a file: leak.json, version 1 (leak.schema.json).  What is
 * written reads back equal and the same document gives the same bytes.
 *
 * Reading trusts nothing: every bound, type, number and id is checked, and a
 * file that is wrong is refused in one line that names the place. */

#include <stddef.h>

#include "buffer.h"
#include "leak.h"

#define CM_LEAK_JSON_VERSION 1
#define CM_LEAK_JSON_MAX_BYTES ((size_t)512 << 20)
#define CM_LEAK_JSON_ERROR_BYTES 256

/* Appends the document. */
enum cm_status cm_leak_json_write(const struct cm_leak *leak,
                                  struct cm_buffer *out) CM_CHECKED;

/* Before: `result` is zeroed, bytes[length] is NUL.  After CM_OK cm_leak_check
 * holds; after CM_BAD_INPUT or CM_LIMIT `error` names the place and what was
 * expected. */
enum cm_status cm_leak_json_read(const char *bytes, size_t length,
                                 struct cm_leak *result,
                                 char error[CM_LEAK_JSON_ERROR_BYTES])
    CM_CHECKED;

#endif
