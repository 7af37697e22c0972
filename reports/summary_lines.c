/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Lines that blocks of both kinds have: labels, places, frames, stacks. */
#include "summary_lines.h"

#include <inttypes.h>

#define FINGERPRINT_COLUMN (CM_LINE_WIDTH - 8)

const char *
cm_summary_text(const struct cm_summary_writer *self, struct cm_text_id id)
{
    return cm_leak_text(self->leak, id);
}

void
cm_summary_add_label(struct cm_summary_writer *self, const char *label)
{
    cm_buffer_add_fill(self->line.out, ' ', 3);
    self->line.columns = 3;
    cm_line_add(&self->line, CM_PAINT_LABEL, label);
    cm_line_fill(&self->line, CM_SUMMARY_INDENT);
}

void
cm_summary_add_place(struct cm_summary_writer *self,
                     const struct cm_leak_frame *frame, enum cm_paint paint)
{
    cm_line_add(&self->line, paint,
                cm_filenames_short(&self->filenames, frame->filename));
    cm_line_addf(&self->line, paint, ":%" PRIu32, frame->line);
}

void
cm_summary_add_frame(struct cm_summary_writer *self,
                     const struct cm_leak_frame *frame)
{
    const char *name = cm_summary_text(self, frame->name);
    const char *source = cm_summary_text(self, frame->source);

    cm_summary_add_place(self, frame, CM_PAINT_PLACE);
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

void
cm_summary_add_site(struct cm_summary_writer *self,
                    const struct cm_leak_site *site)
{
    if (site != NULL && site->user_frame >= 0) {
        cm_summary_add_frame(self, &site->frames[site->user_frame]);
        return;
    }
    cm_line_add(&self->line, CM_PAINT_NONE, "not known: ");
    cm_line_add(&self->line, CM_PAINT_NONE,
                site == NULL || site->frame_count == 0
                    ? "no stack was recorded"
                    : "only library frames (--all-frames)");
    cm_line_end(&self->line);
}

void
cm_summary_add_frames(struct cm_summary_writer *self,
                      const struct cm_leak_site *site)
{
    for (size_t i = 0;
         site != NULL && self->options->all_frames && i < site->frame_count;
         i++) {
        cm_line_fill(&self->line, CM_SUMMARY_INDENT);
        cm_summary_add_frame(self, &site->frames[i]);
    }
}

void
cm_summary_end_title(struct cm_summary_writer *self, uint64_t fingerprint)
{
    cm_line_fill(&self->line, FINGERPRINT_COLUMN);
    cm_line_addf(&self->line, CM_PAINT_QUIET, "[%06" PRIx64 "]",
                 fingerprint >> 40);
    cm_line_end(&self->line);
}

void
cm_summary_add_failure(struct cm_summary_writer *self,
                       const struct cm_buffer *text)
{
    if (self->line.out->status == CM_OK) {
        self->line.out->status = text->status;
    }
}
