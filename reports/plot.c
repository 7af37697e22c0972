/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The outer drawing has the size of its place, so that text is never
 * stretched; the layers are in an inner one that is.  Each layer is drawn down
 * to the ground, the highest first, so that one edge for each is enough.
 * Points are thinned to the highest of their neighbours.  Linear. */
#include "plot.h"

#include <inttypes.h>
#include <math.h> // floor(), log10()
#include <stdbool.h>
#include <stdio.h>

#include "../detector/size.h"

/* Of the inner drawing, in its own units. */
#define WIDTH 2000
#define HEIGHT 1000
/* Room above the layers, for the highest label. */
#define TOP 8
#define SPARK_POINTS 60
#define MAX_MARKS 60

struct view {
    const struct cm_plot *plot;
    struct cm_buffer *out;
    double low, high; /* of x */
    uint64_t top;     /* bytes at the upper edge */
};

/* ===== scales =========================================================== */

static uint64_t
sum_of(const struct cm_plot *plot, size_t at, size_t layers)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < layers; i++) {
        sum += plot->bytes[at * plot->layers + i];
    }
    return sum;
}

static struct view
view_of(const struct cm_plot *plot, struct cm_buffer *out)
{
    struct view view = {plot, out, plot->x[0], plot->x[plot->count - 1], 1};

    for (size_t i = 0; i < plot->count; i++) {
        uint64_t sum = sum_of(plot, i, plot->layers);

        view.top = sum > view.top ? sum : view.top;
    }
    for (size_t i = 0; i < plot->line_count; i++) {
        const struct cm_plot_line *line = &plot->lines[i];

        for (size_t j = 0; j < line->count; j++) {
            uint64_t bytes = (uint64_t)line->series[j][2];

            view.top = bytes > view.top ? bytes : view.top;
        }
    }
    if (!(view.high > view.low)) {
        view.high = view.low + 1;
    }
    return view;
}

static double
share_of(const struct view *view, double x)
{
    double share = (x - view->low) / (view->high - view->low);

    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static long
across(const struct view *view, double x)
{
    return (long)(share_of(view, x) * WIDTH + 0.5);
}

static long
upwards(const struct view *view, uint64_t bytes)
{
    return HEIGHT - (long)((double)bytes / (double)view->top * HEIGHT + 0.5);
}

/* 1, 2 or 5 times a power of ten, so that a range has at most `most`. */
static double
decimal_step(double range, double most)
{
    double power = pow(10, floor(log10(range / most)));
    double parts = range / most / power;

    return power * (parts <= 1 ? 1 : parts <= 2 ? 2 : parts <= 5 ? 5 : 10);
}

/* The same in KiB, MiB, ...: at most five of them. */
static uint64_t
byte_step(uint64_t top)
{
    uint64_t unit = 1, step;

    while (top / unit >= 1024) {
        unit *= 1024;
    }
    step =
        (uint64_t)(decimal_step((double)top / (double)unit, 4) * (double)unit
                   + 0.5);
    return step > 0 ? step : 1;
}

/* ===== axes ============================================================= */

static void
add_levels(const struct view *view)
{
    uint64_t step = byte_step(view->top);

    for (uint64_t bytes = 0; bytes <= view->top && bytes <= 20 * step;
         bytes += step) {
        char text[CM_SIZE_TEXT_BYTES];
        double part = (double)bytes / (double)view->top;
        int y =
            TOP + view->plot->height - (int)(part * view->plot->height + 0.5);

        cm_size_format_short(bytes, text);
        cm_buffer_addf(view->out,
                       "<line x1=\"0\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/>"
                       "<text class=\"y\" x=\"-8\" y=\"%d\">%s</text>",
                       y, y, y + 4, bytes > 0 ? text : "0");
    }
}

/* A position of the outer drawing, as a percentage with two digits. */
static void
add_percent(const struct view *view, double x)
{
    long parts = (long)(share_of(view, x) * 10000 + 0.5);

    cm_buffer_addf(view->out, "%ld.%02ld%%", parts / 100, parts % 100);
}

/* The multiples of `step` in sight. */
static int
first_mark(const struct view *view, double step, double *first)
{
    double count;

    *first = ceil(view->low / step);
    count = floor(view->high / step) - *first + 1;
    return count < MAX_MARKS ? (int)count : MAX_MARKS;
}

static void
add_ticks(const struct view *view, double step, int length)
{
    double first;
    int count = first_mark(view, step, &first);

    for (int i = 0; i < count; i++) {
        cm_buffer_addf(view->out, "M%ld 0v%d",
                       across(view, (first + i) * step), length);
    }
}

static void
add_numbers(const struct view *view, double step)
{
    double first;
    int count = first_mark(view, step, &first);

    for (int i = 0; i < count; i++) {
        cm_buffer_add_text(view->out, "<text class=\"x\" x=\"");
        add_percent(view, (first + i) * step);
        cm_buffer_addf(view->out, "\" y=\"%d\">%.0f</text>",
                       TOP + view->plot->height + 19, (first + i) * step);
    }
}

/* The iterations: five small marks from one number to the next. */
static void
add_marks(const struct view *view)
{
    double most = view->plot->height < 120 ? 5 : 9;
    double step = decimal_step(view->high - view->low, most);

    step = step < 1 ? 1 : step;
    cm_buffer_addf(view->out,
                   "<svg class=\"ticks\" y=\"%d\" width=\"100%%\" "
                   "height=\"6\" viewBox=\"0 0 %d 6\" "
                   "preserveAspectRatio=\"none\"><path d=\"",
                   TOP + view->plot->height, WIDTH);
    add_ticks(view, step / 5 < 1 ? 1 : step / 5, 3);
    add_ticks(view, step, 6);
    cm_buffer_add_text(view->out, "\"/></svg><g class=\"marks\">");
    add_numbers(view, step);
    cm_buffer_add_text(view->out, "</g>");
}

static void
add_since(const struct view *view)
{
    if (view->plot->since < view->low || view->plot->since > view->high) {
        return;
    }
    cm_buffer_add_text(view->out, "<line class=\"since\" x1=\"");
    add_percent(view, view->plot->since);
    cm_buffer_add_text(view->out, "\" x2=\"");
    add_percent(view, view->plot->since);
    cm_buffer_addf(view->out, "\" y1=\"%d\" y2=\"%d\" data-x=\"%.0f\"/>", TOP,
                   TOP + view->plot->height, view->plot->since);
}

/* ===== layers =========================================================== */

/* The point of a bucket with most bytes. */
static size_t
highest(const struct cm_plot *plot, size_t from, size_t to)
{
    size_t result = from;

    for (size_t i = from + 1; i < to; i++) {
        if (sum_of(plot, i, plot->layers)
            > sum_of(plot, result, plot->layers)) {
            result = i;
        }
    }
    return result;
}

static size_t
drawn_points(const struct cm_plot *plot)
{
    return plot->most > 0 && plot->most < plot->count ? plot->most
                                                      : plot->count;
}

/* The upper edge of the first `layers`, down to the ground. */
static void
add_layer(const struct view *view, size_t layers)
{
    const struct cm_plot *plot = view->plot;
    size_t points = drawn_points(plot);

    cm_buffer_addf(view->out, "<path class=\"%s\" d=\"M0 %d",
                   plot->classes[layers - 1], HEIGHT);
    for (size_t i = 0; i < points; i++) {
        size_t at = highest(plot, i * plot->count / points,
                            (i + 1) * plot->count / points);

        cm_buffer_addf(view->out, "%s%ld %ld", i > 0 ? " " : "L",
                       across(view, plot->x[at]),
                       upwards(view, sum_of(plot, at, layers)));
    }
    cm_buffer_addf(view->out, " %ld %dZ\"/>",
                   across(view, plot->x[plot->count - 1]), HEIGHT);
}

static bool
is_empty(const struct cm_plot *plot, size_t layer)
{
    for (size_t i = 0; i < plot->count; i++) {
        if (plot->bytes[i * plot->layers + layer] > 0) {
            return false;
        }
    }
    return true;
}

/* Numbers as differences, which are short: "x milliseconds bytes ...;". */
static uint64_t
unit_of(uint64_t top)
{
    uint64_t unit = 1;

    while (top / unit >= (uint64_t)1 << 24) {
        unit *= 2;
    }
    return unit;
}

static void
add_line(const struct view *view, const struct cm_plot_line *line)
{
    uint64_t unit = unit_of(view->top);
    int64_t x = 0, y = 0;

    cm_buffer_add_text(view->out, "<polyline class=\"slope\" points=\"");
    for (size_t i = 0; i < line->count; i++) {
        cm_buffer_addf(view->out, "%s%ld %ld", i > 0 ? " " : "",
                       across(view, (double)line->series[i][0]),
                       upwards(view, (uint64_t)line->series[i][2]));
    }
    cm_buffer_add_text(view->out, "\" data-line=\"");
    for (size_t i = 0; i < line->count; i++) {
        int64_t bytes = (int64_t)((uint64_t)line->series[i][2] / unit);

        cm_buffer_addf(view->out, "%s%" PRId64 " %" PRId64, i > 0 ? ";" : "",
                       line->series[i][0] - x, bytes - y);
        x = line->series[i][0];
        y = bytes;
    }
    cm_buffer_add_text(view->out, "\"/>");
}

/* Where the text of a line goes: over its end, below where there is no room,
 * and below those that stand there already. */
static int
height_of(const struct view *view, const struct cm_plot_line *line,
          const int *taken, size_t count)
{
    double part = line->count > 0 ? (double)line->series[line->count - 1][2]
                                        / (double)view->top
                                  : 0;
    int y = TOP + view->plot->height - (int)(part * view->plot->height) - 8;

    y = y < TOP + 10 ? TOP + 44 : y;
    for (size_t i = 0; i < count; i++) {
        if (y > taken[i] - 14 && y < taken[i] + 14) {
            y = taken[i] + 14;
        }
    }
    return y;
}

/* "#1 +4.0 MiB / iteration" */
static void
add_slope(const struct view *view, const struct cm_plot_line *line, int y)
{
    char size[CM_SIZE_TEXT_BYTES];

    cm_size_format((uint64_t)(line->slope > 0 ? line->slope + 0.5 : 0), size);
    cm_buffer_addf(view->out,
                   "<text class=\"slope\" x=\"100%%\" dx=\"-6\" "
                   "y=\"%d\">#%zu +%s / %s</text>",
                   y, line->number, size, line->unit);
}

static void
add_slopes(const struct view *view)
{
    int taken[CM_PLOT_MAX_LINES] = {0};

    for (size_t i = 0; i < view->plot->line_count; i++) {
        taken[i] = height_of(view, &view->plot->lines[i], taken, i);
        add_slope(view, &view->plot->lines[i], taken[i]);
    }
}

/* ===== numbers ========================================================== */

static void
add_rows(const struct view *view)
{
    const struct cm_plot *plot = view->plot;
    uint64_t unit = unit_of(view->top);
    int64_t x = 0, milli = 0;

    cm_buffer_addf(view->out, " data-unit=\"%" PRIu64 "\" data-rows=\"", unit);
    for (size_t i = 0; i < plot->count; i++) {
        int64_t now = plot->seconds != NULL && plot->seconds[i] < 1e12
                          ? (int64_t)(plot->seconds[i] * 1000 + 0.5)
                          : 0;
        int64_t here = (int64_t)plot->x[i];

        cm_buffer_addf(view->out, "%s%" PRId64 " %" PRId64, i > 0 ? ";" : "",
                       here - x, now - milli);
        x = here;
        milli = now;
        for (size_t j = 0; j < plot->layers; j++) {
            const uint64_t *bytes = &plot->bytes[i * plot->layers + j];
            uint64_t before = i > 0 ? bytes[-(ptrdiff_t)plot->layers] : 0;

            cm_buffer_addf(view->out, " %" PRId64,
                           (int64_t)(*bytes / unit)
                               - (int64_t)(before / unit));
        }
    }
    cm_buffer_add_char(view->out, '"');
}

void
cm_plot_add(const struct cm_plot *self, struct cm_buffer *out)
{
    struct view view = view_of(self, out);

    cm_buffer_addf(out,
                   "<div class=\"plot\" data-height=\"%d\" data-by=\"%s\"",
                   self->height, self->unit);
    add_rows(&view);
    cm_buffer_addf(out,
                   "><svg class=\"axes\" width=\"100%%\" height=\"%d\" "
                   "aria-hidden=\"true\"><g class=\"levels\">",
                   self->height + TOP + 26);
    add_levels(&view);
    cm_buffer_addf(out,
                   "</g><svg class=\"layers\" y=\"%d\" width=\"100%%\" "
                   "height=\"%d\" viewBox=\"0 0 %d %d\" "
                   "preserveAspectRatio=\"none\">",
                   TOP, self->height, WIDTH, HEIGHT);
    for (size_t layer = self->layers; layer > 0; layer--) {
        if (!is_empty(self, layer - 1)) {
            add_layer(&view, layer);
        }
    }
    for (size_t i = 0; i < self->line_count; i++) {
        add_line(&view, &self->lines[i]);
    }
    cm_buffer_add_text(out, "</svg>");
    add_marks(&view);
    add_since(&view);
    add_slopes(&view);
    cm_buffer_add_text(out, "</svg></div>\n");
}

void
cm_plot_add_spark(const int64_t (*series)[3], size_t count,
                  struct cm_buffer *out)
{
    size_t points = count < SPARK_POINTS ? count : SPARK_POINTS;
    double low = count > 0 ? (double)series[0][0] : 0;
    double range = count > 0 ? (double)series[count - 1][0] - low : 0;
    int64_t top = 1;

    if (count < 2 || !(range > 0)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        top = series[i][2] > top ? series[i][2] : top;
    }
    cm_buffer_add_text(out, "<svg class=\"spark\" viewBox=\"0 0 100 24\" "
                            "preserveAspectRatio=\"none\" "
                            "aria-hidden=\"true\"><polyline points=\"");
    for (size_t i = 0; i < points; i++) {
        const int64_t *row = series[i * (count - 1) / (points - 1)];

        cm_buffer_addf(out, "%s%d %d", i > 0 ? " " : "",
                       (int)(((double)row[0] - low) / range * 100),
                       23 - (int)((double)row[2] / (double)top * 22));
    }
    cm_buffer_add_text(out, "\"/></svg>");
}
