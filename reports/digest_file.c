/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The digest's report file: its name, and when it is written: when a finding is
 * new or has doubled, else after intervals that double up to a minute.  A disk
 * may take its time.  The lock is given meanwhile: who waits for that may have the
 * GIL, in a collection of the program's main thread. */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "../detector/alloc.h"
#include "../detector/clock.h"
#include "digest_private.h"
#include "exhausted.h"
#include "fault.h"
#include "file.h"
#include "leak_json.h"

#define LONGEST_INTERVAL_NS UINT64_C(60000000000)
#define MAX_NAME_TRIES 1000

/* "leak-7.json" -> "leak-7-2.json" for the 2nd try. */
static char *
name_for_try(const char *path, int attempt)
{
    struct cm_buffer name = {0};
    const char *dot = strrchr(path, '.');
    const char *slash = strrchr(path, '/');
    size_t stem = dot != NULL && (slash == NULL || dot > slash)
                      ? (size_t)(dot - path)
                      : strlen(path);
    cm_buffer_add(&name, path, stem);
    if (attempt > 1) {
        cm_buffer_addf(&name, "-%d", attempt);
    }
    cm_buffer_add_text(&name, path + stem);
    char *result =
        cm_buffer_status(&name) == CM_OK ? cm_strdup(name.bytes) : NULL;
    cm_buffer_release(&name);
    return result;
}

/* A device, a pipe: a name beside it is nobody's wish (/dev/null-2). */
static bool
is_no_file(const char *path)
{
    struct stat there;
    bool result = stat(path, &there) == 0 && !S_ISREG(there.st_mode);
    errno = result ? ENOTSUP : EEXIST;
    return result;
}

/* A file of another process is never overwritten.  `name`: what it became,
 * the caller's to free; NULL before. */
static enum cm_status
write_new(const char *path, const struct cm_buffer *json, char **name)
{
    enum cm_status status = CM_IO;
    for (int attempt = 1; attempt <= MAX_NAME_TRIES; attempt++) {
        *name = name_for_try(path, attempt);
        status = *name != NULL
                     ? cm_file_write(*name, json->bytes, json->length, false)
                     : CM_NO_MEMORY;
        if (status == CM_OK) {
            break;
        }
        cm_free(*name);
        *name = NULL;
        if (status != CM_IO || errno != EEXIST || is_no_file(path)) {
            break;
        }
    }
    return status;
}

/* Before: lock held.  Unless another path was asked for meanwhile. */
static void
claim(struct cm_digest *self, const char *path, char *name)
{
    bool same = self->path != NULL && strcmp(self->path, path) == 0;
    if (name == NULL || !same) {
        cm_free(name);
        return;
    }
    cm_free(self->leak.source_path);
    self->leak.source_path = name;
    self->path_claimed = true;
}

/* Before: lock held, nobody writes.  It is given while the disk takes its
 * time: who waits for the lock may have the GIL. */
static enum cm_status
write_file(struct cm_digest *self, const struct cm_buffer *json, int *error)
{
    bool claimed = self->path_claimed;
    char *path = cm_strdup(claimed ? self->leak.source_path : self->path);
    char *name = NULL;
    if (path == NULL) {
        return CM_NO_MEMORY;
    }
    self->writing = true;
    pthread_mutex_unlock(&self->lock);
    enum cm_status status =
        claimed ? cm_file_write(path, json->bytes, json->length, true)
                : write_new(path, json, &name);
    *error = errno;
    pthread_mutex_lock(&self->lock);
    self->writing = false;
    pthread_cond_broadcast(&self->written);
    claim(self, path, name);
    cm_free(path);
    return status;
}

/* Before: lock held. */
static bool
write_is_due(const struct cm_digest *self, bool now)
{
    bool worth = self->leak.cycle_count != 0 || self->demanded
                 || cm_memory_ran_out(&self->leak)
                 || cm_growth_has_fault(&self->leak)
                 || self->path_claimed; /* what was told may be over */
    if (self->path == NULL || !self->dirty || !worth) {
        return false;
    }
    return now || self->urgent
           || cm_clock_ns(CLOCK_MONOTONIC) - self->last_write_ns
                  > self->interval_ns;
}

/* Before: lock held, nobody writes. */
static enum cm_status
write_report(struct cm_digest *self)
{
    struct cm_buffer json = {0};
    int error = ENOMEM;
    cm_leak_sort(&self->leak);
    cm_digest_note_run(self);
    self->dirty = self->urgent = false;
    enum cm_status status = cm_leak_json_write(&self->leak, &json);
    if (status == CM_OK) {
        status = write_file(self, &json, &error);
    }
    self->counts.reports_written += status == CM_OK;
    self->counts.write_errors += status != CM_OK;
    self->write_error = status == CM_OK ? 0 : status == CM_IO ? error : ENOMEM;
    if (self->interval_ns < LONGEST_INTERVAL_NS) {
        self->interval_ns *= 2;
    }
    self->last_write_ns = cm_clock_ns(CLOCK_MONOTONIC);
    cm_buffer_release(&json);
    return status;
}

/* Before: lock held.  One at a time. */
static enum cm_status
write_if_due(struct cm_digest *self, bool now)
{
    while (self->writing) {
        pthread_cond_wait(&self->written, &self->lock);
    }
    return write_is_due(self, now) ? write_report(self) : CM_OK;
}

/* Before something is said: so that the file has a name. */
void
cm_digest_write_first(struct cm_digest *self)
{
    (void)write_if_due(self, true);
}

enum cm_status
cm_digest_write(struct cm_digest *self, bool now)
{
    pthread_mutex_lock(&self->lock);
    cm_digest_say_growth(self);
    if (now) {
        cm_digest_say_rest(self);
    }
    enum cm_status status = write_if_due(self, now);
    pthread_mutex_unlock(&self->lock);
    return status;
}

char *
cm_digest_report_path(struct cm_digest *self)
{
    pthread_mutex_lock(&self->lock);
    char *path = self->path_claimed ? cm_strdup(self->leak.source_path) : NULL;
    pthread_mutex_unlock(&self->lock);
    return path;
}
