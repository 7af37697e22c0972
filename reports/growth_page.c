/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The table of all lines that allocate what stays: those that a person hears
 * of first, then what settled or is well, folded.  Bounded; what is left out
 * is counted. */
#include <inttypes.h>
#include <string.h>

#include "fault.h"
#include "growth.h"
#include "plot.h"
#include "sheet.h"

#define MAX_ROWS 100
#define MAX_QUIET_ROWS 60

static void
put_label(struct cm_sheet *self, struct cm_text_id text)
{
    cm_escape_html_label(self->out, cm_sheet_text(self, text), 60);
}

/* Escaped, without the marks that make a part of it code in text. */
static void
put_plain(struct cm_sheet *self, struct cm_buffer *text)
{
    struct cm_buffer plain = {0};

    for (const char *c = cm_buffer_text(text); *c != '\0'; c++) {
        if (*c != '`') {
            cm_buffer_add_char(&plain, *c);
        }
    }
    cm_escape_html_label(self->out, cm_buffer_text(&plain), CM_LABEL_MAX);
    cm_sheet_take_failure(self, text);
    cm_sheet_take_failure(self, &plain);
    cm_buffer_release(text);
    cm_buffer_release(&plain);
}

void
cm_growth_put_step(struct cm_sheet *self, const struct cm_leak_growth *growth,
                   size_t step)
{
    struct cm_buffer text = {0};

    cm_growth_add_step(self->leak, growth, step, &text);
    put_plain(self, &text);
}

void
cm_growth_put_part(struct cm_sheet *self, const struct cm_leak_growth *growth,
                   size_t part)
{
    struct cm_buffer text = {0};

    cm_growth_add_part(self->leak, growth, part, false, &text);
    put_plain(self, &text);
}

bool
cm_growth_put_advice(struct cm_sheet *self, const char *before,
                     const struct cm_leak_growth *growth)
{
    struct cm_buffer advice = {0};
    bool known;

    cm_growth_add_advice(self->leak, growth, &advice);
    known = advice.length != 0;
    if (known) {
        cm_put(self, before);
        cm_excerpt_say(self, cm_buffer_text(&advice));
    }
    cm_sheet_take_failure(self, &advice);
    cm_buffer_release(&advice);
    return known;
}

/* "+4.0 MiB", nothing where it does not move. */
static void
put_slope(struct cm_sheet *self, double bytes)
{
    if (bytes >= 0.5 || bytes <= -0.5) {
        cm_put(self, bytes < 0 ? "-" : "+");
        cm_put_size(self, (uint64_t)((bytes < 0 ? -bytes : bytes) + 0.5));
    }
}

void
cm_growth_put_line(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    const struct cm_leak_site *site =
        growth->site != 0 ? cm_leak_site_at(self->leak, growth->site) : NULL;
    const struct cm_leak_frame *frame;

    if (site == NULL || site->frame_count == 0) {
        cm_put(self, "not known");
        return;
    }
    frame = &site->frames[site->user_frame >= 0 ? site->user_frame : 0];
    cm_put_place(self, frame);
    cm_put(self, " <span class=\"name\">");
    put_label(self, frame->name);
    cm_put(self, "</span>");
}

/* The first three parts, and the place where they pile up. */
static void
add_holder(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    size_t parts = cm_growth_part_count(growth);
    size_t place = cm_growth_place_part(self->leak, growth);

    for (size_t i = 0; i < parts; i++) {
        if (i < 3 || i == place) {
            cm_put(self, i > 0 ? " \u203a " : "");
            cm_growth_put_part(self, growth, i);
        }
        else if (i == 3 || i == place + 1) {
            cm_put(self, " \u2026");
        }
    }
}

/* The number of the finding that shows it whole; 0: none does. */
static size_t
number_of(const struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    for (size_t i = 0; i < self->count; i++) {
        const struct cm_leak_growth *first = self->findings[i].growth;

        if (first != NULL && growth >= first
            && growth < first + cm_fault_lines(first)) {
            return self->findings[i].number;
        }
    }
    return 0;
}

/* Its unit, where that is not the table's. */
static void
add_slope(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    struct cm_growth_pace pace =
        cm_growth_pace_of(self->leak, growth->since_iteration);
    const char *unit = cm_growth_pace_now(self->leak).unit;

    put_slope(self, growth->bytes_per_iteration / pace.each);
    if (strcmp(pace.unit, unit) != 0 && growth->bytes_per_iteration >= 0.5) {
        cm_buffer_addf(self->out, " per %s", pace.unit);
    }
}

static void
add_row(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    enum cm_growth_verdict verdict = cm_growth_verdict(self->leak, growth);
    size_t number = number_of(self, growth);

    cm_buffer_addf(self->out, "<tr class=\"%s\"><th scope=\"row\">",
                   cm_growth_verdict_name(verdict));
    if (number > 0) {
        cm_buffer_addf(self->out, "<a href=\"#finding-%zu\">#%zu</a> ", number,
                       number);
    }
    cm_put(self, cm_growth_verdict_name(verdict));
    cm_put(self, "</th><td>");
    add_slope(self, growth);
    cm_put(self, "</td><td>");
    cm_put_size(self, growth->bytes);
    cm_put(self, "</td><td>");
    cm_plot_add_spark((const int64_t(*)[3])growth->series,
                      growth->series_count, self->out);
    cm_put(self, "</td><td>");
    cm_escape_html_label(self->out, cm_growth_what(self->leak, growth), 40);
    cm_put(self, "</td><td>");
    cm_growth_put_line(self, growth);
    cm_put(self, "</td><td>");
    add_holder(self, growth);
    cm_put(self, "</td><td>");
    cm_growth_put_advice(self, "", growth);
    cm_put(self, "</td></tr>\n");
}

static const char head[] =
    "<table class=\"sites\"><thead><tr><th scope=\"col\">verdict</th>"
    "<th scope=\"col\">each %s</th><th scope=\"col\">now</th>"
    "<th scope=\"col\">so far</th><th scope=\"col\">what</th>"
    "<th scope=\"col\">allocated at</th><th scope=\"col\">held by</th>"
    "<th scope=\"col\">fix</th></tr></thead><tbody>\n";

/* Those that a person hears of, or the others; returns how many there are. */
static size_t
add_rows(struct cm_sheet *self, bool told, size_t most)
{
    size_t count = 0;

    for (size_t i = 0; i < self->leak->growth_count; i++) {
        const struct cm_leak_growth *growth = &self->leak->growth[i];

        if (cm_growth_is_told(cm_growth_verdict(self->leak, growth)) == told
            && count++ < most) {
            add_row(self, growth);
        }
    }
    return count;
}

static size_t
count_quiet(const struct cm_sheet *self)
{
    size_t count = 0;

    for (size_t i = 0; i < self->leak->growth_count; i++) {
        count += !cm_growth_is_told(
            cm_growth_verdict(self->leak, &self->leak->growth[i]));
    }
    return count;
}

static void
end_table(struct cm_sheet *self, size_t count, size_t most)
{
    cm_put(self, "</tbody></table>\n");
    if (count > most) {
        cm_buffer_addf(self->out,
                       "<p class=\"note\">%zu more in the report</p>\n",
                       count - most);
    }
}

void
cm_growth_add_table(struct cm_sheet *self)
{
    size_t quiet = count_quiet(self);

    if (self->leak->growth_count == 0) {
        return;
    }
    cm_buffer_addf(self->out,
                   "<section class=\"memory\" id=\"growth\">"
                   "<h2>What stays from %s to %s</h2>\n",
                   cm_growth_unit(self->leak), cm_growth_unit(self->leak));
    if (self->leak->growth_count > quiet) {
        cm_buffer_addf(self->out, head, cm_growth_pace_now(self->leak).unit);
        end_table(self, add_rows(self, true, MAX_ROWS), MAX_ROWS);
    }
    if (quiet > 0) {
        cm_buffer_addf(self->out,
                       "<details><summary>%zu that settled, or are well"
                       "</summary>\n",
                       quiet);
        cm_buffer_addf(self->out, head, cm_growth_pace_now(self->leak).unit);
        end_table(self, add_rows(self, false, MAX_QUIET_ROWS), MAX_QUIET_ROWS);
        cm_put(self, "</details>\n");
    }
    cm_put(self, "</section>\n");
}
