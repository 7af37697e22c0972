/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The list of findings beside them, largest first, those of libraries and the
 * small ones folded; above it the search, which waits for the script.  Finding
 * the different rules is quadratic in the findings, of which there are few. */
#include <inttypes.h>
#include <string.h>

#include "fault.h"
#include "growth.h"
#include "sheet.h"

/* What the choice of kinds goes by: the rule, of growth the verdict. */
static struct cm_text_id
kind_of(const struct cm_sheet *self, const struct cm_sheet_finding *finding)
{
    return finding->growth != NULL ? finding->growth->verdict
                                   : self->leak->cycles[finding->cycle].rule;
}

static void
put_library(struct cm_sheet *self, struct cm_text_id package)
{
    if (package.index != 0) {
        cm_put(self, "in ");
        cm_say(self, cm_sheet_text(self, package));
        cm_put(self, ", ");
    }
}

static void
put_some_place(struct cm_sheet *self, const struct cm_leak_frame *place,
               const char *otherwise)
{
    cm_put(self, "</b> <span class=\"place\">");
    if (place != NULL) {
        cm_put_place(self, place);
        cm_put(self, "</span><small>");
        return;
    }
    if (otherwise != NULL) {
        cm_put(self, "<code>");
        cm_escape_html_label(self->out, otherwise, 40);
        cm_put(self, "</code></span><small>place not known, ");
        return;
    }
    cm_put(self, "place not known</span><small>");
}

/* Of a cycle whose place is not known: who would no longer refer, or one of
 * its objects; NULL: it has none. */
static const char *
name_of(const struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    uint32_t vertex = cycle->cut_count > 0
                          ? cm_leak_edge_at(self->leak, cycle->cut[0])->tail
                      : cycle->vertex_count > 0 ? cycle->vertices[0]
                                                : 0;

    return vertex != 0 ? cm_sheet_text(
               self, cm_leak_vertex_at(self->leak, vertex)->annotation)
                       : NULL;
}

static void
add_cycle(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *cut = cm_leak_known_cut(self->leak, cycle);

    cm_put_size(self, cycle->peak_bytes);
    put_some_place(self, cut != NULL ? &cut->made_at[0] : NULL,
                   name_of(self, cycle));
    put_library(self, cycle->library_package);
    cm_put_size(self, cycle->bytes_each);
    if (cycle->count > 1) {
        cm_buffer_addf(self->out, " each, \u00d7%" PRIu64, cycle->count);
    }
}

/* Where it is held, else where it is allocated; NULL: not known. */
static const struct cm_leak_frame *
place_of(const struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    const struct cm_leak_site *site =
        growth->site != 0 ? cm_leak_site_at(self->leak, growth->site) : NULL;

    if (growth->made_at_count > 0) {
        return &growth->made_at[0];
    }
    return site != NULL && site->user_frame >= 0
               ? &site->frames[site->user_frame]
               : NULL;
}

static void
add_growth(struct cm_sheet *self, const struct cm_leak_growth *growth)
{
    const struct cm_leak_growth fault = cm_fault_sum(growth);
    enum cm_growth_verdict verdict = cm_growth_verdict(self->leak, growth);
    struct cm_buffer slope = {0};

    cm_put_size(self, fault.peak_bytes);
    put_some_place(self, place_of(self, growth), NULL);
    put_library(self, growth->library_package);
    cm_put(self, cm_growth_verdict_name(verdict));
    if (verdict == CM_GROWTH_LEAK || verdict == CM_GROWTH_GROWING) {
        cm_growth_add_slope(self->leak, fault.bytes_per_iteration,
                            fault.since_iteration, &slope);
        cm_put(self, " ");
        cm_put(self, cm_buffer_text(&slope));
    }
    else {
        cm_put(self, ", ");
        cm_escape_html_label(self->out, cm_growth_what(self->leak, growth),
                             40);
    }
    cm_sheet_take_failure(self, &slope);
    cm_buffer_release(&slope);
}

static void
add_item(struct cm_sheet *self, const struct cm_sheet_finding *finding)
{
    cm_buffer_addf(self->out,
                   "<li data-kind=\"%" PRIu32 "\">"
                   "<a href=\"#finding-%zu\"><b>",
                   kind_of(self, finding).index, finding->number);
    if (finding->growth != NULL) {
        add_growth(self, finding->growth);
    }
    else {
        add_cycle(self, &self->leak->cycles[finding->cycle]);
    }
    cm_put(self, "</small></a></li>\n");
}

static void
add_items(struct cm_sheet *self, enum cm_sheet_group group)
{
    size_t written = 0;

    cm_put(self, "<ol>\n");
    for (size_t i = 0; i < self->count; i++) {
        if (self->findings[i].group == group) {
            add_item(self, &self->findings[i]);
            written++;
        }
    }
    cm_put(self, "</ol>\n");
    if (self->totals[group] > written) {
        cm_buffer_addf(self->out, "<p class=\"more\">%zu more in the report",
                       self->totals[group] - written);
        cm_put(self, "</p>\n");
    }
}

/* As a person writes a bound: "1 MiB", not "1.0 MiB". */
static void
put_bound(struct cm_sheet *self, uint64_t bytes)
{
    char text[CM_SIZE_TEXT_BYTES], *zero;

    cm_size_format(bytes, text);
    zero = strstr(text, ".0 ");
    if (zero != NULL) {
        memmove(zero, zero + 2, strlen(zero + 2) + 1);
    }
    cm_put(self, text);
}

/* "2 in libraries, 96 MiB" */
void
cm_put_group(struct cm_sheet *self, enum cm_sheet_group group)
{
    cm_buffer_addf(self->out, "%zu ", self->totals[group]);
    if (group == CM_SHEET_LIBRARY) {
        cm_put(self, "in libraries");
    }
    else {
        cm_put(self, "under ");
        put_bound(self, self->options->min_bytes);
    }
    cm_put(self, ", ");
    cm_put_size(self, self->bytes[group]);
}

static void
add_folded_items(struct cm_sheet *self, enum cm_sheet_group group)
{
    if (self->totals[group] == 0) {
        return;
    }
    cm_put(self, "<details><summary>");
    cm_put_group(self, group);
    cm_put(self, "</summary>\n");
    add_items(self, group);
    cm_put(self, "</details>\n");
}

/* Whether an earlier finding has the rule of this one. */
static bool
rule_is_listed(const struct cm_sheet *self, size_t position)
{
    struct cm_text_id kind = kind_of(self, &self->findings[position]);

    for (size_t i = 0; i < position; i++) {
        if (cm_text_same(kind_of(self, &self->findings[i]), kind)) {
            return true;
        }
    }
    return false;
}

/* A choice of the rules that found something. */
static void
add_kinds(struct cm_sheet *self)
{
    bool one = true;

    for (size_t i = 1; i < self->count; i++) {
        one = one && rule_is_listed(self, i);
    }
    cm_buffer_addf(self->out, "<div%s>", one ? " hidden" : "");
    cm_put(self, "<select id=\"kind\" aria-label=\"Kind of finding\">"
                 "<option value=\"\">every kind</option>");
    for (size_t i = 0; i < self->count; i++) {
        struct cm_text_id rule = kind_of(self, &self->findings[i]);
        const char *name = cm_sheet_text(self, rule);

        if (rule_is_listed(self, i)) {
            continue;
        }
        cm_buffer_addf(self->out, "<option value=\"%" PRIu32 "\">",
                       rule.index);
        while (*name != '\0') {
            size_t length = strcspn(name, "_");

            cm_escape_html_part(self->out, name, length);
            name += length + (name[length] == '_');
            cm_put(self, *name != '\0' ? " " : "");
        }
        cm_put(self, "</option>");
    }
    cm_put(self, "</select></div>");
}

void
cm_list_add(struct cm_sheet *self)
{
    cm_put(self, "<nav aria-label=\"Findings\">\n<div class=\"find\" hidden>"
                 "<input id=\"search\" type=\"search\" "
                 "placeholder=\"Search (press /)\" "
                 "aria-label=\"Search the findings\" autocomplete=\"off\">");
    add_kinds(self);
    cm_put(self, "<p id=\"matches\" role=\"status\"></p></div>\n");
    add_items(self, CM_SHEET_SHOWN);
    add_folded_items(self, CM_SHEET_LIBRARY);
    add_folded_items(self, CM_SHEET_SMALL);
    if (self->count == 0) {
        cm_put(self, "<p class=\"more\">No findings</p>\n");
    }
    if (self->options->suppressed > 0) {
        cm_buffer_addf(self->out, "<p class=\"more\">%zu suppressed</p>\n",
                       self->options->suppressed);
    }
    cm_put(self, "</nav>\n");
}
