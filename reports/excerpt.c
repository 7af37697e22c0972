/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The line to cut, with what is around it and what comes in its place, as a
 * diff; the sentence of advice; the other candidates.  Linear in the lines. */
#include <inttypes.h>
#include <string.h>

#include "mend.h"
#include "sheet.h"

/* Lines joined by line ends. */
static uint32_t
count_lines(const char *text)
{
    uint32_t lines = text[0] != '\0';

    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

/* The smaller of `indent` and that of every line that is not blank. */
static size_t
least_indent(const char *text, size_t indent)
{
    while (*text != '\0') {
        size_t own = strspn(text, " \t"), length = strcspn(text, "\n");

        if (own < length && own < indent) {
            indent = own;
        }
        text += length + (text[length] == '\n');
    }
    return indent;
}

/* Lines of an excerpt.  `mark` is their class; `line` 0: no numbers; `indent`
 * bytes of white space are left away. */
static void
add_code(struct cm_sheet *self, const char *mark, uint32_t line,
         const char *text, size_t indent)
{
    uint32_t count = count_lines(text);

    for (uint32_t i = 0; i < count; i++) {
        size_t length = strcspn(text, "\n"), blank = strspn(text, " \t");
        size_t skip = blank < indent ? blank : indent;

        cm_buffer_addf(self->out, "<span class=\"%s\"><i>", mark);
        if (line > 0) {
            cm_buffer_addf(self->out, "%" PRIu32, line + i);
        }
        cm_put(self, "</i>");
        cm_put(self, mark[0] == 'd' ? "- " : mark[0] == 'a' ? "+ " : "  ");
        cm_escape_html_part(self->out, text + skip, length - skip);
        cm_put(self, "\n</span>");
        text += length + (text[length] == '\n');
    }
}

/* What comes: a mended line, or the advice as a comment. */
static void
add_mended(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
           const char *source, size_t indent, struct cm_buffer *mended)
{
    const char *advice = cm_sheet_text(self, cycle->advice);

    if (mended->length > 0) {
        cm_buffer_truncate(mended, mended->length - 1); /* its line end */
    }
    else if (advice[0] != '\0') {
        cm_buffer_add(mended, source, strspn(source, " \t"));
        cm_buffer_addf(mended, "# %s", advice);
    }
    add_code(self, "add", 0, cm_buffer_text(mended), indent);
}

/* Two lines before, the line, what comes in its place, two lines after. */
static void
add_diff(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
         const struct cm_leak_edge *edge)
{
    const struct cm_leak_frame *place = &edge->made_at[0];
    const char *source = cm_sheet_text(self, place->source);
    const char *before = cm_sheet_text(self, place->before);
    const char *after = cm_sheet_text(self, place->after);
    size_t indent = least_indent(
        before, least_indent(after, least_indent(source, SIZE_MAX)));
    struct cm_buffer mended = {0};
    struct cm_mend_case fault = {
        .rule = cm_sheet_text(self, cycle->rule),
        .advice = cm_sheet_text(self, cycle->advice),
        .edge = cm_sheet_text(self, edge->annotation),
        .before = before,
        .source = source,
    };
    enum cm_mend way = cm_mend_line(&mended, &fault);

    if (source[0] == '\0') {
        goto done;
    }
    cm_put(self, "<pre class=\"code\">");
    if (count_lines(before) < place->line) {
        add_code(self, "near", place->line - count_lines(before), before,
                 indent);
    }
    add_code(self, way == CM_MEND_REPLACE ? "del" : "here", place->line,
             source, indent);
    if (way != CM_MEND_AFTER) {
        add_mended(self, cycle, source, indent, &mended);
    }
    add_code(self, "near", place->line + 1, after, indent);
    if (way == CM_MEND_AFTER) {
        cm_put(self, "<span class=\"gap\"><i></i>  \u22ee\n</span>");
        add_mended(self, cycle, source, indent, &mended);
    }
    cm_put(self, "</pre>\n");
done:
    cm_buffer_release(&mended);
}

void
cm_excerpt_add_line(struct cm_sheet *self, const struct cm_leak_frame *place)
{
    const char *source = cm_sheet_text(self, place->source);
    const char *before = cm_sheet_text(self, place->before);
    const char *after = cm_sheet_text(self, place->after);
    size_t indent = least_indent(
        before, least_indent(after, least_indent(source, SIZE_MAX)));

    if (source[0] == '\0') {
        return;
    }
    cm_put(self, "<pre class=\"code\">");
    if (count_lines(before) < place->line) {
        add_code(self, "near", place->line - count_lines(before), before,
                 indent);
    }
    add_code(self, "here", place->line, source, indent);
    add_code(self, "near", place->line + 1, after, indent);
    cm_put(self, "</pre>\n");
}

static void
add_candidates(struct cm_sheet *self, const struct cm_leak_edge *edge)
{
    for (size_t i = 1; i < edge->made_at_count; i++) {
        cm_put(self, i == 1 ? "<p class=\"or\">or " : "<br>or ");
        cm_put_place(self, &edge->made_at[i]);
        cm_put(self, " <code>");
        cm_say(self,
               cm_unindented(cm_sheet_text(self, edge->made_at[i].source)));
        cm_put(self, "</code>");
    }
    if (edge->made_at_count > 1) {
        cm_put(self, "</p>\n");
    }
}

static void
add_cut_heading(struct cm_sheet *self, const struct cm_leak_frame *place)
{
    const char *name = cm_sheet_text(self, place->name);

    cm_put(self, place->certain ? "<h3>Cut at " : "<h3>Cut, probably at ");
    cm_put_place(self, place);
    if (name[0] != '\0') {
        cm_put(self, " <small>in <code>");
        cm_say(self, name);
        cm_put(self, "</code></small>");
    }
    cm_put(self, "</h3>\n");
}

void
cm_excerpt_say(struct cm_sheet *self, const char *text)
{
    const char *open, *close;

    while ((open = strchr(text, '`')) != NULL
           && (close = strchr(open + 1, '`')) != NULL) {
        cm_escape_html_part(self->out, text, (size_t)(open - text));
        cm_put(self, "<code>");
        cm_escape_html_part(self->out, open + 1, (size_t)(close - open) - 1);
        cm_put(self, "</code>");
        text = close + 1;
    }
    cm_say(self, text);
}

void
cm_excerpt_add(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *edge = cm_leak_known_cut(self->leak, cycle);
    const char *reason = cm_sheet_text(self, cycle->no_cut_reason);
    const char *link = cm_sheet_text(self, cycle->library_link);

    cm_put(self, "<section class=\"cut\">");
    if (edge != NULL) {
        add_cut_heading(self, &edge->made_at[0]);
    }
    else {
        cm_put(self, "<h3>The line to cut is not known</h3>\n<p>");
        cm_say(self, reason[0] ? reason : "the report does not say why");
        cm_put(self, "</p>\n");
    }
    if (cycle->advice.index != 0) {
        cm_put(self, "<p class=\"fix\"><b>Fix</b> ");
        cm_excerpt_say(self, cm_sheet_text(self, cycle->advice));
        cm_put(self, "</p>\n");
    }
    if (edge != NULL) {
        add_diff(self, cycle, edge);
        add_candidates(self, edge);
    }
    if (link[0] != '\0') {
        cm_put(self, "<p class=\"known\">Known: ");
        cm_say(self, link);
        cm_put(self, "</p>\n");
    }
    cm_put(self, "</section>\n");
}
