/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SUMMARY_LINES_H
#define CM_SUMMARY_LINES_H

/* What the blocks of the summary share while it is written: those of cycles in
 * summary.c, those of growth in growth_text.c.  Not for others. */

#include "filenames.h"
#include "leak.h"
#include "line.h"
#include "path.h"
#include "summary.h"

/* Where the text behind a label begins. */
#define CM_SUMMARY_INDENT 9

struct cm_summary_writer {
    const struct cm_leak *leak;
    const struct cm_summary_options *options;
    struct cm_filenames filenames;
    struct cm_paths paths;
    struct cm_line line;
};

const char *cm_summary_text(const struct cm_summary_writer *self,
                            struct cm_text_id id);
/* "cut", "fix", ... at the start of a line. */
void cm_summary_add_label(struct cm_summary_writer *self, const char *label);
/* FILE:LINE */
void cm_summary_add_place(struct cm_summary_writer *self,
                          const struct cm_leak_frame *frame,
                          enum cm_paint paint);
/* FILE:LINE FUNCTION: SOURCE, and the end of the line. */
void cm_summary_add_frame(struct cm_summary_writer *self,
                          const struct cm_leak_frame *frame);
/* The frame of the user's, or why there is none; NULL: no stack. */
void cm_summary_add_site(struct cm_summary_writer *self,
                         const struct cm_leak_site *site);
/* All frames, where they were asked for. */
void cm_summary_add_frames(struct cm_summary_writer *self,
                           const struct cm_leak_site *site);
/* "[3f9a2c]" at the right, and the end of the line. */
void cm_summary_end_title(struct cm_summary_writer *self,
                          uint64_t fingerprint);
/* Takes over what went wrong with a part made apart. */
void cm_summary_add_failure(struct cm_summary_writer *self,
                            const struct cm_buffer *text);

/* Behind the findings: what collections of ours saved, what was lost, what is
 * not told and where it is.  Each is nothing where there is none of it. */
void cm_summary_add_saved(struct cm_summary_writer *self);
void cm_summary_add_lost(struct cm_summary_writer *self);
void cm_summary_add_footer(struct cm_summary_writer *self,
                           const struct cm_summary_counts *counts);

/* The other cycles that hold some of the same memory, cut elsewhere. */
void cm_summary_add_shared(struct cm_summary_writer *self,
                           const struct cm_leak_cycle *cycle);

/* A block of at most eight lines, but for long advice; `growth` is the first
 * line of its fault. */
void cm_growth_add_text(struct cm_summary_writer *self,
                        const struct cm_leak_growth *growth, size_t number);

#endif
