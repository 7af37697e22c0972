/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Results go where the user said and nowhere else: no name is made from data.
 * A file of our own is known by its first line; any other file, and any link,
 * is replaced only by force. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

#define FIRST_LINE_BYTES 512

/* Pages and drawings alone have one: a text may be a job's log, and a
 * leak.json what a job left behind. */
static bool
is_mark(const char *line)
{
    static const char *const marks[] = {
        "<!DOCTYPE html><!-- written by cyclereport -->",
        "<!-- written by cyclereport -->",
        "// written by cyclereport",
    };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (strcmp(line, marks[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the first line says that cyclereport wrote the file. */
static bool
is_ours(const char *path)
{
    char line[FIRST_LINE_BYTES + 1];
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got;

    if (descriptor < 0) {
        return false;
    }
    got = read(descriptor, line, FIRST_LINE_BYTES);
    close(descriptor);
    if (got <= 0) {
        return false;
    }
    line[got] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return is_mark(line);
}

/* A pipe, a terminal, /dev/null: written to, never replaced. */
static enum cm_status
write_device(const char *path, const struct cm_buffer *content)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    enum cm_status status;
    int error;

    if (descriptor < 0) {
        return CM_IO;
    }
    status = cm_file_write_all(descriptor, cm_buffer_text(content),
                               content->length);
    error = errno;
    close(descriptor);
    errno = error;
    return status;
}

enum cm_status
cm_output_write(const char *path, const struct cm_buffer *content, bool force)
{
    const char *bytes = cm_buffer_text(content);
    struct stat there;
    enum cm_status status;

    if (strcmp(path, "-") == 0) {
        return cm_file_write_all(STDOUT_FILENO, bytes, content->length);
    }
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) {
        errno = EISDIR;
        return CM_IO;
    }
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        return write_device(path, content);
    }
    status = cm_file_write(path, bytes, content->length, force);
    if (status == CM_IO && errno == EEXIST) {
        status = is_ours(path)
                     ? cm_file_write(path, bytes, content->length, true)
                     : CM_MISUSE;
    }
    return status;
}

/* Whether a file can be made beside `path`. */
static enum cm_status
check_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct cm_buffer folder = {0};
    enum cm_status status;
    int error;

    cm_buffer_add(&folder, path,
                  slash != NULL ? (size_t)(slash - path) + 1 : 0);
    if (slash == NULL) {
        cm_buffer_add_text(&folder, ".");
    }
    status = cm_buffer_status(&folder);
    if (status == CM_OK && access(cm_buffer_text(&folder), W_OK | X_OK) != 0) {
        status = CM_IO;
    }
    error = errno;
    cm_buffer_release(&folder);
    errno = error;
    return status;
}

enum cm_status
cm_output_check(const char *path, bool force)
{
    struct stat there, itself;
    bool exists = stat(path, &there) == 0;

    if (!exists && errno != ENOENT) {
        return CM_IO;
    }
    if (exists && S_ISDIR(there.st_mode)) {
        errno = EISDIR;
        return CM_IO;
    }
    if (exists && !S_ISREG(there.st_mode)) {
        return access(path, W_OK) == 0 ? CM_OK : CM_IO;
    }
    if (!force && lstat(path, &itself) == 0 && !is_ours(path)) {
        return CM_MISUSE;
    }
    return check_folder(path);
}

bool
cm_output_is_input(const char *path, const char *input)
{
    struct stat output, read;

    return path != NULL && input != NULL && strcmp(path, "-") != 0
           && strcmp(input, "-") != 0 && stat(path, &output) == 0
           && stat(input, &read) == 0 && S_ISREG(output.st_mode)
           && output.st_dev == read.st_dev && output.st_ino == read.st_ino;
}

void
cm_output_page_name(const char *input, struct cm_buffer *result)
{
    const char *slash = strrchr(input, '/');
    const char *name = slash != NULL ? slash + 1 : input;
    size_t length = strlen(name);

    cm_buffer_add(result, input, (size_t)(name - input));
    cm_buffer_add_text(result, "cycle");
    if (strncmp(name, "leak-", 5) == 0 && length > 10
        && strcmp(name + length - 5, ".json") == 0) {
        cm_buffer_add(result, name + 4, length - 9);
    }
    cm_buffer_add_text(result, ".html");
}
