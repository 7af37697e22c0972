/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The summary.  Blocks are written in the order of the document; a block costs
 * the search of its path (path.h).  Lines of code and stacks are cut at 80
 * columns, the advice wraps and is never cut, a path loses whole steps. */
#include "summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../detector/alloc.h"
#include "../detector/size.h"
#include "exhausted.h"
#include "filenames.h"
#include "growth.h"
#include "growth_unit.h"
#include "line.h"
#include "memory_table.h"
#include "path.h"
#include "path_line.h"
#include "summary_lines.h"
#include "utf8.h"

static bool
has_class(const struct cm_leak *leak, const struct cm_leak_cycle *cycle,
          const char *name)
{
    return strcmp(cm_leak_text(leak, cycle->class), name) == 0;
}

static bool
is_cpu(const struct cm_leak *leak, const struct cm_leak_device *device)
{
    return strcmp(cm_leak_text(leak, device->name), "cpu") == 0;
}

static bool
has_accelerator(const struct cm_leak *leak)
{
    for (size_t i = 0; i < leak->device_count; i++) {
        if (!is_cpu(leak, &leak->devices[i])) {
            return true;
        }
    }
    return false;
}

static void
add_program(struct cm_summary_writer *self)
{
    cm_line_add(&self->line, CM_PAINT_LABEL, "cumem");
    if (self->leak->rank >= 0) {
        cm_line_addf(&self->line, CM_PAINT_LABEL, " [rank %" PRId64 "]",
                     self->leak->rank);
    }
    cm_line_add(&self->line, CM_PAINT_LABEL, ": ");
}

static void
add_device(struct cm_summary_writer *self, const struct cm_leak_device *device)
{
    const char *name = cm_summary_text(self, device->name);
    struct cm_line *line = &self->line;
    char size[CM_SIZE_TEXT_BYTES];

    add_program(self);
    cm_line_add(line, CM_PAINT_NONE,
                cm_leak_is_partial(self->leak) ? "at least " : "up to ");
    /* A peak below what was dead is that of one framework of several. */
    if (!is_cpu(self->leak, device) && device->peak_allocated > 0
        && device->peak_allocated >= device->dead_peak) {
        cm_size_format_of(device->dead_peak, device->peak_allocated, size);
        cm_line_addf(line, CM_PAINT_TITLE, "%s", size);
        cm_line_add(line, CM_PAINT_NONE, " at ");
        cm_line_add(line, CM_PAINT_NONE, name);
        cm_line_add(line, CM_PAINT_NONE, "'s peak");
        if (device->dead_peak_iteration >= 0) {
            cm_line_addf(
                line, CM_PAINT_NONE, " (%s %" PRId64 ")",
                cm_growth_unit_of(self->leak, device->dead_peak_iteration),
                device->dead_peak_iteration);
        }
        cm_line_add(line, CM_PAINT_NONE, " was dead");
    }
    else {
        cm_size_format(device->dead_peak, size);
        cm_line_addf(line, CM_PAINT_TITLE, "%s", size);
        cm_line_add(line, CM_PAINT_NONE, " of ");
        cm_line_add(line, CM_PAINT_NONE, name);
        cm_line_addf(line, CM_PAINT_NONE, "%s was dead at one moment%s",
                     is_cpu(self->leak, device) ? " tensors" : "",
                     has_accelerator(self->leak) ? "" : " (no GPU here)");
    }
    cm_line_end(line);
}

/* One line for each device that has a fault; false: none has. */
static bool
add_growth(struct cm_summary_writer *self)
{
    struct cm_buffer text = {0};
    bool said = false;

    for (size_t i = 0; i < self->leak->timeline.device_count; i++) {
        cm_buffer_clear(&text);
        if (cm_growth_add_device(
                self->leak, self->leak->timeline.devices[i].name, &text)) {
            add_program(self);
            cm_line_add(&self->line, CM_PAINT_TITLE, cm_buffer_text(&text));
            cm_line_end(&self->line);
            said = true;
        }
    }
    cm_summary_add_failure(self, &text);
    cm_buffer_release(&text);
    return said;
}

/* Some grows, or stays, and is not told; with no dead cycle what is hidden is
 * of that kind. */
static bool
hides_growth(const struct cm_summary_writer *self,
             const struct cm_summary_counts *counts)
{
    return counts->shown + counts->more == 0
           && counts->library + counts->small + self->options->suppressed
                  > self->options->known;
}

/* When no device says anything. */
static void
add_plain_header(struct cm_summary_writer *self,
                 const struct cm_summary_counts *counts)
{
    add_program(self);
    if (counts->dead > 0) {
        cm_line_addf(&self->line, CM_PAINT_NONE,
                     counts->dead == 1 ? "%zu dead cycle holds device memory"
                                       : "%zu dead cycles hold device memory",
                     counts->dead);
    }
    else if (counts->faults > 0) {
        cm_line_addf(&self->line, CM_PAINT_NONE,
                     counts->faults == 1
                         ? "%zu line of code keeps more and more memory"
                         : "%zu lines of code keep more and more memory",
                     counts->faults);
    }
    else {
        cm_line_add(&self->line, CM_PAINT_NONE,
                    self->options->known > 0
                        ? "only known dead cycles hold device memory"
                        : "no dead cycle holds device memory");
        if (hides_growth(self, counts)) {
            cm_line_add(&self->line, CM_PAINT_NONE,
                        ", and nothing told grows");
        }
        if (self->options->suppressed > 0) {
            cm_line_addf(&self->line, CM_PAINT_QUIET, " (%zu suppressed)",
                         self->options->suppressed);
        }
    }
    cm_line_end(&self->line);
}

/* Who is told of something new has heard this before. */
static bool
tells_exhausted(const struct cm_summary_writer *self)
{
    return self->leak->exhausted.known
           && (self->options->only == NULL || self->options->exhausted);
}

static void
add_exhausted(struct cm_summary_writer *self)
{
    struct cm_buffer text = {0};

    if (tells_exhausted(self)) {
        cm_exhausted_add_sentence(self->leak, &text);
        add_program(self);
        cm_line_add_wrapped(&self->line, cm_buffer_text(&text),
                            CM_SUMMARY_INDENT);
        cm_line_end(&self->line);
    }
    cm_summary_add_failure(self, &text);
    cm_buffer_release(&text);
}

static void
add_kept(struct cm_summary_writer *self)
{
    struct cm_buffer text = {0};

    for (size_t i = 0;
         tells_exhausted(self) && i < self->leak->exhausted.kept_count; i++) {
        cm_buffer_clear(&text);
        cm_exhausted_add_kept(self->leak, i, &text);
        cm_summary_add_label(self, "held");
        cm_line_add_cut(&self->line, cm_buffer_text(&text), 0);
        cm_line_end(&self->line);
    }
    cm_summary_add_failure(self, &text);
    cm_buffer_release(&text);
}

static void
add_header(struct cm_summary_writer *self,
           const struct cm_summary_counts *counts)
{
    bool said = false;

    for (size_t i = 0; counts->dead > 0 && i < self->leak->device_count; i++) {
        if (self->leak->devices[i].dead_peak > 0) {
            add_device(self, &self->leak->devices[i]);
            said = true;
        }
    }
    if (!said && counts->dead == 0 && counts->faults > 0) {
        said = add_growth(self);
    }
    if (!said) {
        add_plain_header(self, counts);
    }
}

static void
add_title(struct cm_summary_writer *self, const struct cm_leak_cycle *cycle,
          size_t number)
{
    struct cm_line *line = &self->line;
    char size[CM_SIZE_TEXT_BYTES];

    cm_line_addf(line, CM_PAINT_TITLE, "#%zu %s CYCLE", number,
                 has_class(self->leak, cycle, "uncollectable")
                     ? "UNCOLLECTABLE"
                     : "DEAD");
    if (has_class(self->leak, cycle, "frozen")) {
        cm_line_add(line, CM_PAINT_NONE, " (frozen)");
    }
    if (cycle->library_package.index != 0) {
        cm_line_add(line, CM_PAINT_NONE, " in ");
        cm_line_add(line, CM_PAINT_NONE,
                    cm_summary_text(self, cycle->library_package));
    }
    if (cycle->count > 1) {
        cm_line_addf(line, CM_PAINT_NONE, " x%" PRIu64, cycle->count);
    }
    cm_size_format(cycle->bytes_each, size);
    cm_line_addf(line, CM_PAINT_NONE, ", %s%s", size,
                 cycle->count > 1 ? " each" : "");
    if (cycle->count > 1 && cycle->peak_bytes > cycle->bytes_each) {
        cm_size_format(cycle->peak_bytes, size);
        cm_line_addf(line, CM_PAINT_NONE, ", at %s %s at once",
                     cm_leak_is_partial(self->leak) ? "least" : "most", size);
    }
    cm_summary_end_title(self, cycle->fingerprint);
}

/* Columns of " (or FILE:LINE, FILE:LINE)", 0 without further candidates. */
static long
candidates_columns(const struct cm_summary_writer *self,
                   const struct cm_leak_edge *edge)
{
    long columns = edge->made_at_count > 1 ? 4 : 0;

    for (size_t i = 1; i < edge->made_at_count; i++) {
        char line[16];

        columns +=
            3
            + snprintf(line, sizeof(line), "%" PRIu32, edge->made_at[i].line);
        columns += cm_utf8_columns(
            cm_filenames_short(&self->filenames, edge->made_at[i].filename));
    }
    return columns;
}

static void
add_candidates(struct cm_summary_writer *self, const struct cm_leak_edge *edge)
{
    for (size_t i = 1; i < edge->made_at_count; i++) {
        cm_line_add(&self->line, CM_PAINT_NONE, i == 1 ? " (or " : ", ");
        cm_summary_add_place(self, &edge->made_at[i], CM_PAINT_NONE);
    }
    if (edge->made_at_count > 1) {
        cm_line_add(&self->line, CM_PAINT_NONE, ")");
    }
}

static void
add_cut(struct cm_summary_writer *self, const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *edge = cm_leak_known_cut(self->leak, cycle);
    const char *reason = cm_summary_text(self, cycle->no_cut_reason);
    const char *source;

    cm_summary_add_label(self, "cut");
    if (edge == NULL) {
        cm_line_add(&self->line, CM_PAINT_NONE, "not known: ");
        cm_line_add_wrapped(&self->line,
                            reason[0] != '\0' ? reason
                                              : "the report does not say",
                            CM_SUMMARY_INDENT);
        cm_line_end(&self->line);
        return;
    }
    if (!edge->made_at[0].certain) {
        cm_line_add(&self->line, CM_PAINT_NONE, "probably ");
    }
    cm_summary_add_place(self, &edge->made_at[0], CM_PAINT_PLACE);
    source = cm_summary_text(self, edge->made_at[0].source);
    if (source[0] != '\0') {
        cm_line_add(&self->line, CM_PAINT_NONE, "  ");
        cm_line_add_cut(
            &self->line, source,
            edge->made_at[0].certain ? 0 : candidates_columns(self, edge));
    }
    if (!edge->made_at[0].certain) {
        add_candidates(self, edge);
    }
    cm_line_end(&self->line);
}

static void
add_fix(struct cm_summary_writer *self, const struct cm_leak_cycle *cycle)
{
    const char *advice = cm_summary_text(self, cycle->advice);
    const char *link = cm_summary_text(self, cycle->library_link);

    if (advice[0] != '\0') {
        cm_summary_add_label(self, "fix");
        cm_line_add_wrapped(&self->line, advice, CM_SUMMARY_INDENT);
        cm_line_end(&self->line);
    }
    if (link[0] != '\0') {
        cm_summary_add_label(self, "known");
        cm_line_add(&self->line, CM_PAINT_NONE, link);
        cm_line_end(&self->line);
    }
}

/* The vertex at the end of the path when it holds a storage, else the first
 * vertex of the largest storage that goes with the cycle; 0: none. */
static uint32_t
largest_storage(const struct cm_summary_writer *self,
                const struct cm_leak_cycle *cycle, const struct cm_path *path)
{
    uint32_t result =
        path->count > 0 ? cm_leak_vertex_at(
                              self->leak, path->steps[path->count - 1].vertex)
                              ->storage
                        : 0;

    for (size_t i = 0; result == 0 && i < cycle->payload_count; i++) {
        result = cycle->payload[i];
    }
    return result;
}

static uint32_t
last_vertex(const struct cm_path *path)
{
    return path->count > 0 ? path->steps[path->count - 1].vertex : 0;
}

/* When the object was made elsewhere than its memory: as a view is, or what an
 * extension returns. */
static void
add_object(struct cm_summary_writer *self, const struct cm_leak_site *site,
           uint32_t vertex)
{
    uint32_t id =
        vertex != 0 ? cm_leak_vertex_at(self->leak, vertex)->site : 0;
    const struct cm_leak_site *made =
        id != 0 ? cm_leak_site_at(self->leak, id) : NULL;
    const struct cm_leak_frame *here, *there;

    if (made == NULL || made->user_frame < 0 || site->user_frame < 0) {
        return;
    }
    here = &site->frames[site->user_frame];
    there = &made->frames[made->user_frame];
    if (!cm_text_same(here->filename, there->filename)
        || here->line != there->line) {
        cm_line_fill(&self->line, CM_SUMMARY_INDENT);
        cm_line_add(&self->line, CM_PAINT_NONE, "the object: ");
        cm_summary_add_frame(self, there);
    }
}

static void
add_alloc(struct cm_summary_writer *self, const struct cm_leak_cycle *cycle,
          const struct cm_path *path)
{
    uint32_t storage = largest_storage(self, cycle, path);
    uint32_t vertex = last_vertex(path);
    uint32_t id = cm_leak_alloc_site(self->leak, storage, vertex);
    const struct cm_leak_site *site =
        id != 0 ? cm_leak_site_at(self->leak, id) : NULL;
    const struct cm_leak_storage *block =
        storage != 0 ? cm_leak_storage_at(self->leak, storage) : NULL;
    bool own = block != NULL && block->block_bytes > 0 && id != 0
               && id == block->site;

    cm_summary_add_label(self, "alloc");
    if (own && block->awaited) {
        cm_line_add(&self->line, CM_PAINT_NONE,
                    "(in backward, waiting thread) ");
    }
    cm_summary_add_site(self, site);
    if (own) {
        add_object(self, site, vertex);
    }
    cm_summary_add_frames(self, site);
}

static enum cm_status
add_finding(struct cm_summary_writer *self, size_t cycle, size_t number)
{
    const struct cm_leak_cycle *found = &self->leak->cycles[cycle];
    struct cm_path path = {0};
    enum cm_status status = cm_paths_find(&self->paths, cycle, &path);

    if (status == CM_OK) {
        add_title(self, found, number);
        add_cut(self, found);
        add_fix(self, found);
        cm_summary_add_shared(self, found);
        if (path.count > 0) {
            cm_summary_add_label(self, "path");
            status = cm_path_line_add(&self->line, &path);
        }
        add_alloc(self, found, &path);
    }
    cm_path_release(&path);
    return status;
}

/* Where memory ran out, always; else for whoever asks, or wonders. */
static void
add_memory(struct cm_summary_writer *self, size_t told)
{
    bool asked_for = self->options->all && self->options->only == NULL;

    cm_memory_table_add(self->leak, &self->filenames, !asked_for && told > 0,
                        &self->line);
    if (asked_for) {
        cm_memory_table_add_alone(self->leak, &self->filenames, &self->line);
    }
}

static enum cm_status
add_shown(struct cm_summary_writer *self, struct cm_leak_finding finding,
          size_t number)
{
    if (finding.growth) {
        cm_growth_add_text(self, &self->leak->growth[finding.index], number);
        return CM_OK;
    }
    return add_finding(self, finding.index, number);
}

static enum cm_status
write_all(struct cm_summary_writer *self, struct cm_leak_finding *shown)
{
    struct cm_summary_counts counts;
    enum cm_status status;
    size_t told;

    cm_summary_count(self->leak, self->options, &counts, shown);
    status =
        cm_filenames_init(&self->filenames, self->leak, shown, counts.shown);
    if (status == CM_OK) {
        status = cm_paths_init(&self->paths, self->leak);
    }
    if (status != CM_OK) {
        return status;
    }
    told = counts.shown + counts.library + counts.small + counts.more;
    add_exhausted(self);
    add_kept(self);
    if (self->options->exhausted) {
        if (self->options->reason) {
            cm_memory_table_add_reason(self->leak, &self->line);
        }
        counts = (struct cm_summary_counts){0};
        cm_summary_add_footer(self, &counts);
        return CM_OK;
    }
    if (told > 0 || !tells_exhausted(self)) {
        add_header(self, &counts);
    }
    for (size_t i = 0; status == CM_OK && i < counts.shown; i++) {
        status = add_shown(self, shown[i], i + 1);
    }
    add_memory(self, told);
    cm_summary_add_saved(self);
    cm_summary_add_lost(self);
    if (told > 0 || tells_exhausted(self)) {
        cm_summary_add_footer(self, &counts);
    }
    return status;
}

enum cm_status
cm_summary_write(const struct cm_leak *leak,
                 const struct cm_summary_options *options,
                 struct cm_buffer *out)
{
    struct cm_summary_writer self = {
        .leak = leak,
        .options = options,
        .line = {.out = out, .colour = options->colour}};
    struct cm_leak_finding *shown =
        cm_calloc(leak->cycle_count + leak->growth_count + 1, sizeof(*shown));
    enum cm_status status = CM_NO_MEMORY;

    if (shown != NULL) {
        status = write_all(&self, shown);
    }
    cm_line_release(&self.line);
    cm_paths_release(&self.paths);
    cm_filenames_release(&self.filenames);
    cm_free(shown);
    return status == CM_OK ? cm_buffer_status(out) : status;
}
