/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HTML_H
#define CM_HTML_H

/* The page: a whole HTML document that reads without JavaScript, asks the
 * network for nothing and keeps nothing.  Not for drawing: pictures are handed
 * in as SVG text (dot.h makes them), so that this file links everywhere.
 *
 * The same document and options give the same bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/status.h"

struct cm_buffer;
struct cm_leak;

/* A page is never longer than this; the rest is named and stays in the
 * report. */
#define CM_HTML_MAX_BYTES ((size_t)5 * 1024 * 1024)
/* Findings that are written out; more are counted. */
#define CM_HTML_MAX_FINDINGS 60

/* Zero is valid: no drawings, everything at its default. */
struct cm_html_options {
    /* SVG text for each cycle by its index, entries may be NULL (then the
     * page shows a table).  NULL: drawn without Graphviz, and it says so. */
    const char *const *drawings;
    bool all;           /* library and small findings are shown as well */
    bool all_frames;    /* stacks open, library frames shown */
    uint64_t min_bytes; /* findings under this at once are folded away */
    size_t top;         /* findings written out; 0: CM_HTML_MAX_FINDINGS */
    size_t suppressed;  /* findings that a suppression or a baseline took out
                         * of the document before */
    size_t known;       /* dead cycles among them */
    const char *report_name; /* file to name as the source, NULL: the base
                              * name of leak->source_path, if any */
};

/* Before: cm_leak_sort(leak).  Appends to `out`; on failure what was appended
 * is not a page. */
enum cm_status cm_html_write(const struct cm_leak *leak,
                             const struct cm_html_options *options,
                             struct cm_buffer *out) CM_CHECKED;

/* The cycles that a page with these options writes out, as indices, in the
 * order of the page, at most `capacity`: what to hand to cm_dot_svgs().
 * Returns how many; growth is not among them. */
size_t cm_html_pick(const struct cm_leak *leak,
                    const struct cm_html_options *options, size_t *cycles,
                    size_t capacity);

#endif
