/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The memory of each device over the iterations, stacked by category, with the
 * leaks as lines over it: what one looks at first.  The device with most
 * memory is open, others are folded; drawings are bounded, the numbers of the
 * further devices too. */
#include <inttypes.h>
#include <string.h>

#include "../detector/alloc.h"
#include "fault.h"
#include "growth.h"
#include "plot.h"
#include "sheet.h"

/* Points that are drawn without the script, and with it. */
#define DRAWN_POINTS 360
#define MOST_POINTS 2000
#define FOLDED_POINTS 200
#define HEIGHT 150
#define MAX_DEVICES 8

/* A class name of ours for a category of the document. */
static const char *
class_of(const char *category)
{
    static const char *const classes[][2] = {
        {"parameter", "parameter"},
        {"gradient", "gradient"},
        {"optimizer state", "optimizer"},
        {"saved for backward", "activation"},
        {"input", "input"},
        {"outside the frameworks", "outside"},
    };

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strcmp(category, classes[i][0]) == 0) {
            return classes[i][1];
        }
    }
    return "other";
}

static uint64_t
sum_at(const struct cm_leak_timeline_device *device, size_t point)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < device->category_count; i++) {
        sum += device->bytes[point * device->category_count + i];
    }
    return sum;
}

static uint64_t
most_of(const struct cm_leak_timeline_device *device)
{
    uint64_t most = 0;

    for (size_t i = 0; i < device->point_count; i++) {
        uint64_t sum = sum_at(device, i);

        most = sum > most ? sum : most;
    }
    return most;
}

/* ===== lines ============================================================ */

static bool
is_drawn(struct cm_sheet *self, const struct cm_sheet_finding *finding,
         struct cm_text_id device)
{
    return finding->growth != NULL
           && cm_text_same(finding->growth->device, device)
           && finding->growth->series_count > 1
           && cm_growth_verdict(self->leak, finding->growth) == CM_GROWTH_LEAK;
}

/* The whole faults: their series are the caller's to free. */
static enum cm_status
pick_lines(struct cm_sheet *self, struct cm_text_id device,
           int64_t (*series[CM_PLOT_MAX_LINES])[CM_LEAK_SERIES_NUMBERS],
           struct cm_plot *plot)
{
    enum cm_status status = CM_OK;

    for (size_t i = 0; status == CM_OK && i < self->count
                       && plot->line_count < CM_PLOT_MAX_LINES;
         i++) {
        const struct cm_sheet_finding *finding = &self->findings[i];
        size_t at = plot->line_count;
        struct cm_growth_pace pace;
        struct cm_leak_growth sum;

        if (!is_drawn(self, finding, device)
            || finding->group != CM_SHEET_SHOWN) {
            continue;
        }
        sum = cm_fault_sum(finding->growth);
        pace = cm_growth_pace_of(self->leak, sum.since_iteration);
        status = cm_fault_series(finding->growth, &series[at]);
        if (status == CM_OK) {
            plot->lines[plot->line_count++] = (struct cm_plot_line){
                .number = finding->number,
                .slope = sum.bytes_per_iteration / pace.each,
                .unit = pace.unit,
                .series = (const int64_t(*)[3])series[at],
                .count = finding->growth->series_count};
        }
    }
    return status;
}

/* ===== one device ======================================================= */

/* What the colours mean, with the bytes at the end; the script puts those
 * under the pointer there. */
static void
add_key(struct cm_sheet *self, const struct cm_leak_timeline_device *device)
{
    size_t width = device->category_count;
    const uint64_t *last = device->bytes + (device->point_count - 1) * width;

    cm_put(self, "<ul class=\"legend layers\">");
    for (size_t i = width; i > 0; i--) {
        const char *category = cm_sheet_text(self, device->categories[i - 1]);

        cm_buffer_addf(self->out, "<li class=\"%s\"><b>", class_of(category));
        cm_put_size(self, last[i - 1]);
        cm_put(self, "</b> ");
        cm_escape_html_label(self->out, cm_growth_plural(category), 40);
        cm_put(self, "</li>");
    }
    cm_put(self, "</ul>\n");
}

static void
add_reading(struct cm_sheet *self,
            const struct cm_leak_timeline_device *device)
{
    size_t last = device->point_count - 1;

    cm_buffer_addf(self->out,
                   "<p class=\"reading\" role=\"status\">%s %" PRId64
                   ", %.0f s: ",
                   cm_growth_unit(self->leak), device->iterations[last],
                   device->seconds[last]);
    cm_put_size(self, sum_at(device, last));
    cm_put(self, "</p>\n");
}

static const char *
way_of_telling(struct cm_sheet *self)
{
    const char *by = cm_sheet_text(self, self->leak->timeline.by);

    if (strcmp(by, "step") == 0) {
        return "each iteration ends with <code>cumem.step()</code>";
    }
    if (strcmp(by, "time") == 0) {
        return "no iteration was seen: slices of time";
    }
    return by[0] != '\0' ? "each iteration ends with the optimizer\u2019s step"
                         : "";
}

static void
tell_way(struct cm_sheet *self)
{
    int64_t since = self->leak->timeline.slices_since;

    cm_put(self, " <small>");
    cm_put(self, way_of_telling(self));
    if (since != 0) {
        cm_buffer_addf(self->out,
                       "; nothing stepped any more: from %" PRId64
                       " on slices of time",
                       since);
    }
    cm_put(self, "</small></figcaption>\n");
}

/* At most `most` points, each the highest of its neighbours. */
struct thinned {
    double *x, *seconds;
    uint64_t *bytes;
    size_t count;
};

static void
thin(const struct cm_leak_timeline_device *device, struct thinned *to)
{
    size_t width = device->category_count, all = device->point_count;

    for (size_t i = 0; i < to->count; i++) {
        size_t at = i * all / to->count;

        for (size_t j = at + 1; j < (i + 1) * all / to->count; j++) {
            at = sum_at(device, j) > sum_at(device, at) ? j : at;
        }
        to->x[i] = (double)device->iterations[at];
        to->seconds[i] = device->seconds[at];
        memcpy(to->bytes + i * width, device->bytes + at * width,
               width * sizeof(*to->bytes));
    }
    /* The ends are where they are. */
    to->x[0] = (double)device->iterations[0];
    to->x[to->count - 1] = (double)device->iterations[all - 1];
}

static enum cm_status
plot_points(struct cm_sheet *self,
            const struct cm_leak_timeline_device *device,
            const struct thinned *points)
{
    const char *classes[CM_LEAK_MAX_CATEGORIES];
    struct cm_plot plot = {.count = points->count,
                           .layers = device->category_count,
                           .x = points->x,
                           .seconds = points->seconds,
                           .bytes = points->bytes,
                           .classes = classes,
                           .unit = cm_growth_unit(self->leak),
                           .most = DRAWN_POINTS,
                           .height = HEIGHT,
                           .since = -1};
    int64_t(*series[CM_PLOT_MAX_LINES])[CM_LEAK_SERIES_NUMBERS];
    enum cm_status status;

    for (size_t i = 0; i < device->category_count; i++) {
        classes[i] = class_of(cm_sheet_text(self, device->categories[i]));
    }
    status = pick_lines(self, device->name, series, &plot);
    if (status == CM_OK) {
        cm_plot_add(&plot, self->out);
    }
    for (size_t i = 0; i < plot.line_count; i++) {
        cm_free(series[i]);
    }
    return status;
}

static enum cm_status
add_drawing(struct cm_sheet *self,
            const struct cm_leak_timeline_device *device, size_t most)
{
    size_t count = device->point_count < most ? device->point_count : most;
    struct thinned points = {
        .x = cm_calloc(count, sizeof(double)),
        .seconds = cm_calloc(count, sizeof(double)),
        .bytes = cm_calloc(count * device->category_count, sizeof(uint64_t)),
        .count = count};
    enum cm_status status = CM_NO_MEMORY;

    if (points.x != NULL && points.seconds != NULL && points.bytes != NULL) {
        thin(device, &points);
        status = plot_points(self, device, &points);
    }
    cm_free(points.x);
    cm_free(points.seconds);
    cm_free(points.bytes);
    return status;
}

static enum cm_status
add_device(struct cm_sheet *self, const struct cm_leak_timeline_device *device,
           bool first)
{
    enum cm_status status;

    cm_put(self, first ? "<figure class=\"timeline\">" : "<details><summary>");
    cm_put(self, first ? "<figcaption><b>" : "");
    cm_escape_html_label(self->out, cm_sheet_text(self, device->name), 40);
    cm_put(self, first ? "</b> " : "");
    cm_buffer_addf(self->out, " over %s", cm_growth_unit(self->leak));
    cm_buffer_addf(self->out, "s %" PRId64 " to %" PRId64 ", at most ",
                   device->iterations[0],
                   device->iterations[device->point_count - 1]);
    cm_put_size(self, most_of(device));
    if (first) {
        tell_way(self);
    }
    else {
        cm_put(self, "</summary><figure class=\"timeline\">\n");
    }
    status = add_drawing(self, device, first ? MOST_POINTS : FOLDED_POINTS);
    cm_put(self, "<div class=\"under\">");
    add_reading(self, device);
    add_key(self, device);
    cm_put(self, first ? "</div></figure>\n" : "</div></figure></details>\n");
    return status;
}

/* ===== the whole ======================================================== */

/* The device with most memory; NULL: there is nothing to draw. */
static const struct cm_leak_timeline_device *
largest(const struct cm_leak_timeline *timeline)
{
    const struct cm_leak_timeline_device *result = NULL;
    uint64_t most = 0;

    for (size_t i = 0; i < timeline->device_count; i++) {
        uint64_t bytes = most_of(&timeline->devices[i]);

        if (bytes > most) {
            most = bytes;
            result = &timeline->devices[i];
        }
    }
    return result;
}

enum cm_status
cm_timeline_add_section(struct cm_sheet *self)
{
    const struct cm_leak_timeline *timeline = &self->leak->timeline;
    const struct cm_leak_timeline_device *first = largest(timeline);
    enum cm_status status = CM_OK;
    size_t written = 0;

    if (first == NULL) {
        return CM_OK;
    }
    cm_put(self, "<section class=\"over\" "
                 "aria-label=\"Memory over the run\">\n");
    status = add_device(self, first, true);
    for (size_t i = 0; status == CM_OK && i < timeline->device_count; i++) {
        const struct cm_leak_timeline_device *device = &timeline->devices[i];

        if (device != first && most_of(device) > 0
            && written++ < MAX_DEVICES - 1) {
            status = add_device(self, device, false);
        }
    }
    cm_put(self, "</section>\n");
    return status;
}
