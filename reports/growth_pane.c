/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * One finding of growth, in the order in which it is used: what it costs, who
 * holds it and what to change there, the path from the name to what grows, its
 * bytes over the iterations, where they were allocated; and all as text. */
#include <inttypes.h>
#include <string.h>

#include "../detector/alloc.h"
#include "fault.h"
#include "growth.h"
#include "plot.h"
#include "sheet.h"

/* Steps at both ends of a path that are always shown, and names. */
#define PATH_ENDS 8
#define MAX_NAMES 12
/* Of one fault. */
#define MAX_LINES 40
/* Points of the small drawing. */
#define MAX_POINTS 120
#define HEIGHT 96

/* ===== what it costs ==================================================== */

static void
add_name(struct cm_sheet *self, const struct cm_leak_growth *growth,
         size_t number)
{
    static const char *const names[] = {
        [CM_GROWTH_NO_VERDICT] = "Growth",   [CM_GROWTH_OK] = "Ok",
        [CM_GROWTH_SETTLED] = "Settled",     [CM_GROWTH_GROWING] = "Growing",
        [CM_GROWTH_LINGERING] = "Lingering", [CM_GROWTH_LEAK] = "Leak",
    };
    enum cm_growth_verdict verdict = cm_growth_verdict(self->leak, growth);
    const char *what = cm_growth_what(self->leak, growth);

    cm_buffer_addf(self->out, "<h2>#%zu %s", number, names[verdict]);
    if (what[0] != '\0') {
        cm_put(self, ": ");
        cm_escape_html_label(self->out, what, 40);
    }
    if (growth->library_package.index != 0) {
        cm_put(self, " in ");
        cm_say(self, cm_sheet_text(self, growth->library_package));
    }
    cm_put(self, "</h2>\n");
}

/* "+4.0 MiB per iteration", where it is the point. */
static void
add_slope(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    enum cm_growth_verdict verdict = cm_growth_verdict(self->leak, growth);
    struct cm_buffer slope = {0};

    if (verdict == CM_GROWTH_LEAK || verdict == CM_GROWTH_GROWING) {
        cm_growth_add_slope(self->leak, growth->bytes_per_iteration,
                            growth->since_iteration, &slope);
        cm_put(self, "<li><b>");
        cm_put(self, cm_buffer_text(&slope));
        cm_put(self, "</b></li>");
    }
    cm_sheet_take_failure(self, &slope);
    cm_buffer_release(&slope);
}

static void
add_full(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    struct cm_buffer text = {0};

    if (cm_growth_add_full(self->leak, growth->iterations_to_full,
                           growth->seconds_to_full, &text)) {
        cm_put(self, "<li>");
        cm_put(self, cm_buffer_text(&text));
        cm_put(self, "</li>");
    }
    cm_sheet_take_failure(self, &text);
    cm_buffer_release(&text);
}

static void
add_cost(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    cm_put(self, "<ul class=\"cost\">");
    add_slope(self, growth);
    cm_put(self, "<li><b>");
    cm_put_size(self, growth->bytes);
    cm_put(self, "</b> now");
    if (growth->count > 0) {
        cm_buffer_addf(self->out, " in %" PRIu64 " block%s", growth->count,
                       growth->count == 1 ? "" : "s");
    }
    cm_put(self, "</li>");
    if (growth->since_iteration >= 0) {
        cm_put(self, "<li>");
        cm_growth_add_since(self->leak, growth->since_iteration, self->out);
        cm_put(self, "</li>");
    }
    add_full(self, growth);
    if (growth->device.index != 0) {
        cm_put(self, "<li>");
        cm_escape_html_label(self->out, cm_sheet_text(self, growth->device),
                             40);
        cm_put(self, "</li>");
    }
    if (growth->confidence > 0) {
        cm_buffer_addf(self->out, "<li>%d %% sure</li>",
                       cm_growth_percent(growth->confidence));
    }
    cm_buffer_addf(self->out, "<li><code>%06" PRIx64 "</code></li></ul>\n",
                   growth->fingerprint >> 40);
}

/* ===== who holds it ===================================================== */

static void
add_holder_heading(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    const struct cm_leak_frame *place =
        growth->made_at_count > 0 ? &growth->made_at[0] : NULL;

    if (place == NULL) {
        cm_put(self, growth->holder_count > 0
                         ? "<h3>Held by <code>"
                         : "<h3>Who holds it is not known</h3>\n");
        if (growth->holder_count > 0) {
            cm_growth_put_part(self, growth, 0);
            cm_put(self, "</code></h3>\n");
        }
        return;
    }
    cm_put(self, place->certain ? "<h3>Held at " : "<h3>Held, probably at ");
    cm_put_place(self, place);
    if (place->name.index != 0) {
        cm_put(self, " <small>in <code>");
        cm_escape_html_label(self->out, cm_sheet_text(self, place->name),
                             CM_LABEL_MAX);
        cm_put(self, "</code></small>");
    }
    cm_put(self, "</h3>\n");
}

static void
add_mend(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    const char *link = cm_sheet_text(self, growth->library_link);

    cm_put(self, "<section class=\"cut\">");
    add_holder_heading(self, growth);
    if (cm_growth_put_advice(self, "<p class=\"fix\"><b>Fix</b> ", growth)) {
        cm_put(self, "</p>\n");
    }
    if (growth->made_at_count > 0) {
        cm_excerpt_add_line(self, &growth->made_at[0]);
    }
    if (link[0] != '\0') {
        cm_put(self, "<p class=\"known\">Known: ");
        cm_say(self, link);
        cm_put(self, "</p>\n");
    }
    cm_put(self, "</section>\n");
}

/* ===== the path ========================================================= */

/* What is known of the end of the way, and of where they pile up. */
static void
add_step_notes(struct cm_sheet *self, const struct cm_leak_growth *growth,
               size_t i)
{
    bool last = i + 1 == growth->holder_count;

    if (i > 0 && i == growth->holder_at) {
        cm_put(self, "<span class=\"note\">they pile up here");
        if (growth->retained_bytes != CM_LEAK_UNKNOWN) {
            cm_put(self, "; ");
            cm_put_size(self, growth->retained_bytes);
            cm_put(self, " go with it");
        }
        cm_put(self, "</span>");
    }
    cm_put(self, last ? "<span class=\"note\">what grows</span>" : "");
    if (last && growth->autograd_depth > 1) {
        cm_buffer_addf(self->out,
                       "<span class=\"note\">%" PRIu64
                       " autograd nodes behind it</span>",
                       growth->autograd_depth);
    }
}

/* An object, and the reference that leads on from it. */
static void
add_step(struct cm_sheet *self, const struct cm_leak_growth *growth, size_t i)
{
    bool last = i + 1 == growth->holder_count;
    const char *edge =
        last ? "" : cm_sheet_text(self, growth->holder[i + 1].edge);

    cm_buffer_addf(self->out, "<li class=\"%s%s\"><code><b>",
                   last                              ? "held"
                   : i > 0 && i == growth->holder_at ? "suspect"
                                                     : "step",
                   i == 0 ? " owner" : "");
    cm_growth_put_step(self, growth, i);
    cm_put(self, "</b>");
    if (edge[0] != '\0') {
        cm_put(self, " <span>");
        cm_escape_html_label(self->out, edge, CM_LABEL_MAX);
        cm_put(self, "</span>");
    }
    cm_put(self, "</code>");
    add_step_notes(self, growth, i);
    cm_put(self, "</li>\n");
}

static bool
is_folded(const struct cm_leak_growth *growth, size_t i)
{
    return i >= PATH_ENDS && i + PATH_ENDS < growth->holder_count
           && i != growth->holder_at;
}

static void
add_gap(struct cm_sheet *self, size_t steps)
{
    if (steps > 0) {
        cm_buffer_addf(self->out,
                       "<li class=\"gap\">\u22ee %zu more step%s</li>\n",
                       steps, steps == 1 ? "" : "s");
    }
}

static void
add_ladder(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    size_t count = growth->holder_count, gap = 0;

    if (count == 0) {
        cm_put(self, "<p class=\"note\">No path from a name leads to it: "
                     "nothing in Python holds it, or nobody looked.</p>\n");
        return;
    }
    cm_put(self, "<ol class=\"ladder\">\n");
    for (size_t i = 0; i < count; i++) {
        if (is_folded(growth, i)) {
            gap++;
            continue;
        }
        add_gap(self, gap);
        gap = 0;
        add_step(self, growth, i);
    }
    cm_put(self, "</ol>\n");
}

/* ===== its bytes over the iterations ==================================== */

static void
fill_points(const struct cm_leak_growth *growth, size_t points, double *x,
            uint64_t *bytes)
{
    for (size_t i = 0; i < points; i++) {
        size_t at =
            points > 1 ? i * (growth->series_count - 1) / (points - 1) : 0;

        x[i] = (double)growth->series[at][0];
        bytes[i] = (uint64_t)growth->series[at][2];
    }
}

static enum cm_status
add_drawing(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    static const char *const classes[] = {"growth"};
    size_t points =
        growth->series_count < MAX_POINTS ? growth->series_count : MAX_POINTS;
    double *x = cm_calloc(points + 1, sizeof(*x));
    uint64_t *bytes = cm_calloc(points + 1, sizeof(*bytes));
    struct cm_plot plot = {
        .count = points,
        .layers = 1,
        .x = x,
        .bytes = bytes,
        .classes = classes,
        .unit = cm_growth_unit_of(self->leak, growth->since_iteration),
        .height = HEIGHT,
        .since = (double)growth->since_iteration};
    enum cm_status status = x != NULL && bytes != NULL ? CM_OK : CM_NO_MEMORY;

    if (status == CM_OK && points > 1) {
        fill_points(growth, points, x, bytes);
        cm_put(self, "<figure class=\"timeline small\">\n");
        cm_plot_add(&plot, self->out);
        cm_put(self, "<div class=\"under\"><p class=\"reading\" "
                     "role=\"status\">");
        cm_buffer_addf(self->out, "%s %.0f: ", plot.unit, x[points - 1]);
        cm_put_size(self, bytes[points - 1]);
        cm_put(self, "</p></div></figure>\n");
    }
    cm_free(x);
    cm_free(bytes);
    return status;
}

/* ===== what it is ======================================================= */

static void
add_names(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    size_t shown =
        growth->name_count < MAX_NAMES ? growth->name_count : MAX_NAMES;

    if (shown == 0) {
        return;
    }
    cm_put(self, "<section class=\"holds\"><h3>Known as</h3>"
                 "<ul class=\"objects\">");
    for (size_t i = 0; i < shown; i++) {
        cm_put(self, "<li><code>");
        cm_escape_html_label(self->out, cm_sheet_text(self, growth->names[i]),
                             CM_LABEL_MAX);
        cm_put(self, "</code></li>");
    }
    if (growth->name_count > shown) {
        cm_buffer_addf(self->out, "<li>%zu more</li>",
                       growth->name_count - shown);
    }
    cm_put(self, "</ul></section>\n");
}

/* Of the fault, behind the first. */
static void
add_other_lines(struct cm_sheet *self, const struct cm_leak_growth *first)
{
    uint32_t lines = cm_fault_lines(first);
    uint32_t shown = lines < MAX_LINES ? lines : MAX_LINES;

    if (lines == 1) {
        return;
    }
    cm_put(self, "<section class=\"holds\"><h3>Also allocated at</h3>"
                 "<ul class=\"held\">\n");
    for (uint32_t i = 1; i < shown; i++) {
        cm_put(self, "<li><b>");
        cm_put_size(self, first[i].bytes);
        cm_put(self, "</b> ");
        cm_growth_put_line(self, &first[i]);
        cm_put(self, "</li>\n");
    }
    if (lines > shown) {
        cm_buffer_addf(self->out, "<li>%" PRIu32 " more line%s</li>\n",
                       lines - shown, lines - shown == 1 ? "" : "s");
    }
    cm_put(self, "</ul></section>\n");
}

enum cm_status
cm_growth_pane_add(struct cm_sheet *self,
                   const struct cm_sheet_finding *finding)
{
    const struct cm_leak_growth *growth = finding->growth;
    struct cm_leak_growth fault = cm_fault_sum(growth);
    enum cm_status status = cm_fault_series(growth, &fault.series);

    if (status != CM_OK) {
        return status;
    }

    cm_buffer_addf(self->out,
                   "<article id=\"finding-%zu\" tabindex=\"-1\">\n<header>",
                   finding->number);
    add_name(self, growth, finding->number);
    cm_put(self, "<button type=\"button\" class=\"copy\" hidden>"
                 "Copy as text</button>\n");
    add_cost(self, &fault);
    cm_put(self, "</header>\n<div class=\"both\"><div>\n");
    add_mend(self, growth);
    cm_buffer_addf(self->out, "</div><section><h3>Over the %ss</h3>\n",
                   cm_growth_unit_of(self->leak, growth->since_iteration));
    status = add_drawing(self, &fault);
    cm_free(fault.series);
    cm_put(self, "</section></div>\n<div class=\"both\">"
                 "<section class=\"path\"><h3>Path</h3>\n");
    add_ladder(self, growth);
    cm_put(self, "</section>\n<div>");
    cm_held_add_site(self, growth->site, growth->awaited);
    add_other_lines(self, growth);
    add_names(self, growth);
    cm_put(self, "</div></div>\n");
    cm_pane_add_text(self, finding);
    cm_put(self, "</article>\n");
    return status;
}
