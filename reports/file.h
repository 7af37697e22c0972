/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FILE_H
#define CM_FILE_H

/* Whole files in, whole files out.  A reader sees the file as it was or as it
 * is, never a part; a killed writer leaves at most a temporary file. */

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"

/* Writes a file only its owner may read: a new temporary file beside it,
 * never through a link, then rename.  CM_IO with errno; EEXIST when it exists
 * and `replace` is false.  After a failure nothing is left behind. */
enum cm_status cm_file_write(const char *path, const char *bytes,
                             size_t length, bool replace) CM_CHECKED;
/* Appends what the file (or pipe) holds; "-" is standard input.  CM_IO with
 * errno, CM_LIMIT over the buffer's bound. */
enum cm_status cm_file_read(const char *path, struct cm_buffer *out)
    CM_CHECKED;
/* All of it, also after interruptions and short writes. */
enum cm_status cm_file_write_all(int descriptor, const char *bytes,
                                 size_t length) CM_CHECKED;

#endif
