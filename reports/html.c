/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The frame of the page: head and policy, the verdict with the bar of the
 * device, the list of findings.  Everything is written out, so that the page
 * reads without JavaScript; the script only chooses, searches and copies.
 * Linear in the document, and bounded by CM_HTML_MAX_BYTES: findings that do
 * not fit are named by their number. */
#include "html.h"

#include <inttypes.h>
#include <string.h>

#include "../detector/alloc.h"
#include "exhausted.h"
#include "growth.h"
#include "memory_use.h"
#include "memory_why.h"
#include "page.h"
#include "sheet.h"
#include "summary.h"

/* What the list, the memory, the foot and the script may take of the page at
 * most. */
#define RESERVED_BYTES ((size_t)1536 * 1024)
/* Devices that the top of the page speaks of. */
#define MAX_DEVICES 64

/* ===== head and verdict ================================================= */

static void
add_hash(struct cm_sheet *self, const char *bytes)
{
    char hash[CM_PAGE_HASH_BYTES];

    cm_page_hash(bytes, strlen(bytes), hash);
    cm_buffer_addf(self->out, "'%s'", hash);
}

/* Whether something is drawn that chart.js draws again. */
static bool
has_chart(const struct cm_sheet *self)
{
    return self->leak->growth_count > 0
           || self->leak->timeline.device_count > 0;
}

static size_t
count_growth(const struct cm_sheet *self)
{
    size_t count = 0;

    for (size_t i = 0; i < self->count; i++) {
        count += self->findings[i].growth != NULL;
    }
    return count;
}

static const char *
title_of(const struct cm_sheet *self)
{
    size_t growth = count_growth(self);

    if (growth == 0) {
        return ": dead cycles";
    }
    return growth < self->count ? ": dead cycles, growth" : ": growth";
}

static void
add_head(struct cm_sheet *self)
{
    cm_put(self, "<!DOCTYPE html><!-- written by cyclereport -->\n"
                 "<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                 "<meta http-equiv=\"Content-Security-Policy\" "
                 "content=\"default-src 'none'; base-uri 'none'; "
                 "form-action 'none'; style-src ");
    add_hash(self, cm_page_css);
    cm_put(self, "; script-src ");
    add_hash(self, cm_page_js);
    if (has_chart(self)) {
        cm_put(self, " ");
        add_hash(self, cm_chart_js);
    }
    cm_put(self, "\">\n<meta name=\"viewport\" "
                 "content=\"width=device-width,initial-scale=1\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\">\n"
                 "<meta name=\"color-scheme\" content=\"light dark\">\n"
                 "<title>cumem");
    if (self->leak->rank >= 0) {
        cm_buffer_addf(self->out, " rank %" PRId64, self->leak->rank);
    }
    cm_put(self, title_of(self));
    cm_put(self, "</title>\n<style>");
    cm_put(self, cm_page_css);
    cm_put(self, "</style></head>\n<body>\n");
}

static bool
is_device(const struct cm_leak *leak, const char *name, size_t length)
{
    for (size_t i = 0; i < leak->timeline.device_count; i++) {
        const char *one = cm_leak_text(leak, leak->timeline.devices[i].name);

        if (strlen(one) == length && strncmp(one, name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether it begins with a word, not with the name of a device. */
static bool
begins_with_a_word(const struct cm_leak *leak, const char *line,
                   const char *end)
{
    size_t letters = strspn(line, "abcdefghijklmnopqrstuvwxyz");

    return letters > 0 && line + letters < end && line[letters] == ' '
           && !is_device(leak, line, letters);
}

/* "cumem [rank 3]: up to 5.1 of ..." as a sentence: "Up to 5.1 of ...". */
static void
add_verdict_line(struct cm_sheet *self, const char *line, size_t length,
                 bool first)
{
    const char *colon = memchr(line, ':', length);
    const char *end = line + length;

    if (colon != NULL && end - colon > 2) {
        line = colon + 2;
    }
    cm_put(self, first ? "<h1>" : "<p class=\"also\">");
    if (begins_with_a_word(self->leak, line, end)) {
        cm_buffer_add_char(self->out, (char)(line[0] - 'a' + 'A'));
        line++;
    }
    cm_escape_html_part(self->out, line, (size_t)(end - line));
    cm_put(self, first ? ".</h1>\n" : ".</p>\n");
}

/* That memory ran out comes before everything else. */
static bool
add_exhausted(struct cm_sheet *self)
{
    struct cm_buffer text = {0};

    if (!self->leak->exhausted.known) {
        return false;
    }
    cm_buffer_add_text(&text, ": ");
    cm_exhausted_add_sentence(self->leak, &text);
    add_verdict_line(self, cm_buffer_text(&text), text.length, true);
    cm_sheet_take_failure(self, &text);
    cm_buffer_release(&text);
    return true;
}

void
cm_put_more_devices(struct cm_sheet *self, size_t left_out)
{
    if (left_out > 0) {
        cm_buffer_addf(self->out,
                       "<p class=\"note\">%zu more device%s in the report"
                       "</p>\n",
                       left_out, left_out == 1 ? "" : "s");
    }
}

static size_t
beyond_most(size_t devices)
{
    return devices > MAX_DEVICES ? devices - MAX_DEVICES : 0;
}

/* The lines of the summary before its first block. */
static void
add_verdict(struct cm_sheet *self)
{
    const char *at = cm_buffer_text(&self->summary);
    bool first = !add_exhausted(self);
    size_t count = 0;

    while (strncmp(at, "cumem", 5) == 0) {
        size_t length = strcspn(at, "\n");

        if (count++ < MAX_DEVICES) {
            add_verdict_line(self, at, length, first);
        }
        first = false;
        at += length + (at[length] == '\n');
    }
    cm_put_more_devices(self, beyond_most(count));
}

/* What grows, where the verdict is about cycles. */
static void
add_growth(struct cm_sheet *self)
{
    struct cm_buffer text = {0};
    size_t count = 0;

    for (size_t i = 0; i < self->leak->timeline.device_count; i++) {
        cm_buffer_clear(&text);
        cm_buffer_add_text(&text, ": ");
        if (cm_growth_add_device(self->leak,
                                 self->leak->timeline.devices[i].name, &text)
            && count++ < MAX_DEVICES) {
            add_verdict_line(self, cm_buffer_text(&text), text.length, false);
        }
    }
    cm_put_more_devices(self, beyond_most(count));
    cm_sheet_take_failure(self, &text);
    cm_buffer_release(&text);
}

/* Who held most when memory ran out. */
static void
add_kept(struct cm_sheet *self)
{
    const struct cm_leak_exhausted *exhausted = &self->leak->exhausted;
    struct cm_buffer text = {0};

    for (size_t i = 0; i < exhausted->kept_count; i++) {
        cm_buffer_clear(&text);
        cm_buffer_add_text(&text, ": held ");
        cm_exhausted_add_kept(self->leak, i, &text);
        add_verdict_line(self, cm_buffer_text(&text), text.length, false);
    }
    cm_sheet_take_failure(self, &text);
    cm_buffer_release(&text);
}

struct share {
    const char *class, *name;
    uint64_t bytes;
};

/* Widths are of 1000; what is there is never too narrow to be seen. */
static void
add_bar(struct cm_sheet *self, const struct share *shares, size_t count,
        uint64_t total)
{
    double at = 0;

    cm_put(self, "<svg class=\"bar\" viewBox=\"0 0 1000 10\" "
                 "preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    for (size_t i = 0; i < count; i++) {
        double width = 1000.0 * (double)shares[i].bytes / (double)total;
        long x = (long)at, end = (long)(at + width);

        if (shares[i].bytes > 0) {
            cm_buffer_addf(self->out,
                           "<rect class=\"%s\" x=\"%ld\" y=\"0\" "
                           "width=\"%ld\" height=\"10\"/>",
                           shares[i].class, x, end - x > 4 ? end - x : 4);
        }
        at += width;
    }
    cm_put(self, "</svg>\n<ul class=\"legend\">");
    for (size_t i = 0; i < count; i++) {
        if (shares[i].bytes > 0) {
            cm_buffer_addf(self->out, "<li class=\"%s\"><b>", shares[i].class);
            cm_put_size(self, shares[i].bytes);
            cm_buffer_addf(self->out, "</b> %s</li>", shares[i].name);
        }
    }
    cm_put(self, "</ul>\n");
}

/* What frameworks hold that the device's own numbers leave out. */
static uint64_t
held_besides(const struct cm_leak_device *device)
{
    uint64_t all = 0;

    for (size_t i = 0; i < device->framework_count; i++) {
        const struct cm_leak_framework *framework = &device->frameworks[i];

        all = cm_memory_sum(all, cm_memory_has(framework->reserved)
                                     ? framework->reserved
                                     : cm_memory_plain(framework->allocated));
    }
    return cm_memory_beyond(all, device->reserved);
}

/* Bytes in use: when memory ran out, else at the peak. */
static uint64_t
used_bytes(const struct cm_leak_device *device)
{
    return device->asked_bytes > 0 && device->allocated > 0
               ? device->allocated
               : device->peak_allocated;
}

static void
add_shares(struct cm_sheet *self, const struct cm_leak_device *device)
{
    uint64_t used = used_bytes(device), besides = held_besides(device);
    uint64_t dead = device->dead_peak < used ? device->dead_peak : used;
    uint64_t held = device->reserved > used ? device->reserved : used;
    uint64_t pending = cm_memory_plain(device->pending_free);
    uint64_t outside = cm_memory_plain(device->outside_frameworks);
    uint64_t others = cm_memory_plain(device->other_processes);
    uint64_t all = cm_memory_sum(cm_memory_sum(held, besides),
                                 cm_memory_sum(outside, others));
    bool known = cm_memory_has(device->outside_frameworks);
    struct share shares[] = {
        {"dead", "dead", dead},
        {"live", "live", cm_memory_sum(used - dead, besides)},
        {"cached", "cached by the allocator",
         cm_memory_beyond(held - used, pending)},
        {"pending", "freed, but a stream still uses it",
         pending < held - used ? pending : held - used},
        {"outside", "outside the frameworks", outside},
        {"others", "other processes", others},
        {"rest", known ? "free" : "free, or used outside the frameworks",
         cm_memory_beyond(device->total, all)},
    };

    add_bar(self, shares, sizeof(shares) / sizeof(shares[0]),
            device->total > all ? device->total : all);
}

/* The device at its peak, or when memory ran out and why.  Nothing is drawn
 * where only a part is known. */
static void
add_device(struct cm_sheet *self, const struct cm_leak_device *device)
{
    bool ran_out = device->asked_bytes > 0;

    if (used_bytes(device) > 0) {
        cm_put(self, "<div class=\"device\"><span class=\"name\">");
        cm_escape_html_label(self->out, cm_sheet_text(self, device->name),
                             CM_LABEL_MAX);
        cm_put(self, ran_out ? " when memory ran out</span>"
                             : " at its peak</span>");
        add_shares(self, device);
        cm_put(self, "</div>\n");
    }
    if (ran_out) {
        cm_memory_add_reason(self, device);
    }
}

/* The one that ran out is among them, wherever it stands. */
static void
add_devices(struct cm_sheet *self)
{
    const struct cm_leak_device *exhausted = cm_exhausted_device(self->leak);
    size_t count = 0, left_out = 0;

    for (size_t i = 0; i < self->leak->device_count; i++) {
        const struct cm_leak_device *device = &self->leak->devices[i];

        if (used_bytes(device) == 0 && device->asked_bytes == 0) {
            continue;
        }
        if (count < MAX_DEVICES || device == exhausted) {
            add_device(self, device);
            count++;
        }
        else {
            left_out++;
        }
    }
    cm_put_more_devices(self, left_out);
}

static void
add_top(struct cm_sheet *self)
{
    cm_put(self, "<header class=\"top\">\n");
    add_verdict(self);
    if (count_growth(self) < self->count) {
        add_growth(self);
    }
    add_kept(self);
    add_devices(self);
    cm_put(self, "</header>\n");
}

/* ===== the whole ======================================================== */

void
cm_put_place(struct cm_sheet *self, const struct cm_leak_frame *frame)
{
    cm_put(self, "<code title=\"");
    cm_say(self, cm_sheet_text(self, frame->filename));
    cm_put(self, "\"><span>");
    cm_say(self, cm_filenames_short(&self->filenames, frame->filename));
    cm_buffer_addf(self->out, "</span>:%" PRIu32 "</code>", frame->line);
}

/* The panes of a group; `left_out` counts those that did not fit. */
static enum cm_status
add_group(struct cm_sheet *self, enum cm_sheet_group group, size_t *left_out)
{
    size_t most = self->start + CM_HTML_MAX_BYTES - RESERVED_BYTES;
    enum cm_status status = CM_OK;

    for (size_t i = 0; status == CM_OK && i < self->count; i++) {
        size_t before = self->out->length;

        if (self->findings[i].group != group) {
            continue;
        }
        status = self->findings[i].growth != NULL
                     ? cm_growth_pane_add(self, &self->findings[i])
                     : cm_pane_add(self, &self->findings[i]);
        if (self->out->length > most) {
            cm_buffer_truncate(self->out, before);
            *left_out += 1;
        }
    }
    return status;
}

static enum cm_status
add_panes(struct cm_sheet *self)
{
    size_t left_out = 0;
    enum cm_status status;

    cm_put(self, "<main>\n");
    if (self->count == 0) {
        cm_put(self, cm_memory_ran_out(self->leak)
                         ? "<p class=\"none\">No cycle to mend here: where "
                           "the memory is stands below.</p>\n"
                         : "<p class=\"none\">Nothing to mend here.</p>\n");
    }
    status = add_group(self, CM_SHEET_SHOWN, &left_out);
    for (int group = 1; status == CM_OK && group < CM_SHEET_GROUPS; group++) {
        if (self->totals[group] > 0) {
            cm_put(self, "<details class=\"folded\"><summary>");
            cm_put_group(self, (enum cm_sheet_group)group);
            cm_put(self, "</summary>\n");
            status = add_group(self, (enum cm_sheet_group)group, &left_out);
            cm_put(self, "</details>\n");
        }
    }
    if (left_out > 0) {
        cm_buffer_addf(self->out,
                       "<p class=\"more\">%zu more in the report: the page "
                       "is full.</p>\n",
                       left_out);
    }
    cm_put(self, "</main>\n");
    return status;
}

static const char help[] =
    "<dialog id=\"help\"><h3>Keys</h3><dl>"
    "<dt>\u2191 \u2193</dt><dd>previous and next finding</dd>"
    "<dt>/</dt><dd>search, Esc to clear</dd>"
    "<dt>c</dt><dd>copy the finding as text</dd>"
    "<dt>\u2190 \u2192 + \u2212 0</dt>"
    "<dd>in a drawing: read, zoom, show all</dd>"
    "<dt>?</dt><dd>this help, Esc to close</dd></dl></dialog>\n";

static enum cm_status
write_page(struct cm_sheet *self)
{
    enum cm_status status = cm_sheet_summarize(self);

    if (status != CM_OK) {
        return status;
    }
    add_head(self);
    add_top(self);
    status = cm_timeline_add_section(self);
    cm_put(self, "<div class=\"desk\">\n");
    cm_list_add(self);
    status = status == CM_OK ? add_panes(self) : status;
    cm_put(self, "</div>\n");
    cm_growth_add_table(self);
    cm_memory_add(self);
    cm_foot_add(self);
    cm_put(self, help);
    cm_put(self, "<script>");
    cm_put(self, cm_page_js);
    cm_put(self, "</script>\n");
    if (has_chart(self)) {
        cm_put(self, "<script>");
        cm_put(self, cm_chart_js);
        cm_put(self, "</script>\n");
    }
    cm_put(self, "</body></html>\n");
    return status == CM_OK ? cm_buffer_status(self->out) : status;
}

static enum cm_status
prepare(struct cm_sheet *self)
{
    size_t most = self->leak->cycle_count + self->leak->growth_count;
    struct cm_leak_finding *shown = cm_calloc(most + 1, sizeof(*shown));
    enum cm_status status = CM_NO_MEMORY;

    self->findings = cm_calloc(most + 1, sizeof(*self->findings));
    if (shown == NULL || self->findings == NULL) {
        goto done;
    }
    cm_sheet_pick(self);
    for (size_t i = 0; i < self->count; i++) {
        const struct cm_leak_growth *growth = self->findings[i].growth;

        shown[i] = (struct cm_leak_finding){.growth = growth != NULL,
                                            .index = self->findings[i].cycle};
    }
    status =
        cm_filenames_init(&self->filenames, self->leak, shown, self->count);
    if (status == CM_OK) {
        status = cm_paths_init(&self->paths, self->leak);
    }
done:
    cm_free(shown);
    return status;
}

enum cm_status
cm_html_write(const struct cm_leak *leak,
              const struct cm_html_options *options, struct cm_buffer *out)
{
    struct cm_sheet self = {
        .leak = leak, .options = options, .out = out, .start = out->length};
    enum cm_status status = prepare(&self);

    if (status == CM_OK) {
        status = write_page(&self);
    }
    cm_filenames_release(&self.filenames);
    cm_paths_release(&self.paths);
    cm_buffer_release(&self.summary);
    cm_free(self.findings);
    return status;
}
