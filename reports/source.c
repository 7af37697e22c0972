/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Source lines.  A file is read once and kept while it is among the last few
 * asked for; a line is found by counting from the start, which costs less than
 * an index would for the handful of lines that a report shows.  O_NONBLOCK and
 * fstat() keep a pipe or a device with a source's name from being read. */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../detector/alloc.h"

static void
release_file(struct cm_source_file *file)
{
    cm_free(file->name);
    cm_free(file->bytes);
    *file = (struct cm_source_file){0};
}

void
cm_sources_release(struct cm_sources *self)
{
    for (size_t i = 0; i < CM_SOURCE_MAX_FILES; i++) {
        release_file(&self->files[i]);
    }
    self->clock = 0;
}

/* Fills `bytes`; what was read may be less when the file shrinks meanwhile. */
static size_t
read_bytes(int descriptor, char *bytes, size_t length)
{
    size_t done = 0;

    while (done < length) {
        ssize_t got = read(descriptor, bytes + done, length - done);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done += (size_t)got;
    }
    return done;
}

static void
load(struct cm_source_file *file)
{
    int descriptor =
        open(file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat about;

    if (descriptor < 0) {
        return;
    }
    if (fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode)
        && about.st_size > 0 && (size_t)about.st_size <= CM_SOURCE_MAX_BYTES) {
        file->bytes = cm_alloc((size_t)about.st_size);
        if (file->bytes != NULL) {
            file->length =
                read_bytes(descriptor, file->bytes, (size_t)about.st_size);
        }
    }
    close(descriptor);
}

/* The file, read when it is not kept; NULL when memory ran out. */
static const struct cm_source_file *
get(struct cm_sources *self, const char *filename)
{
    struct cm_source_file *oldest = &self->files[0];

    self->clock++;
    for (size_t i = 0; i < CM_SOURCE_MAX_FILES; i++) {
        struct cm_source_file *file = &self->files[i];

        if (file->name != NULL && strcmp(file->name, filename) == 0) {
            file->used = self->clock;
            return file;
        }
        if (file->used < oldest->used) {
            oldest = file;
        }
    }
    release_file(oldest);
    oldest->name = cm_strdup(filename);
    if (oldest->name == NULL) {
        return NULL;
    }
    oldest->used = self->clock;
    load(oldest);
    return oldest;
}

void
cm_source_cut(const char *bytes, size_t length, uint32_t line, uint32_t count,
              struct cm_buffer *out)
{
    const char *at = bytes, *end = bytes + length;

    for (uint32_t number = 1; at < end && number < line + count; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        stop = stop != NULL ? stop : end;
        if (number >= line) {
            size_t columns = (size_t)(stop - at);

            columns -= columns > 0 && at[columns - 1] == '\r';
            cm_buffer_add_text(out, number > line ? "\n" : "");
            cm_buffer_add(out, at, columns);
        }
        at = stop + 1;
    }
}

void
cm_source_lines(struct cm_sources *self, const char *filename, uint32_t line,
                uint32_t count, struct cm_buffer *out)
{
    const struct cm_source_file *file = get(self, filename);

    if (file != NULL && file->bytes != NULL && line != 0) {
        cm_source_cut(file->bytes, file->length, line, count, out);
    }
}
