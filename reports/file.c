/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Writing by a temporary file in the same directory, so that rename() is
 * atomic and no other user can guess a name to put a link at: O_EXCL and
 * O_NOFOLLOW refuse both.  The bytes reach the disk before the name does. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../detector/alloc.h"

#define TRIES 100
#define CHUNK 65536

enum cm_status
cm_file_write_all(int descriptor, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = write(descriptor, bytes, length);

        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            errno = done == 0 ? EIO : errno;
            return CM_IO;
        }
        bytes += done;
        length -= (size_t)done;
    }
    return CM_OK;
}

/* Opens a new file beside `path`; its name in `name`.  -1 with errno, or with
 * the error of `name`. */
static int
open_temporary(const char *path, struct cm_buffer *name)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    int descriptor = -1;

    for (int i = 0; i < TRIES && descriptor < 0; i++) {
        cm_buffer_clear(name);
        cm_buffer_add(name, path, folder);
        cm_buffer_addf(name, ".cumem-%ld-%d.tmp", (long)getpid(), i);
        if (name->status != CM_OK) {
            return -1;
        }
        descriptor =
            open(name->bytes,
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (descriptor < 0 && errno != EEXIST && errno != EINTR) {
            break;
        }
    }
    return descriptor;
}

static enum cm_status
fill(int descriptor, const char *bytes, size_t length)
{
    enum cm_status status = cm_file_write_all(descriptor, bytes, length);

    while (status == CM_OK && fsync(descriptor) != 0) {
        /* Some file systems have no fsync: their bytes are as safe as they
         * can be. */
        if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) {
            break;
        }
        status = errno == EINTR ? CM_OK : CM_IO;
    }
    return status;
}

/* Gives the file its name.  Without `replace`, link() is the one call that
 * refuses atomically when the name exists. */
static enum cm_status
publish(const char *temporary, const char *path, bool replace)
{
    struct stat existing;

    if (replace) {
        return rename(temporary, path) == 0 ? CM_OK : CM_IO;
    }
    if (link(temporary, path) == 0) {
        unlink(temporary);
        return CM_OK;
    }
    if (errno == EEXIST) {
        return CM_IO;
    }
    /* No hard links here (FAT, some network file systems). */
    if (lstat(path, &existing) == 0) {
        errno = EEXIST;
        return CM_IO;
    }
    return rename(temporary, path) == 0 ? CM_OK : CM_IO;
}

enum cm_status
cm_file_write(const char *path, const char *bytes, size_t length, bool replace)
{
    struct cm_buffer name = {0};
    int descriptor = open_temporary(path, &name);
    enum cm_status status = CM_IO;
    int error;

    if (descriptor < 0) {
        status = name.status != CM_OK ? name.status : CM_IO;
        goto done;
    }
    status = fill(descriptor, bytes, length);
    if (close(descriptor) != 0 && status == CM_OK && errno != EINTR) {
        status = CM_IO;
    }
    if (status == CM_OK) {
        status = publish(name.bytes, path, replace);
    }
    if (status != CM_OK) {
        error = errno;
        unlink(name.bytes);
        errno = error;
    }
done:
    error = errno;
    cm_buffer_release(&name);
    errno = error;
    return status;
}

static enum cm_status
read_all(int descriptor, struct cm_buffer *out)
{
    char *chunk = cm_alloc(CHUNK);
    enum cm_status status = chunk != NULL ? CM_OK : CM_NO_MEMORY;

    while (status == CM_OK) {
        ssize_t got = read(descriptor, chunk, CHUNK);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            status = got < 0 ? CM_IO : CM_OK;
            break;
        }
        cm_buffer_add(out, chunk, (size_t)got);
        status = cm_buffer_status(out);
    }
    cm_free(chunk);
    return status;
}

enum cm_status
cm_file_read(const char *path, struct cm_buffer *out)
{
    bool is_standard = strcmp(path, "-") == 0;
    int descriptor =
        is_standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    enum cm_status status;
    int error;

    if (descriptor < 0) {
        return CM_IO;
    }
    status = read_all(descriptor, out);
    if (!is_standard) {
        error = errno;
        close(descriptor);
        errno = error;
    }
    return status;
}
