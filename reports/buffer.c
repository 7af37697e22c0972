/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A growing text with its first error inside.  Doubling growth: adding n
 * bytes one at a time costs O(n). */
#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../detector/alloc.h"

void
cm_buffer_release(struct cm_buffer *self)
{
    if (self == NULL) {
        return;
    }
    cm_free(self->bytes);
    *self = (struct cm_buffer){.max_bytes = self->max_bytes};
}

void
cm_buffer_clear(struct cm_buffer *self)
{
    self->status = CM_OK;
    cm_buffer_truncate(self, 0);
}

/* Room for `more` bytes and the NUL; NULL when there is none. */
static char *
reserve(struct cm_buffer *self, size_t more)
{
    size_t limit = self->max_bytes ? self->max_bytes : CM_BUFFER_MAX_BYTES;

    if (self->status != CM_OK) {
        return NULL;
    }
    if (self->length > limit || more > limit - self->length) {
        self->status = CM_LIMIT;
        return NULL;
    }
    self->status = cm_grow((void **)&self->bytes, &self->capacity,
                           self->length + more + 1, 1);
    return self->status == CM_OK ? self->bytes + self->length : NULL;
}

void
cm_buffer_add(struct cm_buffer *self, const char *bytes, size_t length)
{
    char *room = reserve(self, length);

    if (room == NULL) {
        return;
    }
    if (length > 0) {
        memcpy(room, bytes, length);
    }
    self->length += length;
    self->bytes[self->length] = '\0';
}

void
cm_buffer_add_text(struct cm_buffer *self, const char *text)
{
    cm_buffer_add(self, text, strlen(text));
}

void
cm_buffer_add_char(struct cm_buffer *self, char character)
{
    cm_buffer_add(self, &character, 1);
}

void
cm_buffer_add_fill(struct cm_buffer *self, char character, long count)
{
    char *room = count > 0 ? reserve(self, (size_t)count) : NULL;

    if (room == NULL) {
        return;
    }
    memset(room, character, (size_t)count);
    self->length += (size_t)count;
    self->bytes[self->length] = '\0';
}

/* Most additions fit where there is room, and are formatted once. */
void
cm_buffer_addf(struct cm_buffer *self, const char *format, ...)
{
    size_t free_bytes = self->capacity - self->length;
    va_list arguments;
    int needed;
    char *room;

    va_start(arguments, format);
    needed =
        vsnprintf(self->bytes != NULL ? self->bytes + self->length : NULL,
                  self->bytes != NULL ? free_bytes : 0, format, arguments);
    va_end(arguments);
    room = needed < 0 ? NULL : reserve(self, (size_t)needed);
    if (room == NULL) {
        if (needed < 0 && self->status == CM_OK) {
            self->status = CM_NO_MEMORY;
        }
        cm_buffer_truncate(self, self->length);
        return;
    }
    if ((size_t)needed >= free_bytes) {
        va_start(arguments, format);
        vsnprintf(room, (size_t)needed + 1, format, arguments);
        va_end(arguments);
    }
    self->length += (size_t)needed;
}

void
cm_buffer_truncate(struct cm_buffer *self, size_t length)
{
    if (self->bytes != NULL && length <= self->length) {
        self->length = length;
        self->bytes[length] = '\0';
    }
}

enum cm_status
cm_buffer_status(const struct cm_buffer *self)
{
    return self->status;
}

const char *
cm_buffer_text(const struct cm_buffer *self)
{
    return self->bytes != NULL ? self->bytes : "";
}
