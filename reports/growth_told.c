/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Faults are few: they are looked up one by one. */
#include "growth_told.h"

#include <inttypes.h>
#include <string.h>

#include "../detector/alloc.h"
#include "../detector/index.h"
#include "../detector/size.h"
#include "fault.h"
#include "filenames.h"
#include "growth.h"
#include "line.h"
#include "walk.h"

/* So often a fault that stopped is told again at once when it grows again. */
#define MOST_STOPS 3

void
cm_growth_told_release(struct cm_growth_told *self)
{
    cm_free(self->items);
    *self = (struct cm_growth_told){0};
}

static struct cm_growth_told_entry *
find(const struct cm_growth_told *self, uint64_t fingerprint)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->items[i].fingerprint == fingerprint) {
            return &self->items[i];
        }
    }
    return NULL;
}

static uint64_t
mix_text(uint64_t key, const char *text)
{
    uint32_t seed = (uint32_t)key;
    size_t length = strlen(text);

    return key * UINT64_C(0x9e3779b97f4a7c15)
           + ((uint64_t)cm_hash(seed, text, length) << 32
              | cm_hash(~seed, text, length));
}

/* By names and size, as each trial has its own.  0: it is something else, or
 * nobody knows them by a name. */
static uint64_t
gradients_of(const struct cm_leak *leak, const struct cm_leak_growth *growth)
{
    bool lingers =
        cm_growth_verdict(leak, growth) == CM_GROWTH_LINGERING
        && strcmp(cm_leak_text(leak, growth->category), "gradient") == 0;
    uint64_t key =
        mix_text(growth->peak_bytes, cm_leak_text(leak, growth->device));

    for (size_t i = 0; i < growth->name_count; i++) {
        key = mix_text(key, cm_leak_text(leak, growth->names[i]));
    }
    return lingers && growth->name_count != 0 ? key : 0;
}

/* What was told of it last, or of the same gradients by another line. */
static uint64_t
told_of(const struct cm_growth_told *self, uint64_t fingerprint,
        uint64_t gradients)
{
    uint64_t most = 0;

    for (size_t i = 0; i < self->count; i++) {
        const struct cm_growth_told_entry *entry = &self->items[i];

        if ((entry->fingerprint == fingerprint
             || (gradients != 0 && entry->gradients == gradients))
            && entry->bytes > most) {
            most = entry->bytes;
        }
    }
    return most;
}

/* Of one of the fault's lines; 0: nothing. */
static uint64_t
told_bytes(const struct cm_growth_told *self, const struct cm_leak *leak,
           const struct cm_leak_growth *first)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < cm_fault_lines(first); i++) {
        uint64_t told =
            told_of(self, first[i].fingerprint, gradients_of(leak, &first[i]));

        most = told > most ? told : most;
    }
    return most;
}

/* What it was told as, so that lines that come and go are of one fault. */
static uint64_t
fault_told(const struct cm_growth_told *self,
           const struct cm_leak_growth *first)
{
    for (uint32_t i = 0; i < cm_fault_lines(first); i++) {
        const struct cm_growth_told_entry *entry =
            find(self, first[i].fingerprint);

        if (entry != NULL && entry->leak) {
            return entry->fault;
        }
    }
    return first->fingerprint;
}

/* False: it was not known, and there is no room, or no memory. */
static bool
remember(struct cm_growth_told *self, const struct cm_growth_told_entry *what,
         enum cm_status *status)
{
    struct cm_growth_told_entry *entry = find(self, what->fingerprint);

    if (entry == NULL) {
        if (self->count == CM_GROWTH_TOLD_MAX) {
            return false;
        }
        *status = cm_grow((void **)&self->items, &self->capacity,
                          self->count + 1, sizeof(self->items[0]));
        if (*status != CM_OK) {
            return false;
        }
        entry = &self->items[self->count++];
        *entry =
            (struct cm_growth_told_entry){.fingerprint = what->fingerprint};
    }
    entry->bytes = what->bytes;
    entry->gradients = what->gradients;
    entry->fault = entry->leak ? entry->fault : what->fault;
    return true;
}

/* All of its lines are known from then on, so that none is told alone when
 * another one has most of the bytes, or is gone. */
static bool
remember_all(struct cm_growth_told *self, const struct cm_leak *leak,
             const struct cm_leak_growth *first, uint64_t bytes,
             enum cm_status *status)
{
    struct cm_growth_told_entry what = {.bytes = bytes,
                                        .fault = fault_told(self, first)};
    bool known = true;

    for (uint32_t i = 0; *status == CM_OK && i < cm_fault_lines(first); i++) {
        what.fingerprint = first[i].fingerprint;
        what.gradients = gradients_of(leak, &first[i]);
        known = remember(self, &what, status) && known;
    }
    return known;
}

static enum cm_status
announce(struct cm_growth_told *self, const struct cm_leak *leak,
         const struct cm_leak_growth *first, struct cm_ledger_news *news)
{
    uint64_t bytes = cm_fault_sum(first).bytes;
    uint64_t told = told_bytes(self, leak, first);
    bool is_news = told == 0 || bytes / 2 >= told;
    enum cm_status status =
        cm_grow((void **)&news->fingerprints, &news->capacity, news->count + 1,
                sizeof(news->fingerprints[0]));

    bytes = bytes > 0 ? bytes : 1;
    if (status == CM_OK
        && remember_all(self, leak, first, is_news ? bytes : told, &status)
        && is_news) {
        news->fingerprints[news->count++] = first->fingerprint;
    }
    return status;
}

enum cm_status
cm_growth_announce(struct cm_growth_told *self, const struct cm_leak *leak,
                   struct cm_ledger_news *news)
{
    enum cm_status status = CM_OK;
    size_t i = 0;

    while (status == CM_OK && i < leak->growth_count) {
        const struct cm_leak_growth *first = &leak->growth[i];

        if (cm_growth_is_fault(cm_growth_verdict(leak, first))) {
            status = announce(self, leak, first, news);
        }
        i += cm_fault_lines(first);
    }
    return status;
}

/* --- what becomes of it ---------------------------------------------------- */

/* The verdict of the fault that one of its lines is of now. */
static enum cm_growth_verdict
verdict_of(const struct cm_leak *leak, uint64_t fingerprint)
{
    size_t i = 0;

    while (i < leak->growth_count) {
        const struct cm_leak_growth *first = &leak->growth[i];

        if (cm_fault_is_among(first, &fingerprint, 1)) {
            return cm_growth_verdict(leak, first);
        }
        i += cm_fault_lines(first);
    }
    return CM_GROWTH_NO_VERDICT;
}

/* It stays a leak where it was told as one before. */
static void
forget(struct cm_growth_told *self, uint64_t fingerprint)
{
    const struct cm_growth_told_entry *entry = find(self, fingerprint);
    uint64_t fault = entry != NULL ? entry->fault : 0;

    for (size_t i = 0; i < self->count; i++) {
        if (self->items[i].fault == fault) {
            self->items[i].bytes = 0;
        }
    }
}

void
cm_growth_recall(struct cm_growth_told *self, const struct cm_leak *leak,
                 struct cm_ledger_news *news)
{
    size_t kept = 0;

    for (size_t i = 0; i < news->count; i++) {
        uint64_t fingerprint = news->fingerprints[i];

        if (cm_growth_is_fault(verdict_of(leak, fingerprint))) {
            news->fingerprints[kept++] = fingerprint;
        }
        else {
            forget(self, fingerprint);
        }
    }
    news->count = kept;
}

/* Not what is too small to be shown, nor a library's. */
static bool
is_shown(const struct cm_leak_growth *first, uint64_t least)
{
    return cm_fault_peak(first) >= least && first->library_package.index == 0;
}

static void
note_leak(struct cm_growth_told *self, const struct cm_leak_growth *first)
{
    uint64_t fault = fault_told(self, first);

    for (uint32_t i = 0; i < cm_fault_lines(first); i++) {
        struct cm_growth_told_entry *entry = find(self, first[i].fingerprint);

        if (entry != NULL) {
            entry->fault = entry->leak ? entry->fault : fault;
            entry->leak = true;
        }
    }
}

void
cm_growth_note_told(struct cm_growth_told *self, const struct cm_leak *leak,
                    uint64_t least, const struct cm_ledger_news *news)
{
    size_t i = 0;

    while (i < leak->growth_count) {
        const struct cm_leak_growth *first = &leak->growth[i];

        if (cm_growth_verdict(leak, first) == CM_GROWTH_LEAK
            && is_shown(first, least)
            && (news == NULL
                || cm_fault_is_among(first, news->fingerprints,
                                     news->count))) {
            note_leak(self, first);
        }
        i += cm_fault_lines(first);
    }
}

/* --- what stopped --------------------------------------------------------- */

/* 0: it was not told as a leak, or that it stopped was told, too. */
static uint64_t
told_fault(const struct cm_growth_told *self,
           const struct cm_leak_growth *growth)
{
    const struct cm_growth_told_entry *entry = find(self, growth->fingerprint);

    return entry != NULL && entry->leak ? entry->fault : 0;
}

/* Also a line that joined it since. */
static bool
belongs_to(const struct cm_growth_told *self,
           const struct cm_leak_growth *growth, uint64_t fault)
{
    const struct cm_growth_told_entry *entry = find(self, growth->fingerprint);

    return entry != NULL && entry->fault == fault;
}

/* False: one of its lines grows, or lingers, or may go on. */
static bool
sum_stopped(const struct cm_growth_told *self, const struct cm_leak *leak,
            uint64_t fault, struct cm_growth_stopped *result)
{
    uint64_t most = 0;

    *result = (struct cm_growth_stopped){0};
    for (size_t i = 0; i < leak->growth_count; i++) {
        const struct cm_leak_growth *growth = &leak->growth[i];

        if (!belongs_to(self, growth, fault)) {
            continue;
        }
        if (growth->unsure
            || cm_growth_is_told(cm_growth_verdict(leak, growth))) {
            return false;
        }
        if (growth->peak_bytes >= most) {
            most = growth->peak_bytes;
            result->row = i;
        }
        result->lines++;
        result->bytes += growth->bytes;
        result->peak += growth->peak_bytes;
    }
    return true;
}

static void
note_stop(struct cm_growth_told *self, uint64_t fault)
{
    for (size_t i = 0; i < self->count; i++) {
        struct cm_growth_told_entry *entry = &self->items[i];

        if (entry->leak && entry->fault == fault) {
            entry->leak = false;
            entry->bytes = ++entry->stops < MOST_STOPS ? 0 : entry->bytes;
        }
    }
}

bool
cm_growth_next_stopped(struct cm_growth_told *self, const struct cm_leak *leak,
                       size_t *at, struct cm_growth_stopped *result)
{
    while (*at < leak->growth_count) {
        uint64_t fault = told_fault(self, &leak->growth[(*at)++]);

        if (fault != 0 && sum_stopped(self, leak, fault, result)) {
            note_stop(self, fault);
            return true;
        }
    }
    return false;
}

/* "cache.py:13 fill and 2 more lines", "memory (outside the frameworks)" */
static void
add_stopped_place(const struct cm_growth_stopped *self,
                  const struct cm_leak *leak,
                  const struct cm_filenames *filenames, struct cm_line *line)
{
    const struct cm_leak_growth *growth = &leak->growth[self->row];
    const struct cm_leak_site *site =
        growth->site != 0 ? cm_leak_site_at(leak, growth->site) : NULL;

    if (site != NULL && site->user_frame >= 0) {
        const struct cm_leak_frame *frame = &site->frames[site->user_frame];

        cm_line_add(line, CM_PAINT_NONE,
                    cm_filenames_short(filenames, frame->filename));
        cm_line_addf(line, CM_PAINT_NONE, ":%" PRIu32 " ", frame->line);
        cm_line_add(line, CM_PAINT_NONE, cm_leak_text(leak, frame->name));
    }
    else {
        cm_line_addf(line, CM_PAINT_NONE, "memory (%s)",
                     cm_growth_what(leak, growth));
    }
    if (self->lines > 1) {
        cm_line_addf(line, CM_PAINT_NONE, " and %zu more line%s",
                     self->lines - 1, self->lines > 2 ? "s" : "");
    }
}

static void
add_stopped(const struct cm_growth_stopped *self, const struct cm_leak *leak,
            const struct cm_filenames *filenames, struct cm_line *line)
{
    char size[CM_SIZE_TEXT_BYTES], most[CM_SIZE_TEXT_BYTES];
    bool freed = self->bytes < self->peak / 2;

    cm_size_format_short(self->bytes, size);
    cm_size_format_short(self->peak, most);
    cm_line_add(line, CM_PAINT_NONE,
                freed ? "cumem: given back: " : "cumem: stopped growing: ");
    add_stopped_place(self, leak, filenames, line);
    if (freed) {
        cm_line_addf(line, CM_PAINT_NONE, ", %s of %s are left", size, most);
    }
    else {
        cm_line_addf(line, CM_PAINT_NONE, ", at %s", size);
    }
    cm_line_add(line, CM_PAINT_NONE, " (told as a leak before)");
    cm_line_end(line);
}

enum cm_status
cm_growth_stopped_write(const struct cm_growth_stopped *self,
                        const struct cm_leak *leak, struct cm_buffer *out)
{
    struct cm_leak_finding finding = {.growth = true, .index = self->row};
    struct cm_filenames filenames = {0};
    struct cm_line line = {.out = out};
    enum cm_status status = cm_filenames_init(&filenames, leak, &finding, 1);

    if (status == CM_OK) {
        add_stopped(self, leak, &filenames, &line);
        status = cm_buffer_status(out);
    }
    cm_line_release(&line);
    cm_filenames_release(&filenames);
    return status;
}

bool
cm_growth_has_fault(const struct cm_leak *leak)
{
    for (size_t i = 0; i < leak->growth_count; i++) {
        if (cm_growth_is_fault(cm_growth_verdict(leak, &leak->growth[i]))) {
            return true;
        }
    }
    return false;
}
