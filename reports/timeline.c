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
#include "growth.h"
#include "plot.h"
#include "sheet.h"

/* Points that are drawn without the script, and with it. */
#define DRAWN_POINTS 360
#define HEIGHT 150
#define MAX_DEVICES 16

/* A class name of ours for a category of the document. */
static const char *
class_of(const char *category)
{
    static const char *const classes[] = {"parameter", "gradient",
                                          "optimizer", "activation",
                                          "input",     "outside"};

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strcmp(category, classes[i]) == 0) {
            return classes[i];
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

static size_t
pick_lines(struct cm_sheet *self, struct cm_text_id device,
           struct cm_plot_line lines[CM_PLOT_MAX_LINES])
{
    size_t count = 0;

    for (size_t i = 0; i < self->count && count < CM_PLOT_MAX_LINES; i++) {
        const struct cm_sheet_finding *finding = &self->findings[i];

        if (is_drawn(self, finding, device)
            && finding->group == CM_SHEET_SHOWN) {
            lines[count++] = (struct cm_plot_line){
                .number = finding->number,
                .slope = finding->growth->bytes_per_iteration,
                .series = (const int64_t(*)[3])finding->growth->series,
                .count = finding->growth->series_count};
        }
    }
    return count;
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
add_drawing(struct cm_sheet *self,
            const struct cm_leak_timeline_device *device, const double *x)
{
    const char *classes[CM_LEAK_MAX_CATEGORIES];
    struct cm_plot plot = {.count = device->point_count,
                           .layers = device->category_count,
                           .x = x,
                           .seconds = device->seconds,
                           .bytes = device->bytes,
                           .classes = classes,
                           .unit = cm_growth_unit(self->leak),
                           .most = DRAWN_POINTS,
                           .height = HEIGHT,
                           .since = -1};

    for (size_t i = 0; i < device->category_count; i++) {
        classes[i] = class_of(cm_sheet_text(self, device->categories[i]));
    }
    plot.line_count = pick_lines(self, device->name, plot.lines);
    cm_plot_add(&plot, self->out);
}

static void
add_device(struct cm_sheet *self, const struct cm_leak_timeline_device *device,
           const double *x, bool first)
{
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
        cm_put(self, " <small>");
        cm_put(self, way_of_telling(self));
        cm_put(self, "</small></figcaption>\n");
    }
    else {
        cm_put(self, "</summary><figure class=\"timeline\">\n");
    }
    add_drawing(self, device, x);
    cm_put(self, "<div class=\"under\">");
    add_reading(self, device);
    add_key(self, device);
    cm_put(self, first ? "</div></figure>\n" : "</div></figure></details>\n");
}

/* ===== the whole ======================================================== */

static enum cm_status
add_one(struct cm_sheet *self, const struct cm_leak_timeline_device *device,
        bool first)
{
    double *x = cm_calloc(device->point_count, sizeof(*x));

    if (x == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < device->point_count; i++) {
        x[i] = (double)device->iterations[i];
    }
    add_device(self, device, x, first);
    cm_free(x);
    return CM_OK;
}

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
                 "aria-label=\"Memory over the iterations\">\n");
    status = add_one(self, first, true);
    for (size_t i = 0; status == CM_OK && i < timeline->device_count; i++) {
        const struct cm_leak_timeline_device *device = &timeline->devices[i];

        if (device != first && most_of(device) > 0
            && written++ < MAX_DEVICES - 1) {
            status = add_one(self, device, false);
        }
    }
    cm_put(self, "</section>\n");
    return status;
}
