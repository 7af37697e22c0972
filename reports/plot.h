/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PLOT_H
#define CM_PLOT_H

/* Bytes over iterations as SVG that is complete by itself, with the numbers
 * beside it from which chart.js draws again when a person zooms.  Layers are
 * stacked, the first at the bottom.  Nothing but numbers and class names of
 * ours gets into it. */

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

#define CM_PLOT_MAX_LINES 4

/* A line over the layers, with its slope at its end. */
struct cm_plot_line {
    size_t number;              /* of the finding */
    double slope;               /* bytes for each */
    const char *unit;           /* a constant */
    const int64_t (*series)[3]; /* borrowed: x, -, bytes; x never falls */
    size_t count;
};

struct cm_plot {
    size_t count, layers;
    const double *x;            /* borrowed, as the next; never falling */
    const double *seconds;      /* NULL: not known */
    const uint64_t *bytes;      /* `layers` for each x */
    const char *const *classes; /* of each layer: constants */
    const char *unit;           /* of x: a constant */
    size_t most;                /* points that are drawn; 0: all */
    int height;                 /* of the drawing, in pixels */
    double since;               /* x to mark; below 0: none */
    struct cm_plot_line lines[CM_PLOT_MAX_LINES];
    size_t line_count;
};

/* The drawing and its numbers as one element.  Before: count > 0. */
void cm_plot_add(const struct cm_plot *self, struct cm_buffer *out);
/* A line alone, small, for the cell of a table. */
void cm_plot_add_spark(const int64_t (*series)[3], size_t count,
                       struct cm_buffer *out);

#endif
