/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SUMMARY_H
#define CM_SUMMARY_H

/* The ten lines that a person reads first, on a terminal or in a log: a
 * verdict for each device and a block for each finding.
 *
 * Nothing of the document reaches the terminal unfiltered (see utf8.h).  The
 * same document and options give the same bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "leak.h"
#include "walk.h"

#define CM_DEFAULT_MIN_BYTES ((uint64_t)1 << 20)
/* Packages that the last line names; more are "...". */
#define CM_SUMMARY_PACKAGES 3

/* Zero is valid: everything but library findings, without colour. */
struct cm_summary_options {
    bool colour;
    bool all;           /* library and small findings are shown as well, and
                         * growth that is settled or ok */
    bool all_frames;    /* the whole allocation stack */
    uint64_t min_bytes; /* findings under this at once are only counted */
    size_t top;         /* findings shown; 0: all of them */
    size_t suppressed;  /* findings that were taken out before */
    size_t known;       /* dead cycles among them */
    /* Only these fingerprints are shown, NULL: any.  Others are not counted
     * as hidden: for warnings that bring what is new. */
    const uint64_t *only;
    size_t only_count;
    bool exhausted;          /* nothing is shown but that memory ran out */
    bool reason;             /* and then why it did */
    const char *report_name; /* file to name in the last line, NULL: the base
                              * name of leak->source_path, if any */
};

/* Before: cm_leak_sort(leak).  Appends to `out`; on failure what was appended
 * is not whole. */
enum cm_status cm_summary_write(const struct cm_leak *leak,
                                const struct cm_summary_options *options,
                                struct cm_buffer *out) CM_CHECKED;

/* How the findings of a document divide under these options. */
struct cm_summary_counts {
    size_t shown, library, small, more;
    size_t heavy;        /* of library: cycles of min_bytes at least */
    size_t dead;         /* cycles, in whichever of these */
    size_t cycles;       /* shown or more */
    size_t faults;       /* leaks and what lingers, shown or more */
    uint64_t more_bytes; /* of more: each at its most */
    /* Those of library, each once; more than there is room for are one. */
    struct cm_text_id packages[CM_SUMMARY_PACKAGES];
    size_t package_count;
};
/* `shown`, when not NULL, has room for leak->cycle_count and
 * leak->growth_count findings.  Before: cm_leak_sort(leak). */
void cm_summary_count(const struct cm_leak *leak,
                      const struct cm_summary_options *options,
                      struct cm_summary_counts *result,
                      struct cm_leak_finding *shown);

#endif
