/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The account of a device as a block of text.  Names of the document are cut
 * where they could be of any length; the first lines name fewer frameworks
 * rather than become one more, and what comes last is left out where the block
 * is full. */
#include "memory_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../detector/size.h"
#include "exhausted.h"
#include "memory_held.h"
#include "memory_why.h"
#include "utf8.h"

#define INDENT 9
#define MAX_LINES 6
#define NAME_COLUMNS 20
/* Frameworks that are named; fewer when that makes the line too long. */
#define MAX_NAMED 4

/* ===== the block of the summary ========================================= */

/* A name of the document, cut: it may be anything. */
static void
add_name(struct cm_buffer *out, const char *name)
{
    const char *end = name + strlen(name), *at = name;
    long columns = NAME_COLUMNS;

    while (at < end) {
        const char *next = at;

        columns -= cm_utf8_width(cm_utf8_next(&next, end));
        if (columns < 0) {
            break;
        }
        at = next;
    }
    cm_buffer_add(out, name, (size_t)(at - name));
    cm_buffer_add_text(out, at < end ? "..." : "");
}

static uint64_t
holds(const struct cm_leak_framework *framework)
{
    return cm_memory_has(framework->reserved)
               ? framework->reserved
               : cm_memory_plain(framework->allocated);
}

/* " (9.1 GiB cached, 96 MiB pending free, 3.2 GiB in private pools)": what is
 * cached where it is a part of the device to speak of. */
static void
add_parts(const struct cm_leak_device *device, uint64_t cached, bool torch,
          struct cm_buffer *out)
{
    const struct {
        uint64_t bytes;
        const char *name;
    } parts[] = {
        {cached > device->total / 100 ? cached : 0, " cached"},
        {torch ? cm_memory_plain(device->pending_free) : 0, " pending free"},
        {torch ? cm_memory_plain(device->private_pools) : 0,
         " in private pools"},
    };
    size_t start = out->length;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].bytes > 0) {
            cm_memory_add_size(out, out->length > start ? ", " : " (",
                               parts[i].bytes, parts[i].name);
        }
    }
    cm_buffer_add_text(out, out->length > start ? "), " : ", ");
}

static void
add_framework(const struct cm_leak *leak, const struct cm_leak_device *device,
              const struct cm_leak_framework *framework, struct cm_buffer *out)
{
    add_name(out, cm_leak_text(leak, framework->name));
    cm_memory_add_size(out, " ", holds(framework), "");
    add_parts(device,
              cm_memory_plain(cm_memory_cached(leak, device, framework)),
              cm_memory_is_torch(leak, framework), out);
}

/* Those `most` that hold most, the largest first; *rest: what the others hold.
 * Returns how many there are. */
static size_t
find_largest(const struct cm_leak_device *device, size_t most,
             const struct cm_leak_framework *largest[MAX_NAMED],
             uint64_t *rest)
{
    size_t count = 0;

    for (size_t i = 0; i < device->framework_count; i++) {
        const struct cm_leak_framework *least = &device->frameworks[i];

        for (size_t j = 0; j < count; j++) {
            if (holds(least) > holds(largest[j])) {
                const struct cm_leak_framework *moved = largest[j];

                largest[j] = least;
                least = moved;
            }
        }
        if (count < most && holds(least) > 0) {
            largest[count++] = least;
        }
        else {
            *rest = cm_memory_sum(*rest, holds(least));
        }
    }
    return count;
}

/* The frameworks, `named` of them by name. */
static void
add_frameworks(const struct cm_leak *leak, const struct cm_leak_device *device,
               size_t named, struct cm_buffer *out)
{
    const struct cm_leak_framework *largest[MAX_NAMED];
    uint64_t rest = 0;
    size_t count = find_largest(device, named, largest, &rest);

    for (size_t i = 0; i < count; i++) {
        add_framework(leak, device, largest[i], out);
    }
    if (rest > 0) {
        cm_memory_add_size(out, named > 0 ? "others " : "frameworks ", rest,
                           ", ");
    }
    if (device->framework_count == 0 && device->reserved > 0) {
        cm_memory_add_size(out, "frameworks ", device->reserved, "");
        add_parts(device, cm_memory_all_cached(device), true, out);
    }
}

/* "(140 GiB): torch 128 GiB (9.1 GiB cached), ... free 6.0 GiB" */
static void
add_shares(const struct cm_leak *leak, const struct cm_leak_device *device,
           size_t named, struct cm_buffer *out)
{
    if (device->total > 0) {
        cm_memory_add_size(out, "(", device->total, ")");
    }
    cm_buffer_add_text(out, device->total > 0 ? ": " : "");
    size_t start = out->length;
    add_frameworks(leak, device, named, out);
    if (cm_memory_plain(device->outside_frameworks) > 0) {
        cm_memory_add_size(out, "outside the frameworks ",
                           device->outside_frameworks, ", ");
    }
    if (cm_memory_plain(device->other_processes) > 0) {
        cm_memory_add_size(out, "other processes ", device->other_processes,
                           ", ");
    }
    if (cm_memory_has(device->free)) {
        cm_memory_add_size(out, "free ", device->free, ", ");
    }
    if (device->unasked) {
        cm_buffer_add_text(out, "pools not asked for: the program's own "
                                "recorder of torch is on, ");
    }
    if (out->length == start) {
        cm_buffer_add_text(out, "nothing is held, ");
    }
    if (out->length >= 2) {
        cm_buffer_truncate(out, out->length - 2);
    }
}

static size_t
lines_since(const struct cm_line *line, size_t start)
{
    size_t lines = 0;

    for (size_t i = start; i < line->out->length; i++) {
        lines += line->out->bytes[i] == '\n';
    }
    return lines;
}

/* What is said of torch's pools takes a line of its own. */
static size_t
more_lines(const struct cm_leak_device *device)
{
    return device->unasked || cm_memory_plain(device->pending_free) > 0
           || cm_memory_plain(device->private_pools) > 0;
}

/* Whether the text, wrapped from where `line` is, ends `most` lines on. */
static bool
fits(const struct cm_line *line, const struct cm_buffer *text, size_t most)
{
    struct cm_buffer out = {0};
    struct cm_line trial = {.out = &out, .columns = line->columns};
    bool fits;

    cm_line_add_wrapped(&trial, cm_buffer_text(text), INDENT);
    fits = lines_since(&trial, 0) <= most;
    cm_line_release(&trial);
    cm_buffer_release(&out);
    return fits;
}

static void
add_head(const struct cm_leak *leak, const struct cm_leak_device *device,
         struct cm_line *line)
{
    struct cm_buffer text = {0};

    add_name(&text, cm_leak_text(leak, device->name));
    cm_line_add(line, CM_PAINT_LABEL, "memory ");
    cm_line_add(line, CM_PAINT_LABEL, cm_buffer_text(&text));
    cm_line_add(line, CM_PAINT_NONE, " ");
    for (size_t named = MAX_NAMED + 1; named-- > 0;) {
        cm_buffer_truncate(&text, 0);
        add_shares(leak, device, named, &text);
        if (fits(line, &text, 1 + more_lines(device))) {
            break;
        }
    }
    cm_line_add_wrapped(line, cm_buffer_text(&text), INDENT);
    cm_line_end(line);
    if (line->out->status == CM_OK) {
        line->out->status = cm_buffer_status(&text);
    }
    cm_buffer_release(&text);
}

static void
add_label(struct cm_line *line, const char *label)
{
    cm_buffer_add_fill(line->out, ' ', 3);
    line->columns = 3;
    cm_line_add(line, CM_PAINT_LABEL, label);
    cm_line_fill(line, INDENT);
}

static void
add_sentence(struct cm_line *line, const char *label,
             const struct cm_buffer *text)
{
    if (text->length > 0) {
        add_label(line, label);
        cm_line_add_wrapped(line, cm_buffer_text(text), INDENT);
        cm_line_end(line);
    }
    if (line->out->status == CM_OK) {
        line->out->status = cm_buffer_status(text);
    }
}

static void
add_why(const struct cm_leak *leak, const struct cm_leak_device *device,
        struct cm_line *line)
{
    struct cm_buffer why = {0}, fix = {0};

    cm_memory_why(leak, device, &why, &fix);
    add_sentence(line, "why", &why);
    add_sentence(line, "fix", &fix);
    cm_buffer_release(&why);
    cm_buffer_release(&fix);
}

/* ===== what no object explains ========================================== */

/* "train.py:57 main: loss = model(x)", cut so that `reserve` is left. */
static void
add_place(const struct cm_leak *leak, const struct cm_filenames *filenames,
          const struct cm_leak_held *held, long reserve, struct cm_line *line)
{
    const struct cm_leak_site *site =
        held->site != 0 ? cm_leak_site_at(leak, held->site) : NULL;
    const struct cm_leak_frame *frame;
    struct cm_buffer text = {0};

    if (site == NULL || site->user_frame < 0) {
        cm_line_add(line, CM_PAINT_NONE, "at a place that is not known");
        return;
    }
    frame = &site->frames[site->user_frame];
    cm_line_add(line, CM_PAINT_PLACE,
                cm_filenames_short(filenames, frame->filename));
    cm_line_addf(line, CM_PAINT_PLACE, ":%" PRIu32, frame->line);
    cm_line_add(line, CM_PAINT_NONE, held->awaited ? " (backward) " : " ");
    cm_buffer_addf(&text, "%s: %s", cm_leak_text(leak, frame->name),
                   cm_leak_text(leak, frame->source));
    cm_line_add_cut(line, cm_buffer_text(&text), reserve);
    if (line->out->status == CM_OK) {
        line->out->status = cm_buffer_status(&text);
    }
    cm_buffer_release(&text);
}

/* The place that holds most, and how many more there are. */
static void
add_most(const struct cm_leak *leak, const struct cm_filenames *filenames,
         const struct cm_leak_held *most, size_t places, struct cm_line *line)
{
    char size[CM_SIZE_TEXT_BYTES], more[32];
    int columns = snprintf(more, sizeof(more), "; +%zu more", places - 1);

    if (places > 1) {
        cm_size_format(most->bytes, size);
        cm_line_addf(line, CM_PAINT_NONE, "%s ", size);
    }
    add_place(leak, filenames, most, places > 1 ? columns : 0, line);
    if (places > 1) {
        cm_line_add(line, CM_PAINT_NONE, more);
    }
    cm_line_end(line);
}

static void
add_held(const struct cm_memory_held *held,
         const struct cm_filenames *filenames, struct cm_text_id device,
         struct cm_line *line)
{
    struct cm_memory_rows all = cm_memory_held_of(held, device, false);
    char size[CM_SIZE_TEXT_BYTES];

    if (all.bytes > 0) {
        add_label(line, "held");
        cm_size_format(all.bytes, size);
        cm_line_addf(line, CM_PAINT_NONE, "%s by C++ alone: ", size);
        add_most(held->leak, filenames, all.rows[0], all.count, line);
    }
}

/* " train.py:57 main" */
static void
add_short_place(const struct cm_leak *leak,
                const struct cm_filenames *filenames,
                const struct cm_leak_held *held, struct cm_buffer *out)
{
    const struct cm_leak_site *site =
        held->site != 0 ? cm_leak_site_at(leak, held->site) : NULL;

    if (site != NULL && site->user_frame >= 0) {
        const struct cm_leak_frame *frame = &site->frames[site->user_frame];

        cm_buffer_addf(out, " %s:%" PRIu32 " %s",
                       cm_filenames_short(filenames, frame->filename),
                       frame->line, cm_leak_text(leak, frame->name));
    }
}

/* With the place of what it holds most of, and all that it holds. */
static void
add_library(const struct cm_leak *leak, const struct cm_filenames *filenames,
            const struct cm_memory_library *library, struct cm_buffer *out)
{
    const char *name = cm_leak_text(leak, library->most->library);

    cm_buffer_add_text(out, out->length > 0 ? ", " : "");
    add_name(out, name[0] != '\0' ? name : "not known");
    cm_memory_add_size(out, " ", library->bytes, "");
    add_short_place(leak, filenames, library->most, out);
}

/* What a hook of the driver saw, by library. */
static void
add_libraries(const struct cm_memory_held *held,
              const struct cm_filenames *filenames, struct cm_text_id device,
              struct cm_line *line)
{
    struct cm_buffer text = {0};
    size_t count;
    const struct cm_memory_library *libraries =
        cm_memory_held_libraries(held, device, &count);

    for (size_t i = 0; i < count && text.length < CM_LINE_WIDTH; i++) {
        add_library(held->leak, filenames, &libraries[i], &text);
    }
    if (text.length > 0) {
        add_label(line, "libs");
        cm_line_add_cut(line, cm_buffer_text(&text), 0);
        cm_line_end(line);
    }
    cm_buffer_release(&text);
}

/* ===== the whole ======================================================== */

static void
add_device(const struct cm_memory_held *held,
           const struct cm_filenames *filenames,
           const struct cm_leak_device *device, struct cm_line *line)
{
    size_t start = line->out->length, most = MAX_LINES + more_lines(device);

    add_head(held->leak, device, line);
    add_why(held->leak, device, line);
    if (lines_since(line, start) < most) {
        add_held(held, filenames, device->name, line);
    }
    if (lines_since(line, start) < most) {
        add_libraries(held, filenames, device->name, line);
    }
}

static void
note(enum cm_status status, struct cm_line *line)
{
    if (line->out->status == CM_OK) {
        line->out->status = status;
    }
}

void
cm_memory_table_add(const struct cm_leak *leak,
                    const struct cm_filenames *filenames, bool only_failed,
                    struct cm_line *line)
{
    struct cm_memory_held held = {0};
    enum cm_status status = cm_memory_held_init(&held, leak);

    for (size_t i = 0; status == CM_OK && i < leak->device_count; i++) {
        const struct cm_leak_device *device = &leak->devices[i];

        if (cm_memory_is_known(device)
            && (!only_failed || device->asked_bytes != 0)) {
            add_device(&held, filenames, device, line);
        }
    }
    note(status, line);
    cm_memory_held_release(&held);
}

void
cm_memory_table_add_reason(const struct cm_leak *leak, struct cm_line *line)
{
    const struct cm_leak_device *device = cm_exhausted_device(leak);

    if (device != NULL && cm_memory_is_known(device)) {
        add_head(leak, device, line);
        add_why(leak, device, line);
    }
}

void
cm_memory_table_add_alone(const struct cm_leak *leak,
                          const struct cm_filenames *filenames,
                          struct cm_line *line)
{
    struct cm_memory_held held = {0};
    enum cm_status status = cm_memory_held_init(&held, leak);

    for (size_t i = 0; status == CM_OK && i < leak->held_count; i++) {
        if (cm_memory_held_is_alone(&held, i)) {
            struct cm_text_id device = leak->held[i].device;

            cm_line_add(line, CM_PAINT_LABEL, "memory ");
            cm_line_add_cut(line, cm_leak_text(leak, device), 0);
            cm_line_end(line);
            add_held(&held, filenames, device, line);
            add_libraries(&held, filenames, device, line);
        }
    }
    note(status, line);
    cm_memory_held_release(&held);
}
