/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SOURCE_H
#define CM_SOURCE_H

/* Lines of source files, read in the traced process when a finding is new.
 * Only regular files, up to a size; what cannot be read has no lines.  The
 * files most recently asked for are kept. */

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

#define CM_SOURCE_MAX_BYTES ((size_t)4 << 20)
#define CM_SOURCE_MAX_FILES 8

struct cm_source_file {
    char *name;  /* owned; NULL: an empty place */
    char *bytes; /* owned; NULL: the file cannot be read */
    size_t length;
    uint64_t used; /* clock of the last use */
};

/* A zeroed value is valid and empty. */
struct cm_sources {
    struct cm_source_file files[CM_SOURCE_MAX_FILES];
    uint64_t clock;
};

void cm_sources_release(struct cm_sources *self);
/* Appends line `line` (from 1) of the file without its end, as the bytes are;
 * nothing when there is none.  `count` lines are joined by line ends. */
void cm_source_lines(struct cm_sources *self, const char *filename,
                     uint32_t line, uint32_t count, struct cm_buffer *out);

/* The same of a text that is at hand. */
void cm_source_cut(const char *bytes, size_t length, uint32_t line,
                   uint32_t count, struct cm_buffer *out);

#endif
