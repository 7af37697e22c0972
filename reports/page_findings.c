/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Which findings a page has, in the order and with the numbers of the text,
 * and each one's block of that text.  One walk over the document for each. */
#include <string.h>

#include "../detector/alloc.h"
#include "fault.h"
#include "growth.h"
#include "sheet.h"
#include "summary.h"

/* Findings of libraries, and small ones, that are written out. */
#define MAX_FOLDED 50

/* ===== which findings =================================================== */

static bool
is_dead(const struct cm_leak *leak, const struct cm_leak_cycle *cycle)
{
    return strcmp(cm_leak_text(leak, cycle->class), "resurrected") != 0;
}

static enum cm_sheet_group
group_of(uint64_t bytes, bool library, const struct cm_html_options *options)
{
    if (!options->all && library) {
        return CM_SHEET_LIBRARY;
    }
    return !options->all && bytes < options->min_bytes ? CM_SHEET_SMALL
                                                       : CM_SHEET_SHOWN;
}

/* The finding as the page has it; false: it has not. */
static bool
take(const struct cm_leak *leak, const struct cm_html_options *options,
     struct cm_leak_finding from, struct cm_sheet_finding *result,
     uint64_t *bytes)
{
    bool library;

    *result = (struct cm_sheet_finding){.cycle = from.index};
    if (from.growth) {
        const struct cm_leak_growth *growth = &leak->growth[from.index];

        result->growth = growth;
        *bytes = cm_fault_peak(growth);
        library = growth->library_package.index != 0;
        if (!cm_growth_is_told(cm_growth_verdict(leak, growth))) {
            return false;
        }
    }
    else {
        const struct cm_leak_cycle *cycle = &leak->cycles[from.index];

        *bytes = cycle->peak_bytes;
        library = cycle->library_package.index != 0;
        if (!is_dead(leak, cycle)) {
            return false;
        }
    }
    result->group = group_of(*bytes, library, options);
    return true;
}

static size_t
most_of(enum cm_sheet_group group, const struct cm_html_options *options)
{
    size_t most = CM_HTML_MAX_FINDINGS;

    if (options->top > 0 && options->top < most) {
        most = options->top;
    }
    return group == CM_SHEET_SHOWN || most < MAX_FOLDED ? most : MAX_FOLDED;
}

static void
number(struct cm_sheet *self)
{
    size_t next = 1;

    for (int group = 0; group < CM_SHEET_GROUPS; group++) {
        for (size_t i = 0; i < self->count; i++) {
            if ((int)self->findings[i].group == group) {
                self->findings[i].number = next++;
            }
        }
    }
}

/* Fills self->findings; they are numbered as the text numbers them, the
 * folded ones behind. */
void
cm_sheet_pick(struct cm_sheet *self)
{
    struct cm_leak_walk walk = {.leak = self->leak};
    struct cm_leak_finding from;
    struct cm_sheet_finding finding;
    uint64_t bytes;

    while (cm_leak_walk_next(&walk, &from)) {
        if (!take(self->leak, self->options, from, &finding, &bytes)) {
            continue;
        }
        self->bytes[finding.group] += bytes;
        if (self->totals[finding.group]++
            < most_of(finding.group, self->options)) {
            self->findings[self->count++] = finding;
        }
    }
    number(self);
}

/* The cycles of one group, behind those that are picked already. */
static size_t
pick_group(const struct cm_leak *leak, const struct cm_html_options *options,
           enum cm_sheet_group group, size_t *cycles, size_t capacity)
{
    struct cm_leak_walk walk = {.leak = leak};
    size_t most = most_of(group, options), seen = 0, picked = 0;
    struct cm_leak_finding from;
    struct cm_sheet_finding finding;
    uint64_t bytes;

    while (seen < most && cm_leak_walk_next(&walk, &from)) {
        if (!take(leak, options, from, &finding, &bytes)
            || finding.group != group) {
            continue;
        }
        seen++;
        if (finding.growth == NULL && picked < capacity) {
            cycles[picked++] = finding.cycle;
        }
    }
    return picked;
}

size_t
cm_html_pick(const struct cm_leak *leak, const struct cm_html_options *options,
             size_t *cycles, size_t capacity)
{
    size_t picked = 0;

    for (int group = 0; group < CM_SHEET_GROUPS; group++) {
        picked += pick_group(leak, options, (enum cm_sheet_group)group,
                             cycles + picked, capacity - picked);
    }
    return picked;
}

/* ===== the findings as text ============================================= */

/* The end of a block that begins at `at`: its further lines are indented. */
static const char *
block_end(const char *at)
{
    const char *end = strchr(at, '\n');

    while (end != NULL && strncmp(end + 1, "   ", 3) == 0) {
        end = strchr(end + 1, '\n');
    }
    return end != NULL ? end + 1 : at + strlen(at);
}

/* Whether the summary has a block for it. */
static bool
is_told(const struct cm_sheet *self, struct cm_leak_finding finding,
        const uint64_t *only)
{
    const struct cm_leak *leak = self->leak;

    if (finding.growth) {
        return cm_fault_is_among(&leak->growth[finding.index], only,
                                 self->count);
    }
    return is_dead(leak, &leak->cycles[finding.index])
           && cm_fingerprint_is_among(leak->cycles[finding.index].fingerprint,
                                      only, self->count);
}

static bool
is_same(const struct cm_sheet *self, const struct cm_sheet_finding *finding,
        struct cm_leak_finding other)
{
    return other.growth
               ? finding->growth == &self->leak->growth[other.index]
               : finding->growth == NULL && finding->cycle == other.index;
}

/* Cuts the summary into the blocks of the findings.  A line that begins with
 * `#` begins a block: no text of the document can begin a line. */
static void
share_out(struct cm_sheet *self, const uint64_t *only)
{
    const char *at = cm_buffer_text(&self->summary);
    struct cm_leak_walk walk = {.leak = self->leak};
    struct cm_leak_finding from;
    size_t next = 0;

    at = at[0] == '#' ? at : strstr(at, "\n#");
    while (at != NULL && next < self->count
           && cm_leak_walk_next(&walk, &from)) {
        const char *end;

        if (!is_told(self, from, only)) {
            continue;
        }
        at += at[0] == '\n';
        end = block_end(at);
        if (is_same(self, &self->findings[next], from)) {
            self->findings[next].text = at;
            self->findings[next++].text_bytes = (size_t)(end - at);
        }
        at = strstr(end - 1, "\n#");
    }
}

enum cm_status
cm_sheet_summarize(struct cm_sheet *self)
{
    struct cm_summary_options options = {
        .all = true,
        .all_frames = self->options->all_frames,
        .report_name = "",
        .known = self->options->known,
        .only_count = self->count,
    };
    uint64_t *only = cm_calloc(self->count + 1, sizeof(*only));
    enum cm_status status = CM_NO_MEMORY;

    if (only == NULL) {
        return status;
    }
    for (size_t i = 0; i < self->count; i++) {
        const struct cm_sheet_finding *finding = &self->findings[i];

        only[i] = finding->growth != NULL
                      ? finding->growth->fingerprint
                      : self->leak->cycles[finding->cycle].fingerprint;
    }
    options.only = only;
    status = cm_summary_write(self->leak, &options, &self->summary);
    if (status == CM_OK) {
        share_out(self, only);
    }
    cm_free(only);
    return status;
}
