/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What a digest has a person told, in the words of the summary. */

#define _GNU_SOURCE // strerror_r()
#include <string.h>
#include <unistd.h>

#include "digest_private.h"
#include "summary.h"
#include "walk.h"

/* Findings that one warning tells: a job's log is no report. */
#define TOLD_AT_ONCE 5

/* A path as one would type it: relative where it is below this folder. */
static const char *
seen_from_here(const char *path)
{
    char folder[4096];
    if (path == NULL || getcwd(folder, sizeof(folder)) == NULL) {
        return path;
    }
    size_t length = strlen(folder);
    bool below = strncmp(path, folder, length) == 0 && path[length] == '/';
    return below ? path + length + 1 : path;
}

/* Before: lock held.  Said once: each finding would say it again. */
static void
add_trouble(struct cm_digest *self, struct cm_buffer *text)
{
    char room[128];
    if (self->write_error != 0 && !self->told_write_error) {
        self->told_write_error = true;
        cm_buffer_addf(text, "cumem: the report is not written to %s: %s\n",
                       seen_from_here(self->path_claimed
                                          ? self->leak.source_path
                                          : self->path),
                       strerror_r(self->write_error, room, sizeof(room)));
    }
}

/* Before: lock held, the document sorted.  False: it is dropped. */
static bool
queue_summary(struct cm_digest *self, const struct cm_summary_options *options)
{
    struct cm_buffer text = {0};
    struct cm_summary_counts counts;
    bool queued = false;
    cm_summary_count(&self->leak, options, &counts, NULL);
    if (cm_summary_write(&self->leak, options, &text) == CM_OK) {
        add_trouble(self, &text);
        queued = cm_digest_queue(self, &text,
                                 !options->exhausted
                                     && counts.cycles + counts.faults != 0);
    }
    cm_buffer_release(&text);
    return queued;
}

/* Before: lock held.  The summary of what is new, the largest; of the others,
 * and of what is a library's own, its last line has the number.  False:
 * nothing of it is said. */
static bool
add_warning(struct cm_digest *self, const struct cm_ledger_news *news)
{
    struct cm_summary_options options = {
        .min_bytes = self->min_bytes,
        .top = TOLD_AT_ONCE,
        .only = news->fingerprints,
        .only_count = news->count,
        .report_name = seen_from_here(self->leak.source_path),
    };
    struct cm_summary_counts counts;
    cm_leak_sort(&self->leak);
    cm_summary_count(&self->leak, &options, &counts, NULL);
    return counts.shown + counts.heavy != 0 && queue_summary(self, &options);
}

/* Before: lock held. */
static bool
may_say(const struct cm_digest *self, const struct cm_ledger_news *news)
{
    return news->count != 0 && self->warn && !self->held_back;
}

/* Before: lock held.  What is new is in the file before it is said, so that
 * the file has a name. */
void
cm_digest_say(struct cm_digest *self, const struct cm_ledger_news *news)
{
    if (may_say(self, news)) {
        cm_digest_write_first(self);
        (void)add_warning(self, news);
    }
}

/* Before: lock held.  Others look while it is written, and have said what
 * stopped: what is new counts as told from when it is queued, not before. */
void
cm_digest_say_grown(struct cm_digest *self, struct cm_ledger_news *news)
{
    if (may_say(self, news)) {
        cm_digest_write_first(self);
        cm_growth_recall(&self->told, &self->leak, news);
        /* Memory may have run out meanwhile: then all is said together. */
        if (may_say(self, news) && add_warning(self, news)) {
            cm_growth_note_told(&self->told, &self->leak, self->min_bytes,
                                news);
        }
    }
}

/* Before: lock held. */
void
cm_digest_say_exhausted(struct cm_digest *self, bool all)
{
    if (!self->warn) {
        return;
    }
    cm_digest_write_first(self);
    struct cm_summary_options options = {
        .min_bytes = self->min_bytes,
        .top = TOLD_AT_ONCE,
        .exhausted = !all,
        .reason = cm_digest_note_reason(self),
        .report_name = seen_from_here(self->leak.source_path),
    };
    cm_leak_sort(&self->leak);
    if (queue_summary(self, &options) && all) {
        cm_growth_note_told(&self->told, &self->leak, self->min_bytes, NULL);
    }
}

/* Bytes of the largest cycle that is news. */
static uint64_t
largest_of(const struct cm_leak *leak, const struct cm_ledger_news *news)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < leak->cycle_count; i++) {
        const struct cm_leak_cycle *cycle = &leak->cycles[i];
        if (cycle->peak_bytes > largest
            && cm_fingerprint_is_among(cycle->fingerprint, news->fingerprints,
                                       news->count)) {
            largest = cycle->peak_bytes;
        }
    }
    return largest;
}

/* Before: lock held.  What is too small to be told makes nothing wait. */
enum cm_status
cm_digest_say_found(struct cm_digest *self, struct cm_ledger_news *news)
{
    enum cm_status status = CM_OK;
    if (may_say(self, news)) {
        uint64_t bytes = largest_of(&self->leak, news);
        if (bytes >= self->min_bytes) {
            status = cm_backlog_pass(&self->backlog, bytes, news);
        }
    }
    cm_digest_say(self, news);
    return status;
}

/* Before: lock held. */
void
cm_digest_say_rest(struct cm_digest *self)
{
    cm_digest_say(self, &self->backlog.waiting);
    self->backlog.waiting.count = 0;
}
