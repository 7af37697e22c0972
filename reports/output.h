/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_OUTPUT_H
#define CM_OUTPUT_H

/* Where cyclereport's results go: standard output, a device, or a file that
 * is replaced only when it may be. */

#include <stdbool.h>

#include "buffer.h"

/* Writes to `path` ("-": standard output).  CM_MISUSE: a file is there that
 * cyclereport did not write, and `force` is false; CM_IO with errno. */
enum cm_status cm_output_write(const char *path,
                               const struct cm_buffer *content, bool force)
    CM_CHECKED;
/* What cm_output_write() would refuse for its place alone, without writing. */
enum cm_status cm_output_check(const char *path, bool force) CM_CHECKED;
/* Whether a result at `path` would take the place of the file `input`; either
 * may be "-" or NULL. */
bool cm_output_is_input(const char *path, const char *input);
/* Where the page of `input` goes: cycle-X.html beside leak-X.json, else
 * cycle.html beside it.  Appended. */
void cm_output_page_name(const char *input, struct cm_buffer *result);

#endif
