/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SHEET_H
#define CM_SHEET_H

/* What the parts of a page share while it is written: html.c the frame,
 * page_findings.c which findings, list.c the list, pane.c one cycle and
 * growth_pane.c one growth, with excerpt.c and held.c; timeline.c what stands
 * above, growth_page.c, memory_page.c and foot.c
 * what stands below.  Not for others. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../detector/size.h"
#include "buffer.h"
#include "escape.h"
#include "filenames.h"
#include "html.h"
#include "leak.h"
#include "path.h"

/* Where a finding stands in the list. */
enum cm_sheet_group {
    CM_SHEET_SHOWN = 0,
    CM_SHEET_LIBRARY, /* its cut lies in an installed package */
    CM_SHEET_SMALL,   /* under options->min_bytes at once */
    CM_SHEET_GROUPS,
};

struct cm_sheet_finding {
    const struct cm_leak_growth *growth; /* NULL: it is a cycle */
    size_t cycle;
    size_t number; /* as the text counts; ids of the page are made of it */
    enum cm_sheet_group group;
    const char *text; /* borrowed from the summary, not terminated */
    size_t text_bytes;
};

struct cm_sheet {
    const struct cm_leak *leak;
    const struct cm_html_options *options;
    struct cm_buffer *out; /* borrowed */
    size_t start;          /* of the page in it */
    struct cm_filenames filenames;
    struct cm_paths paths;
    struct cm_buffer summary;          /* all findings as text */
    struct cm_sheet_finding *findings; /* owned; in order of the document */
    size_t count;
    size_t totals[CM_SHEET_GROUPS];  /* findings, written out or not */
    uint64_t bytes[CM_SHEET_GROUPS]; /* sum of their peaks */
};

/* Fills findings, count, totals and bytes.  Before: findings has room for all
 * that the document has. */
void cm_sheet_pick(struct cm_sheet *self);
/* Fills the summary, and each finding's text. */
enum cm_status cm_sheet_summarize(struct cm_sheet *self) CM_CHECKED;
/* The findings by name, with the search. */
void cm_list_add(struct cm_sheet *self);
/* One finding, whole. */
enum cm_status cm_pane_add(struct cm_sheet *self,
                           const struct cm_sheet_finding *finding) CM_CHECKED;
enum cm_status cm_growth_pane_add(struct cm_sheet *self,
                                  const struct cm_sheet_finding *finding)
    CM_CHECKED;
/* Of a finding of either kind: all of it as text. */
void cm_pane_add_text(struct cm_sheet *self,
                      const struct cm_sheet_finding *finding);
/* Of a cycle: where to cut and how to mend it. */
void cm_excerpt_add(struct cm_sheet *self, const struct cm_leak_cycle *cycle);
/* A sentence in which `x` is code. */
void cm_excerpt_say(struct cm_sheet *self, const char *text);
/* A line with what is around it; nothing where it is not known. */
void cm_excerpt_add_line(struct cm_sheet *self,
                         const struct cm_leak_frame *place);
/* A stack, 0: none. */
void cm_held_add_site(struct cm_sheet *self, uint32_t site, bool awaited);
/* Of a cycle: where its payload was allocated, and what that is. */
void cm_held_add_stack(struct cm_sheet *self,
                       const struct cm_leak_cycle *cycle,
                       const struct cm_path *path);
void cm_held_add(struct cm_sheet *self, const struct cm_leak_cycle *cycle);
/* The memory of each device over the iterations; nothing without any. */
enum cm_status cm_timeline_add_section(struct cm_sheet *self) CM_CHECKED;
/* One object of a holder's path; one part of it (growth.h). */
void cm_growth_put_step(struct cm_sheet *self,
                        const struct cm_leak_growth *growth, size_t step);
void cm_growth_put_part(struct cm_sheet *self,
                        const struct cm_leak_growth *growth, size_t part);
/* The line that allocates it, with its function. */
void cm_growth_put_line(struct cm_sheet *self,
                        const struct cm_leak_growth *growth);
/* False, and nothing, where nobody knows what to do. */
bool cm_growth_put_advice(struct cm_sheet *self, const char *before,
                          const struct cm_leak_growth *growth);
/* All lines that allocate what stays. */
void cm_growth_add_table(struct cm_sheet *self);
/* Where the memory of each device is, as far as the document says. */
void cm_memory_add(struct cm_sheet *self);
/* Of a device: why an allocation failed and the way out, if one did. */
void cm_memory_add_reason(struct cm_sheet *self,
                          const struct cm_leak_device *device);
/* Collections, losses, versions. */
void cm_foot_add(struct cm_sheet *self);

/* ===== small writers ==================================================== */

/* Markup of ours. */
static inline void
cm_put(struct cm_sheet *self, const char *markup)
{
    cm_buffer_add_text(self->out, markup);
}

/* Text of the document, escaped. */
static inline void
cm_say(struct cm_sheet *self, const char *text)
{
    cm_escape_html(self->out, text);
}

static inline const char *
cm_sheet_text(const struct cm_sheet *self, struct cm_text_id id)
{
    return cm_leak_text(self->leak, id);
}

static inline void
cm_put_size(struct cm_sheet *self, uint64_t bytes)
{
    char text[CM_SIZE_TEXT_BYTES];

    cm_size_format(bytes, text);
    cm_buffer_add_text(self->out, text);
}

static inline const char *
cm_unindented(const char *source)
{
    return source + strspn(source, " \t");
}

/* Takes over what went wrong with a part made apart. */
static inline void
cm_sheet_take_failure(struct cm_sheet *self, const struct cm_buffer *part)
{
    if (self->out->status == CM_OK) {
        self->out->status = part->status;
    }
}

/* "2 in libraries, 96 MiB" */
void cm_put_group(struct cm_sheet *self, enum cm_sheet_group group);
/* "3 more devices in the report", where not each has a line; nothing at 0. */
void cm_put_more_devices(struct cm_sheet *self, size_t left_out);
/* FILE:LINE, short; the whole name is in the tool tip. */
void cm_put_place(struct cm_sheet *self, const struct cm_leak_frame *frame);

#endif
