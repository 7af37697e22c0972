/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MEND_H
#define CM_MEND_H

/* A line of Python and the rule that found it, turned into the line that a
 * person would write instead.  Only forms that are understood whole are
 * changed (one plain assignment on one line); for all others there is the
 * sentence of advice.  Not a parser: what it does not know it leaves. */

#include <stdbool.h>

#include "buffer.h"

enum cm_mend {
    CM_MEND_NONE = 0, /* nothing was added */
    CM_MEND_REPLACE,  /* the line goes, what was added comes */
    CM_MEND_AFTER,    /* the line stays, what was added comes later */
};

struct cm_mend_case {
    const char *rule, *advice; /* a finding's */
    const char *edge;   /* the annotation of the reference to cut: "cell self",
                         * "local err", ".parent" */
    const char *before; /* lines above the source, joined by line ends */
    const char *source;
};

/* Adds lines, each ended by a line break: what the advice says, for this line;
 * nothing where it says something else. */
enum cm_mend cm_mend_line(struct cm_buffer *out,
                          const struct cm_mend_case *fault);

#endif
