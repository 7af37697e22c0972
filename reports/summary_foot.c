/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The end of the summary: what was saved, what was lost, and in one line all
 * that is not told above it and the command that shows it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../detector/size.h"
#include "summary_lines.h"
#include "utf8.h"

static const char *
report_name(const struct cm_summary_writer *self)
{
    const char *path = self->leak->source_path, *slash;

    if (self->options->report_name != NULL || path == NULL) {
        return self->options->report_name;
    }
    slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

void
cm_summary_add_saved(struct cm_summary_writer *self)
{
    const struct cm_leak_looks *looks = &self->leak->looks;
    char size[CM_SIZE_TEXT_BYTES];

    if (looks->saved_bytes == 0) {
        return;
    }
    cm_size_format(looks->saved_bytes, size);
    cm_line_addf(&self->line, CM_PAINT_NONE,
                 "saved: %s by %" PRIu64 " collection%s of CUMEM_AUTO_COLLECT",
                 size, looks->collections, looks->collections == 1 ? "" : "s");
    cm_line_end(&self->line);
}

void
cm_summary_add_lost(struct cm_summary_writer *self)
{
    const char *reason = cm_summary_text(self, self->leak->lost_reason);

    if (self->leak->lost_events == 0 && self->leak->lost_nodes == 0) {
        return;
    }
    cm_line_addf(
        &self->line, CM_PAINT_NONE,
        "lost: %" PRIu64 " event%s, %" PRIu64 " object%s",
        self->leak->lost_events, self->leak->lost_events == 1 ? "" : "s",
        self->leak->lost_nodes, self->leak->lost_nodes == 1 ? "" : "s");
    if (reason[0] != '\0') {
        cm_line_add(&self->line, CM_PAINT_NONE, ": ");
        cm_line_add_cut(&self->line, reason, 0);
    }
    cm_line_end(&self->line);
}

/* "hidden: 3 more", "2 in libraries" ...; false: nothing to say. */
static bool
add_hidden(struct cm_summary_writer *self, bool *said, size_t count,
           const char *what)
{
    if (count > 0) {
        cm_line_addf(&self->line, CM_PAINT_NONE, "%s%zu %s",
                     *said ? ", " : "hidden: ", count, what);
        *said = true;
    }
    return count > 0;
}

static void
add_more(struct cm_summary_writer *self,
         const struct cm_summary_counts *counts, bool *said)
{
    char size[CM_SIZE_TEXT_BYTES];

    if (add_hidden(self, said, counts->more, "more")) {
        cm_size_format(counts->more_bytes, size);
        cm_line_addf(&self->line, CM_PAINT_NONE, " (at most %s)", size);
    }
}

/* Whose they are: what a person can look up, or update. */
static void
add_libraries(struct cm_summary_writer *self,
              const struct cm_summary_counts *counts, bool *said)
{
    if (!add_hidden(self, said, counts->library, "in libraries")) {
        return;
    }
    for (size_t i = 0; i < counts->package_count; i++) {
        cm_line_add(&self->line, CM_PAINT_NONE, i == 0 ? " (" : ", ");
        cm_line_add(&self->line, CM_PAINT_NONE,
                    i < CM_SUMMARY_PACKAGES
                        ? cm_summary_text(self, counts->packages[i])
                        : "...");
    }
    cm_line_add(&self->line, CM_PAINT_NONE, ")");
}

/* As a shell takes it for one word. */
static void
quote(const char *name, struct cm_buffer *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_./%+=:@,-";
    const char *at = name;

    while (*at != '\0' && ((*at & 0x80) != 0 || strchr(plain, *at) != NULL)) {
        at++;
    }
    if (name[0] == '-') {
        cm_buffer_add_text(out, "./");
    }
    if (*at == '\0') {
        cm_buffer_add_text(out, name);
        return;
    }
    cm_buffer_add_char(out, '\'');
    for (at = name; *at != '\0'; at++) {
        if (*at == '\'') {
            cm_buffer_add_text(out, "'\\'");
        }
        cm_buffer_add_char(out, *at);
    }
    cm_buffer_add_char(out, '\'');
}

/* The command that shows all of it, on a line of its own where it does not fit
 * behind the others; `folded`: only --all does. */
static void
add_command(struct cm_summary_writer *self, const char *name, bool folded)
{
    const char *command = folded ? "cyclereport --all " : "cyclereport ";
    struct cm_buffer word = {0};
    long columns;

    quote(name, &word);
    columns =
        cm_utf8_columns(command) + cm_utf8_columns(cm_buffer_text(&word));

    if (self->line.columns > 0
        && self->line.columns + 3 + columns > CM_LINE_WIDTH) {
        cm_line_end(&self->line);
    }
    else if (self->line.columns > 0) {
        cm_line_add(&self->line, CM_PAINT_NONE, " | ");
    }
    cm_line_add(&self->line, CM_PAINT_NONE, command);
    cm_line_add(&self->line, CM_PAINT_NONE, cm_buffer_text(&word));
    cm_summary_add_failure(self, &word);
    cm_buffer_release(&word);
}

void
cm_summary_add_footer(struct cm_summary_writer *self,
                      const struct cm_summary_counts *counts)
{
    const char *name = report_name(self);
    bool folded = counts->library + counts->small > 0, said = false;
    char size[CM_SIZE_TEXT_BYTES], small[CM_SIZE_TEXT_BYTES + 8];

    cm_size_format_short(self->options->min_bytes, size);
    snprintf(small, sizeof(small), "under %s", size);
    add_more(self, counts, &said);
    add_libraries(self, counts, &said);
    (void)add_hidden(self, &said, counts->small, small);
    if (folded && name == NULL) {
        cm_line_add(&self->line, CM_PAINT_NONE, " (--all)");
    }
    (void)add_hidden(self, &said, self->options->suppressed, "suppressed");
    if (name != NULL) {
        add_command(self, name, folded);
    }
    if (said || name != NULL) {
        cm_line_end(&self->line);
    }
}
