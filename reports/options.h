/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_OPTIONS_H
#define CM_OPTIONS_H

/* The command line of cyclereport. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/status.h"

enum cm_format {
    CM_FORMAT_NONE = 0, /* the summary, and the page beside the input */
    CM_FORMAT_HTML,
    CM_FORMAT_SVG,
    CM_FORMAT_DOT,
    CM_FORMAT_JSON,
    CM_FORMAT_TEXT,
};

struct cm_options {
    const char *input;        /* borrowed from argv, as all texts here */
    const char *output;       /* NULL: not given */
    const char *suppressions; /* NULL: none */
    const char *baseline;     /* NULL: none */
    enum cm_format format;
    size_t top; /* 0: all */
    uint64_t min_bytes;
    bool all, all_frames, force;
    bool fail_on_cycle, fail_on_growth;
    bool version, help;
};

#define CM_OPTIONS_ERROR_BYTES 160

extern const char cm_options_help[];

/* CM_BAD_INPUT: `error` says what is wrong, in half a sentence. */
enum cm_status cm_options_parse(int argc, char **argv,
                                struct cm_options *result,
                                char error[CM_OPTIONS_ERROR_BYTES]) CM_CHECKED;

#endif
