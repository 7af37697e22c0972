/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A block of the summary for growth: the verdict with its numbers, who holds
 * it, the advice, the lines that allocate.  A path that is too long gets a
 * line of its own, and loses steps there; what is never lost is the root,
 * which has the name to look for, and the place where they pile up. */
#include <inttypes.h>
#include <string.h>

#include "fault.h"
#include "growth.h"
#include "summary_lines.h"
#include "utf8.h"

/* Titles are put on one line, whatever it takes: they are searched for.  The
 * fingerprint stands behind those that leave room. */
#define TITLE_COLUMNS (CM_LINE_WIDTH - 9)
/* Of one fault; most of them beside what they have in common. */
#define MOST_LINES 3
#define MOST_LINES_OF_ALL 40
#define MOST_COMPARED 256

static void
add_title(struct cm_summary_writer *self, const struct cm_leak_growth *growth,
          size_t number)
{
    static const char *const names[] = {
        [CM_GROWTH_NO_VERDICT] = "GROWTH",   [CM_GROWTH_OK] = "OK",
        [CM_GROWTH_SETTLED] = "SETTLED",     [CM_GROWTH_GROWING] = "GROWING",
        [CM_GROWTH_LINGERING] = "LINGERING", [CM_GROWTH_LEAK] = "LEAK",
    };
    struct cm_line *line = &self->line;
    struct cm_buffer text = {0};

    cm_line_addf(line, CM_PAINT_TITLE, "#%zu %s", number,
                 names[cm_growth_verdict(self->leak, growth)]);
    if (growth->library_package.index != 0) {
        cm_line_add(line, CM_PAINT_NONE, " in ");
        cm_line_add(line, CM_PAINT_NONE,
                    cm_summary_text(self, growth->library_package));
    }
    cm_buffer_add_char(&text, ' ');
    cm_growth_add_sentence(self->leak, growth, &text);
    cm_line_add(line, CM_PAINT_NONE, cm_buffer_text(&text));
    if (line->columns <= TITLE_COLUMNS) {
        cm_summary_end_title(self, growth->fingerprint);
    }
    else {
        cm_line_end(line);
    }
    cm_summary_add_failure(self, &text);
    cm_buffer_release(&text);
}

/* ===== who holds it ===================================================== */

/* Whether the place is in the function that is the root: it has been said. */
static bool
is_rootless(struct cm_summary_writer *self,
            const struct cm_leak_growth *growth)
{
    const char *root = cm_summary_text(self, growth->holder[0].annotation);
    const char *space = strchr(root, ' ');

    return growth->made_at_count > 0 && space != NULL
           && strchr(root, ':') != NULL && strchr(root, ':') < space
           && strcmp(space + 1, cm_summary_text(self, growth->made_at[0].name))
                  == 0;
}

/* One part of the way, harmless, " > " before all but the first. */
static void
add_part(struct cm_summary_writer *self, const struct cm_leak_growth *growth,
         size_t part, struct cm_buffer *out)
{
    struct cm_buffer text = {0};

    cm_growth_add_part(self->leak, growth, part, is_rootless(self, growth),
                       &text);
    cm_buffer_add_text(out, part > 0 ? " > " : "");
    cm_utf8_add_harmless(out, cm_buffer_text(&text));
    cm_summary_add_failure(self, &text);
    cm_buffer_release(&text);
}

/* The parts from `first` on: the place where they pile up and the last `tail`,
 * "..." for each gap. */
static void
add_parts(struct cm_summary_writer *self, const struct cm_leak_growth *growth,
          size_t first, size_t tail, struct cm_buffer *out)
{
    size_t parts = cm_growth_part_count(growth);
    size_t place = cm_growth_place_part(self->leak, growth);
    bool gap = false;

    for (size_t i = first; i < parts; i++) {
        if (i == 0 || i == place || i + tail >= parts) {
            add_part(self, growth, i, out);
            gap = false;
        }
        else if (!gap) {
            cm_buffer_add_text(out, " > ...");
            gap = true;
        }
    }
}

static long
parts_columns(struct cm_summary_writer *self,
              const struct cm_leak_growth *growth, size_t first, size_t tail)
{
    struct cm_buffer text = {0};
    long columns;

    add_parts(self, growth, first, tail, &text);
    columns = cm_utf8_columns(cm_buffer_text(&text));
    cm_summary_add_failure(self, &text);
    cm_buffer_release(&text);
    return columns;
}

/* How many of the last parts have room; each takes four columns at least. */
static size_t
fitting_tail(struct cm_summary_writer *self,
             const struct cm_leak_growth *growth)
{
    size_t parts = cm_growth_part_count(growth), most = CM_LINE_WIDTH / 4;
    size_t tail = parts - 1 < most ? parts - 1 : most;
    long room = CM_LINE_WIDTH - self->line.columns;

    while (tail > 0 && parts_columns(self, growth, 0, tail) > room) {
        tail--;
    }
    return tail;
}

/* Behind the place, or where there is no room below it. */
static void
begin_path(struct cm_summary_writer *self, long columns)
{
    if (columns < CM_LINE_WIDTH - self->line.columns) {
        cm_line_add(&self->line, CM_PAINT_NONE, " ");
    }
    else {
        cm_line_end(&self->line);
        cm_line_fill(&self->line, CM_SUMMARY_INDENT);
    }
}

/* A root so long that the place has no room behind it loses its end. */
static void
add_shortened(struct cm_summary_writer *self,
              const struct cm_leak_growth *growth, size_t tail)
{
    struct cm_buffer root = {0}, rest = {0};
    long most = (CM_LINE_WIDTH - self->line.columns) / 3, columns;

    add_part(self, growth, 0, &root);
    add_parts(self, growth, 1, tail, &rest);
    columns = cm_utf8_columns(cm_buffer_text(&rest));
    cm_line_add_cut(&self->line, cm_buffer_text(&root),
                    columns < most ? columns : most);
    if (columns > 0) {
        cm_line_add(&self->line, CM_PAINT_NONE, " ");
        cm_line_add_cut(&self->line, cm_buffer_text(&rest), 0);
    }
    cm_summary_add_failure(self, &root);
    cm_summary_add_failure(self, &rest);
    cm_buffer_release(&root);
    cm_buffer_release(&rest);
}

static void
add_path(struct cm_summary_writer *self, const struct cm_leak_growth *growth)
{
    size_t parts = cm_growth_part_count(growth);

    if (growth->made_at_count > 0) {
        begin_path(self, parts_columns(self, growth, 0, parts));
    }
    add_shortened(self, growth, fitting_tail(self, growth));
}

/* "FILE:LINE FUNCTION:" of the place that holds it. */
static void
add_place(struct cm_summary_writer *self, const struct cm_leak_growth *growth)
{
    const struct cm_leak_frame *place = &growth->made_at[0];
    const char *name = cm_summary_text(self, place->name);

    if (!place->certain) {
        cm_line_add(&self->line, CM_PAINT_NONE, "probably ");
    }
    cm_summary_add_place(self, place, CM_PAINT_PLACE);
    if (name[0] != '\0') {
        cm_line_add(&self->line, CM_PAINT_NONE, " ");
        cm_line_add_cut(&self->line, name, CM_LINE_WIDTH / 3);
    }
    cm_line_add(&self->line, CM_PAINT_NONE, ":");
}

static void
add_held(struct cm_summary_writer *self, const struct cm_leak_growth *growth)
{
    bool fault = cm_growth_is_told(cm_growth_verdict(self->leak, growth));

    if (growth->holder_count == 0
        && (!fault || cm_growth_is_outside(self->leak, growth))) {
        return;
    }
    cm_summary_add_label(self, "held");
    if (growth->holder_count == 0) {
        cm_line_add(&self->line, CM_PAINT_NONE,
                    "not known: no path from a name was found");
        cm_line_end(&self->line);
        return;
    }
    if (growth->made_at_count > 0) {
        add_place(self, growth);
    }
    add_path(self, growth);
    if (growth->autograd_depth > 1
        && self->line.columns + 24 < CM_LINE_WIDTH) {
        cm_line_addf(&self->line, CM_PAINT_NONE,
                     " (%" PRIu64 " autograd nodes)", growth->autograd_depth);
    }
    cm_line_end(&self->line);
}

/* ===== the whole ======================================================== */

static void
add_fix(struct cm_summary_writer *self, const struct cm_leak_growth *growth)
{
    const char *link = cm_summary_text(self, growth->library_link);
    struct cm_buffer advice = {0};

    cm_growth_add_advice(self->leak, growth, &advice);
    if (advice.length != 0) {
        cm_summary_add_label(self, "fix");
        cm_line_add_wrapped(&self->line, cm_buffer_text(&advice),
                            CM_SUMMARY_INDENT);
        cm_line_end(&self->line);
    }
    cm_summary_add_failure(self, &advice);
    cm_buffer_release(&advice);
    if (link[0] != '\0') {
        cm_summary_add_label(self, "known");
        cm_line_add(&self->line, CM_PAINT_NONE, link);
        cm_line_end(&self->line);
    }
}

static void
add_line(struct cm_summary_writer *self, const struct cm_leak_growth *growth,
         const char *label)
{
    const struct cm_leak_site *site =
        growth->site != 0 ? cm_leak_site_at(self->leak, growth->site) : NULL;

    if (site == NULL && cm_growth_is_outside(self->leak, growth)) {
        return;
    }
    cm_summary_add_label(self, label);
    if (growth->awaited) {
        cm_line_add(&self->line, CM_PAINT_NONE,
                    "(in backward, waiting thread) ");
    }
    cm_summary_add_site(self, site);
    cm_summary_add_frames(self, site);
}

/* NULL: not known. */
static const struct cm_leak_frame *
own_frame(const struct cm_summary_writer *self,
          const struct cm_leak_growth *growth)
{
    const struct cm_leak_site *site =
        growth->site != 0 ? cm_leak_site_at(self->leak, growth->site) : NULL;

    return site != NULL && site->user_frame >= 0
               ? &site->frames[site->user_frame]
               : NULL;
}

/* The same line of the program, by another way through a library. */
static bool
repeats(const struct cm_summary_writer *self,
        const struct cm_leak_growth *first, uint32_t at)
{
    const struct cm_leak_frame *own = own_frame(self, &first[at]);

    for (uint32_t i = 0; own != NULL && i < at && i < MOST_COMPARED; i++) {
        const struct cm_leak_frame *other = own_frame(self, &first[i]);

        if (other != NULL && other->line == own->line
            && cm_text_same(other->filename, own->filename)) {
            return true;
        }
    }
    return false;
}

/* How many there are, each line once; the places of the first ones. */
static uint32_t
find_others(const struct cm_summary_writer *self,
            const struct cm_leak_growth *first,
            uint32_t others[MOST_LINES_OF_ALL])
{
    uint32_t lines = cm_fault_lines(first), count = 0;

    for (uint32_t i = 1; i < lines; i++) {
        if (!self->options->all_frames && repeats(self, first, i)) {
            continue;
        }
        if (count < MOST_LINES_OF_ALL) {
            others[count] = i;
        }
        count++;
    }
    return count;
}

/* The other lines of the fault. */
static void
add_others(struct cm_summary_writer *self, const struct cm_leak_growth *first)
{
    uint32_t others[MOST_LINES_OF_ALL];
    uint32_t lines = find_others(self, first, others);
    uint32_t most = self->options->all ? MOST_LINES_OF_ALL : MOST_LINES;
    uint32_t shown = lines <= most ? lines : most - 1;

    for (uint32_t i = 0; i < shown; i++) {
        add_line(self, &first[others[i]], "also");
    }
    if (shown < lines) {
        cm_summary_add_label(self, "also");
        cm_line_addf(&self->line, CM_PAINT_NONE, "%" PRIu32 " more lines%s",
                     lines - shown, self->options->all ? "" : " (--all)");
        cm_line_end(&self->line);
    }
}

void
cm_growth_add_text(struct cm_summary_writer *self,
                   const struct cm_leak_growth *growth, size_t number)
{
    const struct cm_leak_growth fault = cm_fault_sum(growth);

    add_title(self, &fault, number);
    add_held(self, growth);
    add_fix(self, growth);
    add_line(self, growth, "alloc");
    add_others(self, growth);
}
