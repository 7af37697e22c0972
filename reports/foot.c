/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Below the findings: what collections did and cost, what the report does not
 * have, and by which means it was made. */
#include <inttypes.h>
#include <stdlib.h> // qsort()
#include <string.h>

#include "collector.h"
#include "growth.h"
#include "sheet.h"

/* Collections that are listed: those that freed most. */
#define MAX_ROWS 10
/* Bars of the drawing; each stands for its neighbours. */
#define MAX_BARS 100

static void
put_time(struct cm_sheet *self, uint64_t us)
{
    cm_collector_add_time(us, self->out);
}

static bool
frees_more(const struct cm_leak_collection *a,
           const struct cm_leak_collection *b)
{
    return a->device_bytes_freed > b->device_bytes_freed;
}

/* The collections that freed most, in their own order, into `rows`. */
static size_t
pick_rows(const struct cm_leak *leak, size_t rows[MAX_ROWS])
{
    size_t count = 0;

    for (size_t i = 0; i < leak->collection_count; i++) {
        size_t place = count;

        while (place > 0
               && frees_more(&leak->collections[i],
                             &leak->collections[rows[place - 1]])) {
            place--;
        }
        if (place == MAX_ROWS) {
            continue;
        }
        count += count < MAX_ROWS;
        memmove(rows + place + 1, rows + place,
                (count - 1 - place) * sizeof(*rows));
        rows[place] = i;
    }
    return count;
}

static void
add_row(struct cm_sheet *self, const struct cm_leak_collection *row)
{
    cm_put(self, "<tr><td>");
    if (row->iteration >= 0) {
        cm_buffer_addf(self->out, "%" PRId64, row->iteration);
    }
    cm_put(self, "</td><td>");
    if (row->generation >= 0) {
        cm_buffer_addf(self->out, "%" PRId32, row->generation);
    }
    else {
        cm_put(self, "scan");
    }
    cm_buffer_addf(self->out, "</td><td>%" PRIu64 "</td><td>", row->collected);
    cm_put_size(self, row->device_bytes_freed);
    cm_put(self, "</td><td>");
    put_time(self, row->duration_us);
    cm_put(self, "</td></tr>\n");
}

/* Of a bucket the longest pause and all bytes. */
static struct cm_leak_collection
fold_rows(const struct cm_leak *leak, size_t from, size_t to)
{
    struct cm_leak_collection sum = leak->collections[from];

    for (size_t i = from + 1; i < to; i++) {
        const struct cm_leak_collection *row = &leak->collections[i];

        sum.device_bytes_freed += row->device_bytes_freed;
        if (row->duration_us > sum.duration_us) {
            sum.duration_us = row->duration_us;
        }
    }
    return sum;
}

static void
add_bar(struct cm_sheet *self, const char *class, size_t x, int y,
        uint64_t number, uint64_t most)
{
    int height = most > 0 ? (int)((double)number / (double)most * 22) : 0;

    if (number > 0) {
        height = height > 0 ? height : 1;
        cm_buffer_addf(self->out,
                       "<rect class=\"%s\" x=\"%zu\" y=\"%d\" width=\"4\" "
                       "height=\"%d\"/>",
                       class, 5 * x, y > 24 ? y : y - height, height);
    }
}

/* In their order: pauses upwards, freed bytes downwards. */
static void
add_bars(struct cm_sheet *self)
{
    const struct cm_leak *leak = self->leak;
    size_t count = leak->collection_count;
    size_t bars = count < MAX_BARS ? count : MAX_BARS;
    struct cm_leak_collection rows[MAX_BARS];
    uint64_t longest = 0, most = 0;

    for (size_t i = 0; i < bars; i++) {
        rows[i] = fold_rows(leak, i * count / bars, (i + 1) * count / bars);
        longest =
            rows[i].duration_us > longest ? rows[i].duration_us : longest;
        most = rows[i].device_bytes_freed > most ? rows[i].device_bytes_freed
                                                 : most;
    }
    cm_buffer_addf(self->out,
                   "<svg class=\"gc\" viewBox=\"0 0 %d 50\" "
                   "preserveAspectRatio=\"none\" aria-hidden=\"true\">",
                   5 * MAX_BARS);
    for (size_t i = 0; i < bars; i++) {
        add_bar(self, "pause", i, 24, rows[i].duration_us, longest);
        add_bar(self, "freed", i, 26, rows[i].device_bytes_freed, most);
    }
    cm_put(self, "</svg>\n<p class=\"note\">pauses above, at most ");
    put_time(self, longest);
    cm_put(self, most > 0 ? "; device memory freed below, at most "
                          : "; no device memory freed");
    if (most > 0) {
        cm_put_size(self, most);
    }
    cm_put(self, "</p>\n");
}

static void
add_advice(struct cm_sheet *self)
{
    struct cm_buffer text = {0};

    cm_collector_add_advice(self->leak, &text);
    if (text.length > 0) {
        cm_put(self, "<p class=\"advice\">");
        cm_say(self, cm_buffer_text(&text));
        cm_put(self, "</p>\n");
    }
    cm_sheet_take_failure(self, &text);
    cm_buffer_release(&text);
}

static void
add_rows(struct cm_sheet *self)
{
    const struct cm_leak *leak = self->leak;
    size_t rows[MAX_ROWS];
    size_t count = pick_rows(leak, rows);

    cm_put(self, "<details><summary>");
    cm_put(self, leak->collection_count > count ? "Those that freed most"
                                                : "Each of them");
    cm_put(self, "</summary><table><thead><tr><th>");
    cm_put(self, cm_growth_unit(leak));
    cm_put(self,
           "</th><th>generation</th><th>objects</th><th>device memory</th>"
           "<th>pause</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < count; i++) {
        add_row(self, &leak->collections[rows[i]]);
    }
    cm_put(self, "</tbody></table></details>");
}

static void
add_count(struct cm_sheet *self, uint64_t count, const char *noun)
{
    cm_buffer_addf(self->out, "%" PRIu64 " %s%s", count, noun,
                   count == 1 ? "" : "s");
}

/* Of the run's time. */
static void
add_share(struct cm_sheet *self, uint64_t duration_us, uint64_t run_us)
{
    double percent = 100.0 * (double)duration_us / (double)run_us;

    if (percent < 0.1) {
        cm_put(self, ": under 0.1 % of the run");
    }
    else {
        cm_buffer_addf(self->out, ": %.1f %% of the run", percent);
    }
}

static void
add_each_kind(struct cm_sheet *self, const struct cm_leak_looks *looks)
{
    add_count(self, looks->count, "scan");
    if (looks->count > 0) {
        cm_put(self, ", ");
        put_time(self, looks->duration_us);
    }
    if (looks->growth_count > 0) {
        cm_buffer_addf(self->out, ", and %" PRIu64 " for growth, ",
                       looks->growth_count);
        put_time(self, looks->growth_duration_us);
    }
}

static void
add_looks(struct cm_sheet *self)
{
    const struct cm_leak_looks *looks = &self->leak->looks;

    cm_put(self, "<p>Looks: ");
    add_each_kind(self, looks);
    if (looks->run_us > 0) {
        add_share(self, looks->duration_us + looks->growth_duration_us,
                  looks->run_us);
    }
    if (looks->skipped > 0) {
        cm_buffer_addf(self->out, "; %" PRIu64 " put off", looks->skipped);
    }
    cm_put(self, ".</p>\n");
}

static void
add_saved(struct cm_sheet *self)
{
    const struct cm_leak_looks *looks = &self->leak->looks;

    cm_put(self, "<p>CUMEM_AUTO_COLLECT: ");
    add_count(self, looks->collections, "collection");
    cm_put(self, " gave back ");
    cm_put_size(self, looks->saved_bytes);
    cm_put(self, ".</p>\n");
}

/* What cumem did unasked. */
static void
add_unasked(struct cm_sheet *self)
{
    const struct cm_leak_looks *looks = &self->leak->looks;

    if (looks->count > 0 || looks->growth_count > 0 || looks->skipped > 0) {
        add_looks(self);
    }
    if (looks->collections > 0) {
        add_saved(self);
    }
}

static void
add_seen(struct cm_sheet *self)
{
    const struct cm_leak_collector *sum = &self->leak->collector;

    if (!sum->known) {
        cm_put(self, "<p>Not recorded on this page: cumem.watch() and the "
                     "report at exit have them.</p>\n");
        return;
    }
    if (sum->seen == 0) {
        cm_put(self, "<p>None was seen.</p>\n");
        return;
    }
    cm_buffer_addf(self->out, "<p>%" PRIu64 " seen, ", sum->seen);
    put_time(self, sum->duration_us);
    cm_put(self, " in all, the longest ");
    put_time(self, sum->longest_us);
    cm_put(self, "; they freed ");
    cm_put_size(self, sum->device_bytes_freed);
    cm_put(self, " of device memory.</p>\n");
}

static void
add_collections(struct cm_sheet *self)
{
    cm_put(self, "<section><h3>Collections</h3>\n");
    add_seen(self);
    add_unasked(self);
    add_advice(self);
    if (self->leak->collector.seen > 0 && self->leak->collection_count > 0) {
        add_bars(self);
        add_rows(self);
    }
    cm_put(self, "</section>\n");
}

static void
add_lost(struct cm_sheet *self)
{
    const struct cm_leak *leak = self->leak;
    const char *reason = cm_sheet_text(self, leak->lost_reason);
    uint64_t events = leak->lost_events, objects = leak->lost_nodes;

    cm_put(self, "<section><h3>Lost or cut</h3>\n<p>");
    if (events == 0 && objects == 0) {
        cm_put(self, "Nothing: every object that was seen is in the report.");
    }
    else {
        if (events > 0) {
            cm_buffer_addf(self->out, "%" PRIu64 " event%s ", events,
                           events == 1 ? "" : "s");
        }
        if (objects > 0) {
            cm_buffer_addf(self->out, "%s%" PRIu64 " object%s ",
                           events > 0 ? "and " : "", objects,
                           objects == 1 ? "" : "s");
        }
        cm_put(self, events + objects == 1 ? "is" : "are");
        cm_put(self, " not in the report");
        cm_put(self, reason[0] != '\0' ? ": " : ".");
        cm_say(self, reason);
    }
    cm_put(self, "</p></section>\n");
}

static void
add_fact(struct cm_sheet *self, const char *name, const char *value)
{
    if (value[0] != '\0') {
        cm_buffer_addf(self->out, "<dt>%s</dt><dd>", name);
        cm_say(self, value);
        cm_put(self, "</dd>");
    }
}

static void
add_number(struct cm_sheet *self, const char *name, int64_t number)
{
    if (number >= 0) {
        cm_buffer_addf(self->out, "<dt>%s</dt><dd>%" PRId64 "</dd>", name,
                       number);
    }
}

static void
add_iterations(struct cm_sheet *self)
{
    const struct cm_leak *leak = self->leak;
    int64_t since = leak->timeline.slices_since;
    int64_t slices = since != 0 && leak->iteration >= since
                         ? leak->iteration - since + 1
                         : 0;

    add_number(self,
               strcmp(cm_growth_unit(leak), "iteration") == 0 ? "iterations"
                                                              : "time slices",
               leak->iteration >= 0 ? leak->iteration - slices : -1);
    if (slices > 0) {
        add_number(self, "time slices", slices);
    }
}

static void
add_rank(struct cm_sheet *self)
{
    const struct cm_leak *leak = self->leak;

    if (leak->rank >= 0 && leak->world_size > 0) {
        cm_buffer_addf(self->out,
                       "<dt>rank</dt><dd>%" PRId64 " of %" PRId64 "</dd>",
                       leak->rank, leak->world_size);
    }
    else {
        add_number(self, "rank", leak->rank);
    }
}

static void
add_facts(struct cm_sheet *self)
{
    const struct cm_leak *leak = self->leak;
    const char *path = self->options->report_name != NULL
                           ? self->options->report_name
                           : leak->source_path;
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;

    cm_put(self, "<section><h3>Made with</h3>\n<dl>");
    add_fact(self, "report", slash != NULL ? slash + 1 : path ? path : "");
    add_fact(self, "cumem", cm_sheet_text(self, leak->cumem));
    add_fact(self, "Python", cm_sheet_text(self, leak->python));
    add_fact(self, "torch", cm_sheet_text(self, leak->torch));
    add_fact(self, "interceptor", cm_sheet_text(self, leak->interceptor));
    add_fact(self, "allocator hook",
             cm_sheet_text(self, leak->allocator_hook));
    add_fact(self, "host", cm_sheet_text(self, leak->host));
    add_number(self, "process", leak->pid);
    add_rank(self);
    add_iterations(self);
    cm_put(self, "</dl></section>\n");
}

void
cm_foot_add(struct cm_sheet *self)
{
    cm_put(self, "<footer>\n");
    add_collections(self);
    add_lost(self);
    add_facts(self);
    cm_put(self, "</footer>\n");
}
