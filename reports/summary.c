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
#include "filenames.h"
#include "line.h"
#include "memory_table.h"
#include "path.h"
#include "path_line.h"
#include "size.h"
#include "utf8.h"

#define INDENT 9
#define FINGERPRINT_COLUMN (CM_LINE_WIDTH - 8)

struct writer {
    const struct cm_leak *leak;
    const struct cm_summary_options *options;
    struct cm_filenames filenames;
    struct cm_paths paths;
    struct cm_line line;
};

static const char *
text_of(const struct writer *self, struct cm_text_id id)
{
    return cm_leak_text(self->leak, id);
}

static bool
has_class(const struct cm_leak *leak, const struct cm_leak_cycle *cycle,
          const char *name)
{
    return strcmp(cm_leak_text(leak, cycle->class), name) == 0;
}

static bool
is_asked_for(const struct cm_summary_options *options, uint64_t fingerprint)
{
    for (size_t i = 0; i < options->only_count; i++) {
        if (options->only[i] == fingerprint) {
            return true;
        }
    }
    return options->only == NULL;
}

/* The count that this cycle belongs to; NULL: it is not dead, holds nothing
 * that would be freed (all of it lives on elsewhere), or is not asked for. */
static size_t *
count_of(const struct cm_leak *leak, const struct cm_leak_cycle *cycle,
         const struct cm_summary_options *options,
         struct cm_summary_counts *counts)
{
    if (has_class(leak, cycle, "resurrected")
        || (cycle->peak_bytes == 0 && !options->all)
        || !is_asked_for(options, cycle->fingerprint)) {
        return NULL;
    }
    if (!options->all && cycle->library_package.index != 0) {
        return &counts->library;
    }
    if (!options->all && cycle->peak_bytes < options->min_bytes) {
        return &counts->small;
    }
    return options->top != 0 && counts->shown >= options->top ? &counts->more
                                                              : &counts->shown;
}

void
cm_summary_count(const struct cm_leak *leak,
                 const struct cm_summary_options *options,
                 struct cm_summary_counts *result, size_t *shown)
{
    *result = (struct cm_summary_counts){0};
    for (size_t i = 0; i < leak->cycle_count; i++) {
        size_t *count = count_of(leak, &leak->cycles[i], options, result);

        if (count == NULL) {
            continue;
        }
        if (count == &result->shown && shown != NULL) {
            shown[*count] = i;
        }
        *count += 1;
    }
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
add_program(struct writer *self)
{
    cm_line_add(&self->line, CM_PAINT_LABEL, "cumem");
    if (self->leak->rank >= 0) {
        cm_line_addf(&self->line, CM_PAINT_LABEL, " [rank %" PRId64 "]",
                     self->leak->rank);
    }
    cm_line_add(&self->line, CM_PAINT_LABEL, ": ");
}

static void
add_device(struct writer *self, const struct cm_leak_device *device)
{
    const char *name = text_of(self, device->name);
    struct cm_line *line = &self->line;
    char size[CM_SIZE_TEXT_BYTES];

    add_program(self);
    cm_line_add(line, CM_PAINT_NONE, "up to ");
    /* A peak below what was dead is that of one framework of several. */
    if (!is_cpu(self->leak, device) && device->peak_allocated > 0
        && device->peak_allocated >= device->dead_peak) {
        cm_size_format_of(device->dead_peak, device->peak_allocated, size);
        cm_line_addf(line, CM_PAINT_TITLE, "%s", size);
        cm_line_add(line, CM_PAINT_NONE, " at ");
        cm_line_add(line, CM_PAINT_NONE, name);
        cm_line_add(line, CM_PAINT_NONE, "'s peak");
        if (device->dead_peak_iteration >= 0) {
            cm_line_addf(line, CM_PAINT_NONE, " (iteration %" PRId64 ")",
                         device->dead_peak_iteration);
        }
        cm_line_add(line, CM_PAINT_NONE, " was dead");
    }
    else {
        cm_size_format(device->dead_peak, size);
        cm_line_addf(line, CM_PAINT_TITLE, "%s", size);
        cm_line_add(line, CM_PAINT_NONE, " of ");
        cm_line_add(line, CM_PAINT_NONE, name);
        cm_line_addf(
            line, CM_PAINT_NONE, "%s was dead at one moment%s",
            is_cpu(self->leak, device) ? " tensors" : "",
            has_accelerator(self->leak) ? "" : " (no GPU in this process)");
    }
    cm_line_end(line);
}

/* One line for each device, or one for all when no device says anything. */
static void
add_header(struct writer *self, size_t dead)
{
    bool said = false;

    for (size_t i = 0; dead > 0 && i < self->leak->device_count; i++) {
        if (self->leak->devices[i].dead_peak > 0) {
            add_device(self, &self->leak->devices[i]);
            said = true;
        }
    }
    if (said) {
        return;
    }
    add_program(self);
    if (dead == 0) {
        cm_line_add(&self->line, CM_PAINT_NONE,
                    "no dead cycle holds device memory");
        if (self->options->suppressed > 0) {
            cm_line_addf(&self->line, CM_PAINT_QUIET, " (%zu suppressed)",
                         self->options->suppressed);
        }
    }
    else {
        cm_line_addf(&self->line, CM_PAINT_NONE,
                     dead == 1 ? "%zu dead cycle holds device memory"
                               : "%zu dead cycles hold device memory",
                     dead);
    }
    cm_line_end(&self->line);
}

static void
add_title(struct writer *self, const struct cm_leak_cycle *cycle,
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
                    text_of(self, cycle->library_package));
    }
    if (cycle->count > 1) {
        cm_line_addf(line, CM_PAINT_NONE, " x%" PRIu64, cycle->count);
    }
    cm_size_format(cycle->bytes_each, size);
    cm_line_addf(line, CM_PAINT_NONE, ", %s%s", size,
                 cycle->count > 1 ? " each" : "");
    if (cycle->count > 1 && cycle->peak_bytes > cycle->bytes_each) {
        cm_size_format(cycle->peak_bytes, size);
        cm_line_addf(line, CM_PAINT_NONE, ", at most %s at once", size);
    }
    cm_line_fill(line, FINGERPRINT_COLUMN);
    cm_line_addf(line, CM_PAINT_QUIET, "[%06" PRIx64 "]",
                 cycle->fingerprint >> 40);
    cm_line_end(line);
}

static void
add_label(struct writer *self, const char *label)
{
    cm_buffer_add_fill(self->line.out, ' ', 3);
    self->line.columns = 3;
    cm_line_add(&self->line, CM_PAINT_LABEL, label);
    cm_line_fill(&self->line, INDENT);
}

static void
add_place(struct writer *self, const struct cm_leak_frame *frame,
          enum cm_paint paint)
{
    cm_line_add(&self->line, paint,
                cm_filenames_short(&self->filenames, frame->filename));
    cm_line_addf(&self->line, paint, ":%" PRIu32, frame->line);
}

/* Columns of " (or FILE:LINE, FILE:LINE)", 0 without further candidates. */
static long
candidates_columns(const struct writer *self, const struct cm_leak_edge *edge)
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
add_candidates(struct writer *self, const struct cm_leak_edge *edge)
{
    for (size_t i = 1; i < edge->made_at_count; i++) {
        cm_line_add(&self->line, CM_PAINT_NONE, i == 1 ? " (or " : ", ");
        add_place(self, &edge->made_at[i], CM_PAINT_NONE);
    }
    if (edge->made_at_count > 1) {
        cm_line_add(&self->line, CM_PAINT_NONE, ")");
    }
}

static void
add_cut(struct writer *self, const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *edge =
        cycle->cut_count > 0 ? cm_leak_edge_at(self->leak, cycle->cut[0])
                             : NULL;
    const char *reason = text_of(self, cycle->no_cut_reason);
    const char *source;

    add_label(self, "cut");
    if (edge == NULL || edge->made_at_count == 0) {
        cm_line_add(&self->line, CM_PAINT_NONE, "not known: ");
        cm_line_add_wrapped(
            &self->line,
            reason[0] != '\0' ? reason : "the report does not say", INDENT);
        cm_line_end(&self->line);
        return;
    }
    if (!edge->made_at[0].certain) {
        cm_line_add(&self->line, CM_PAINT_NONE, "probably ");
    }
    add_place(self, &edge->made_at[0], CM_PAINT_PLACE);
    source = text_of(self, edge->made_at[0].source);
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
add_fix(struct writer *self, const struct cm_leak_cycle *cycle)
{
    const char *advice = text_of(self, cycle->advice);
    const char *link = text_of(self, cycle->library_link);

    if (advice[0] != '\0') {
        add_label(self, "fix");
        cm_line_add_wrapped(&self->line, advice, INDENT);
        cm_line_end(&self->line);
    }
    if (link[0] != '\0') {
        add_label(self, "known");
        cm_line_add(&self->line, CM_PAINT_NONE, link);
        cm_line_end(&self->line);
    }
}

/* The vertex at the end of the path when it holds a storage, else the first
 * vertex of the largest storage that goes with the cycle; 0: none. */
static uint32_t
largest_storage(const struct writer *self, const struct cm_leak_cycle *cycle,
                const struct cm_path *path)
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

static void
add_frame(struct writer *self, const struct cm_leak_frame *frame)
{
    const char *name = text_of(self, frame->name);
    const char *source = text_of(self, frame->source);

    add_place(self, frame, CM_PAINT_PLACE);
    if (name[0] != '\0') {
        cm_line_add(&self->line, CM_PAINT_NONE, " ");
        cm_line_add_cut(&self->line, name, 0);
    }
    if (source[0] != '\0' && self->line.columns < CM_LINE_WIDTH - 12) {
        cm_line_add(&self->line, CM_PAINT_NONE, ": ");
        cm_line_add_cut(&self->line, source, 0);
    }
    cm_line_end(&self->line);
}

/* When the object was made elsewhere than its memory: as a view is, or what an
 * extension returns. */
static void
add_object(struct writer *self, const struct cm_leak_site *site,
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
        cm_line_fill(&self->line, INDENT);
        cm_line_add(&self->line, CM_PAINT_NONE, "the object: ");
        add_frame(self, there);
    }
}

static void
add_site(struct writer *self, const struct cm_leak_site *site)
{
    if (site != NULL && site->user_frame >= 0) {
        add_frame(self, &site->frames[site->user_frame]);
        return;
    }
    cm_line_add(&self->line, CM_PAINT_NONE, "not known: ");
    cm_line_add(&self->line, CM_PAINT_NONE,
                site == NULL || site->frame_count == 0
                    ? "no stack was recorded"
                    : "only library frames (--all-frames)");
    cm_line_end(&self->line);
}

static void
add_alloc(struct writer *self, const struct cm_leak_cycle *cycle,
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

    add_label(self, "alloc");
    if (own && block->awaited) {
        cm_line_add(&self->line, CM_PAINT_NONE,
                    "(in backward, waiting thread) ");
    }
    add_site(self, site);
    if (own) {
        add_object(self, site, vertex);
    }
    for (size_t i = 0;
         site != NULL && self->options->all_frames && i < site->frame_count;
         i++) {
        cm_line_fill(&self->line, INDENT);
        add_frame(self, &site->frames[i]);
    }
}

static enum cm_status
add_finding(struct writer *self, size_t cycle, size_t number)
{
    const struct cm_leak_cycle *found = &self->leak->cycles[cycle];
    struct cm_path path = {0};
    enum cm_status status = cm_paths_find(&self->paths, cycle, &path);

    if (status == CM_OK) {
        add_title(self, found, number);
        add_cut(self, found);
        add_fix(self, found);
        if (path.count > 0) {
            add_label(self, "path");
            status = cm_path_line_add(&self->line, &path);
        }
        add_alloc(self, found, &path);
    }
    cm_path_release(&path);
    return status;
}

/* One part of the last line, with what parts it from the one before. */
static void
add_hidden(struct writer *self, bool *said, size_t count, const char *what)
{
    if (count > 0) {
        cm_line_addf(&self->line, CM_PAINT_NONE, "%s%zu %s",
                     *said ? ", " : "hidden: ", count, what);
        *said = true;
    }
}

static const char *
report_name(const struct writer *self)
{
    const char *path = self->leak->source_path, *slash;

    if (self->options->report_name != NULL || path == NULL) {
        return self->options->report_name;
    }
    slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void
add_lost(struct writer *self)
{
    const char *reason = text_of(self, self->leak->lost_reason);

    if (self->leak->lost_events == 0 && self->leak->lost_nodes == 0) {
        return;
    }
    cm_line_addf(&self->line, CM_PAINT_NONE,
                 "lost: %" PRIu64 " events, %" PRIu64 " objects",
                 self->leak->lost_events, self->leak->lost_nodes);
    if (reason[0] != '\0') {
        cm_line_add(&self->line, CM_PAINT_NONE, ": ");
        cm_line_add_cut(&self->line, reason, 0);
    }
    cm_line_end(&self->line);
}

static void
add_footer(struct writer *self, const struct cm_summary_counts *counts)
{
    const char *name = report_name(self);
    char size[CM_SIZE_TEXT_BYTES], small[CM_SIZE_TEXT_BYTES + 8];
    bool said = false;

    cm_size_format_short(self->options->min_bytes, size);
    snprintf(small, sizeof(small), "under %s", size);
    add_hidden(self, &said, counts->more, "more (--top)");
    add_hidden(self, &said, counts->library, "in libraries");
    add_hidden(self, &said, counts->small, small);
    if (counts->library + counts->small > 0) {
        cm_line_add(&self->line, CM_PAINT_NONE, " (--all)");
    }
    add_hidden(self, &said, self->options->suppressed, "suppressed");
    if (name != NULL) {
        cm_line_add(&self->line, CM_PAINT_NONE,
                    said ? " | cyclereport " : "cyclereport ");
        cm_line_add(&self->line, CM_PAINT_NONE, name);
    }
    if (said || name != NULL) {
        cm_line_end(&self->line);
    }
}

/* Where memory ran out, always; else for whoever asks, or wonders. */
static void
add_memory(struct writer *self, size_t dead)
{
    bool asked_for = self->options->all && self->options->only == NULL;

    cm_memory_table_add(self->leak, &self->filenames, !asked_for && dead > 0,
                        &self->line);
}

static enum cm_status
write_all(struct writer *self, size_t *shown)
{
    struct cm_summary_counts counts;
    enum cm_status status;
    size_t dead;

    cm_summary_count(self->leak, self->options, &counts, shown);
    status =
        cm_filenames_init(&self->filenames, self->leak, shown, counts.shown);
    if (status == CM_OK) {
        status = cm_paths_init(&self->paths, self->leak);
    }
    if (status != CM_OK) {
        return status;
    }
    dead = counts.shown + counts.library + counts.small + counts.more;
    add_header(self, dead);
    for (size_t i = 0; status == CM_OK && i < counts.shown; i++) {
        status = add_finding(self, shown[i], i + 1);
    }
    add_memory(self, dead);
    add_lost(self);
    if (dead > 0) {
        add_footer(self, &counts);
    }
    return status;
}

enum cm_status
cm_summary_write(const struct cm_leak *leak,
                 const struct cm_summary_options *options,
                 struct cm_buffer *out)
{
    struct writer self = {.leak = leak,
                          .options = options,
                          .line = {.out = out, .colour = options->colour}};
    size_t *shown = cm_calloc(leak->cycle_count + 1, sizeof(*shown));
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
