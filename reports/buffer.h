/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_BUFFER_H
#define CM_BUFFER_H

/* A growing text.  Errors are kept inside: after the first one nothing more is
 * added, so a writer adds all it has and asks cm_buffer_status() once at the
 * end.  An addition is whole or absent, never half.
 *
 * Invariant: bytes[length] is NUL whenever bytes is not NULL. */

#include <stddef.h>

#include "../detector/status.h"

struct cm_buffer {
    char *bytes; /* owned; NULL when nothing was added */
    size_t length, capacity;
    size_t max_bytes;      /* 0: CM_BUFFER_MAX_BYTES */
    enum cm_status status; /* the first error, CM_OK when there was none */
};

#define CM_BUFFER_MAX_BYTES ((size_t)1 << 30)

/* A zeroed buffer is a valid empty one. */
void cm_buffer_release(struct cm_buffer *self);
/* Empty again, without error; keeps its memory and its bound. */
void cm_buffer_clear(struct cm_buffer *self);

void cm_buffer_add(struct cm_buffer *self, const char *bytes, size_t length);
void cm_buffer_add_text(struct cm_buffer *self, const char *text);
void cm_buffer_add_char(struct cm_buffer *self, char character);
/* `count` times the same character; none when it is negative. */
void cm_buffer_add_fill(struct cm_buffer *self, char character, long count);
void cm_buffer_addf(struct cm_buffer *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Before: length is not larger than it is. */
void cm_buffer_truncate(struct cm_buffer *self, size_t length);

/* CM_OK, CM_NO_MEMORY, CM_LIMIT (max_bytes met). */
enum cm_status cm_buffer_status(const struct cm_buffer *self) CM_CHECKED;
/* Borrowed until the next change; never NULL. */
const char *cm_buffer_text(const struct cm_buffer *self);

#endif
