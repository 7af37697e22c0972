/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The account of memory below the findings: for each device why an allocation
 * failed, who holds what, the pools, the iterations as two lines, and what no
 * Python object explains.  Every list is bounded; what is left out is
 * counted. */
#include <inttypes.h>
#include <string.h>

#include "exhausted.h"
#include "growth_unit.h"
#include "memory_held.h"
#include "memory_why.h"
#include "sheet.h"

#define MAX_ROWS 40
/* Half of what the page reserves (html.c): no device begins beyond, but the
 * one that ran out. */
#define MAX_DEVICES_BYTES ((size_t)768 * 1024)
/* Points of the drawn lines, and rows of the table beside them. */
#define MAX_POINTS 320
#define LAST_ROWS 6
#define CHART_WIDTH 640
#define CHART_HEIGHT 96

/* A cell, empty for what is not known. */
static void
put_cell(struct cm_sheet *self, uint64_t bytes)
{
    cm_put(self, "<td>");
    if (cm_memory_has(bytes)) {
        cm_put_size(self, bytes);
    }
    cm_put(self, "</td>");
}

static void
put_name(struct cm_sheet *self, struct cm_text_id name)
{
    cm_escape_html_label(self->out, cm_sheet_text(self, name), CM_LABEL_MAX);
}

static void
put_more(struct cm_sheet *self, size_t count)
{
    if (count > MAX_ROWS) {
        cm_buffer_addf(self->out,
                       "<p class=\"note\">%zu more in the report"
                       "</p>\n",
                       count - MAX_ROWS);
    }
}

/* ===== who holds what =================================================== */

static void
add_share(struct cm_sheet *self, const char *name, uint64_t bytes)
{
    if (cm_memory_has(bytes)) {
        cm_buffer_addf(self->out,
                       "<tr><th scope=\"row\">%s</th><td></td><td></td>"
                       "<td></td>",
                       name);
        put_cell(self, bytes);
        cm_put(self, "</tr>\n");
    }
}

static void
add_cells(struct cm_sheet *self, uint64_t allocated, uint64_t cached,
          uint64_t pending, uint64_t all)
{
    cm_put(self, "</th>");
    put_cell(self, allocated);
    put_cell(self, cached);
    put_cell(self, pending);
    put_cell(self, all);
    cm_put(self, "</tr>\n");
}

static void
add_framework(struct cm_sheet *self, const struct cm_leak_device *device,
              const struct cm_leak_framework *framework)
{
    cm_put(self, "<tr><th scope=\"row\">");
    put_name(self, framework->name);
    add_cells(self, framework->allocated,
              cm_memory_cached(self->leak, device, framework),
              cm_memory_is_torch(self->leak, framework) ? device->pending_free
                                                        : CM_LEAK_UNKNOWN,
              cm_memory_has(framework->reserved) ? framework->reserved
                                                 : framework->allocated);
}

static void
add_shares(struct cm_sheet *self, const struct cm_leak_device *device)
{
    cm_put(self, "<table><caption>Who holds it</caption><thead><tr>"
                 "<td></td><th scope=\"col\">in use</th>"
                 "<th scope=\"col\">cached</th>"
                 "<th scope=\"col\">pending</th>"
                 "<th scope=\"col\">in all</th>"
                 "</tr></thead><tbody>\n");
    for (size_t i = 0; i < device->framework_count && i < MAX_ROWS; i++) {
        add_framework(self, device, &device->frameworks[i]);
    }
    if (device->framework_count == 0 && device->reserved > 0) {
        cm_put(self, "<tr><th scope=\"row\">frameworks");
        add_cells(self, device->allocated, cm_memory_all_cached(device),
                  device->pending_free, device->reserved);
    }
    add_share(self, "outside the frameworks", device->outside_frameworks);
    add_share(self, "other processes", device->other_processes);
    add_share(self, "free", device->free);
    if (device->total > 0) {
        add_share(self, "the device", device->total);
    }
    cm_put(self, "</tbody></table>\n");
}

/* ===== pools ============================================================ */

static void
add_pool(struct cm_sheet *self, const struct cm_leak_pool *pool)
{
    bool pieces = cm_memory_is_fragmented(pool);

    cm_buffer_addf(self->out, "<tr%s><th scope=\"row\">",
                   pieces ? " class=\"bad\"" : "");
    put_name(self, pool->name);
    cm_put(self, pieces ? " <small>in pieces</small></th><td>" : "</th><td>");
    if (cm_memory_has(pool->segments)) {
        cm_buffer_addf(self->out, "%" PRIu64, pool->segments);
    }
    cm_put(self, "</td>");
    put_cell(self, pool->reserved);
    put_cell(self, pool->allocated);
    put_cell(self, pool->requested);
    put_cell(self, pool->pending_free);
    put_cell(self, pool->largest_free);
    cm_put(self, "</tr>\n");
}

static void
add_pools(struct cm_sheet *self, const struct cm_leak_device *device)
{
    if (device->unasked) {
        cm_put(self, "<p class=\"note\">Pools are not known: the program's "
                     "own recorder of torch is on, and is not asked.</p>\n");
    }
    if (device->pool_count == 0) {
        return;
    }
    cm_put(self, "<table><caption>Pools</caption><thead><tr><td></td>"
                 "<th scope=\"col\">segments</th>"
                 "<th scope=\"col\">reserved</th>"
                 "<th scope=\"col\">in use</th>"
                 "<th scope=\"col\">asked for</th>"
                 "<th scope=\"col\">pending</th>"
                 "<th scope=\"col\">largest free</th>"
                 "</tr></thead><tbody>\n");
    for (size_t i = 0; i < device->pool_count && i < MAX_ROWS; i++) {
        add_pool(self, &device->pools[i]);
    }
    cm_put(self, "</tbody></table>\n");
    put_more(self, device->pool_count);
}

/* ===== iterations ======================================================= */

static const int64_t *
row_at(const struct cm_leak_device *device, size_t row)
{
    return device->iterations + row * CM_LEAK_ITERATION_NUMBERS;
}

/* The row with the highest peak. */
static const int64_t *
highest_row(const struct cm_leak_device *device)
{
    const int64_t *highest = row_at(device, 0);

    for (size_t i = 1; i < device->iteration_count; i++) {
        if (row_at(device, i)[3] > highest[3]) {
            highest = row_at(device, i);
        }
    }
    return highest;
}

/* One line: of each bucket of rows the highest number of a column. */
static void
add_line(struct cm_sheet *self, const struct cm_leak_device *device,
         int column, const char *class, double top)
{
    size_t count = device->iteration_count;
    size_t points = count < MAX_POINTS ? count : MAX_POINTS;

    cm_buffer_addf(self->out, "<polyline class=\"%s\" points=\"", class);
    for (size_t i = 0; i < points; i++) {
        size_t from = i * count / points, to = (i + 1) * count / points;
        int64_t most = 0;
        long x = points > 1 ? (long)(i * CHART_WIDTH / (points - 1)) : 0;

        for (size_t j = from; j < to; j++) {
            int64_t number = row_at(device, j)[column];

            most = number > most ? number : most;
        }
        cm_buffer_addf(
            self->out, "%s%ld,%ld", i > 0 ? " " : "", x,
            (long)(CHART_HEIGHT - (double)most / top * (CHART_HEIGHT - 2)));
    }
    cm_put(self, "\"/>");
}

static void
add_chart(struct cm_sheet *self, const struct cm_leak_device *device)
{
    const int64_t *highest = highest_row(device);

    if (device->iteration_count < 3 || highest[3] <= 0) {
        return;
    }
    cm_buffer_addf(self->out,
                   "<svg class=\"chart\" viewBox=\"0 0 %d %d\" "
                   "preserveAspectRatio=\"none\" aria-hidden=\"true\">",
                   CHART_WIDTH, CHART_HEIGHT);
    add_line(self, device, 3, "peak", (double)highest[3]);
    add_line(self, device, 2, "after", (double)highest[3]);
    cm_put(self, "</svg>\n<p class=\"note key\"><span class=\"peak\">at most"
                 "</span> <span class=\"after\">after</span> each of ");
    cm_buffer_addf(self->out, "%ss %" PRId64 " to %" PRId64 "; the highest, ",
                   cm_growth_unit(self->leak), row_at(device, 0)[0],
                   row_at(device, device->iteration_count - 1)[0]);
    cm_put_size(self, (uint64_t)highest[3]);
    cm_buffer_addf(self->out, ", in %" PRId64 "</p>\n", highest[0]);
}

static void
add_row(struct cm_sheet *self, const int64_t *row)
{
    static const int order[] = {1, 3, 2};

    cm_put(self, "<tr><th scope=\"row\">");
    if (row[0] >= 0) {
        cm_buffer_addf(self->out, "%" PRId64, row[0]);
    }
    cm_put(self, "</th>");
    for (size_t i = 0; i < 3; i++) {
        int64_t bytes = row[order[i]];

        put_cell(self, bytes >= 0 ? (uint64_t)bytes : CM_LEAK_UNKNOWN);
    }
    cm_put(self, "</tr>\n");
}

static void
add_iterations(struct cm_sheet *self, const struct cm_leak_device *device)
{
    size_t count = device->iteration_count;

    if (count == 0) {
        return;
    }
    cm_put(self, "<div class=\"iterations\"><h4>");
    cm_put(self, strcmp(cm_growth_unit(self->leak), "iteration") == 0
                     ? "Iterations"
                     : "Time slices");
    cm_put(self, "</h4>\n");
    add_chart(self, device);
    cm_put(self, "<details><summary>The last ones</summary>"
                 "<table><thead><tr>"
                 "<td></td><th scope=\"col\">before</th>"
                 "<th scope=\"col\">at most</th><th scope=\"col\">after</th>"
                 "</tr></thead><tbody>\n");
    for (size_t i = count > LAST_ROWS ? count - LAST_ROWS : 0; i < count;
         i++) {
        add_row(self, row_at(device, i));
    }
    cm_put(self, "</tbody></table></details></div>\n");
}

/* ===== what no object explains ========================================== */

static void
add_held_place(struct cm_sheet *self, const struct cm_leak_held *held)
{
    const struct cm_leak_site *site =
        held->site != 0 ? cm_leak_site_at(self->leak, held->site) : NULL;
    const struct cm_leak_frame *frame;

    if (site == NULL || site->frame_count == 0) {
        cm_put(self, "not known");
        return;
    }
    frame = &site->frames[site->user_frame >= 0 ? site->user_frame : 0];
    cm_put_place(self, frame);
    cm_put(self, " <span class=\"name\">");
    put_name(self, frame->name);
    cm_put(self, "</span> <code class=\"source\">");
    cm_escape_html_label(self->out,
                         cm_unindented(cm_sheet_text(self, frame->source)),
                         CM_LABEL_MAX);
    cm_put(self, "</code>");
    if (held->awaited) {
        cm_put(self, " <small>in backward, waiting thread</small>");
    }
}

static void
add_held_row(struct cm_sheet *self, const struct cm_leak_held *held)
{
    cm_put(self, "<tr>");
    put_cell(self, held->bytes);
    cm_buffer_addf(self->out, "<td>%" PRIu64 "</td><td>", held->count);
    put_name(self, held->library.index != 0 ? held->library : held->framework);
    cm_put(self, "</td><td>");
    add_held_place(self, held);
    cm_put(self, "</td></tr>\n");
}

static void
add_held(struct cm_sheet *self, const struct cm_memory_held *held,
         struct cm_text_id device, bool driver)
{
    struct cm_memory_rows all = cm_memory_held_of(held, device, driver);

    if (all.count == 0) {
        return;
    }
    cm_buffer_addf(self->out,
                   "<table class=\"where\"><caption>%s</caption><thead><tr>"
                   "<th scope=\"col\">bytes</th><th scope=\"col\">blocks</th>"
                   "<th scope=\"col\">%s</th>"
                   "<th scope=\"col\">allocated at</th></tr></thead>"
                   "<tbody>\n",
                   driver ? "Allocated outside the frameworks"
                          : "Held by C++ alone <small>live, and no Python "
                            "object has it: saved for backward, buffers of "
                            "extensions</small>",
                   driver ? "library" : "framework");
    for (size_t i = 0; i < all.count && i < MAX_ROWS; i++) {
        add_held_row(self, all.rows[i]);
    }
    cm_put(self, "</tbody></table>\n");
    put_more(self, all.count);
}

/* ===== the whole ======================================================== */

void
cm_memory_add_reason(struct cm_sheet *self,
                     const struct cm_leak_device *device)
{
    struct cm_buffer why = {0}, fix = {0};

    cm_memory_why(self->leak, device, &why, &fix);
    if (why.length > 0) {
        cm_put(self, "<p class=\"why\">");
        cm_say(self, cm_buffer_text(&why));
        cm_put(self, ".</p>\n<p class=\"way\"><b>Way out:</b> ");
        cm_say(self, cm_buffer_text(&fix));
        cm_put(self, ".</p>\n");
    }
    if (self->out->status == CM_OK) {
        self->out->status = cm_buffer_status(&why);
    }
    if (self->out->status == CM_OK) {
        self->out->status = cm_buffer_status(&fix);
    }
    cm_buffer_release(&why);
    cm_buffer_release(&fix);
}

static void
add_device(struct cm_sheet *self, const struct cm_memory_held *held,
           const struct cm_leak_device *device)
{
    cm_put(self, "<section><h3>");
    put_name(self, device->name);
    cm_put(self, device->asked_bytes > 0
                     ? " <small>when memory ran out</small></h3>\n"
                     : "</h3>\n");
    if (device->asked_bytes == 0) {
        cm_memory_add_reason(self, device);
    }
    cm_put(self, "<div class=\"both\"><div>\n");
    add_shares(self, device);
    add_iterations(self, device);
    cm_put(self, "</div><div>\n");
    add_pools(self, device);
    add_held(self, held, device->name, false);
    add_held(self, held, device->name, true);
    cm_put(self, "</div></div>\n");
    cm_put(self, "</section>\n");
}

/* Of which nothing is known but what C++ holds there. */
static void
add_alone(struct cm_sheet *self, const struct cm_memory_held *held,
          struct cm_text_id name)
{
    cm_put(self, "<section><h3>");
    put_name(self, name);
    cm_put(self, "</h3>\n");
    add_held(self, held, name, false);
    add_held(self, held, name, true);
    cm_put(self, "</section>\n");
}

static bool
has_room(const struct cm_sheet *self, size_t start)
{
    return self->out->length - start < MAX_DEVICES_BYTES;
}

/* Answers how many were left out. */
static size_t
add_devices(struct cm_sheet *self, const struct cm_memory_held *held,
            size_t start)
{
    const struct cm_leak_device *exhausted = cm_exhausted_device(self->leak);
    size_t left_out = 0;

    for (size_t i = 0; i < self->leak->device_count; i++) {
        const struct cm_leak_device *device = &self->leak->devices[i];

        if (!cm_memory_is_known(device)) {
            continue;
        }
        if (device == exhausted || has_room(self, start)) {
            add_device(self, held, device);
        }
        else {
            left_out++;
        }
    }
    return left_out;
}

/* As add_devices(). */
static size_t
add_others(struct cm_sheet *self, const struct cm_memory_held *held,
           size_t start)
{
    size_t left_out = 0;

    for (size_t i = 0; i < self->leak->held_count; i++) {
        if (!cm_memory_held_is_alone(held, i)) {
            continue;
        }
        if (has_room(self, start)) {
            add_alone(self, held, self->leak->held[i].device);
        }
        else {
            left_out++;
        }
    }
    return left_out;
}

static void
add_all(struct cm_sheet *self, const struct cm_memory_held *held)
{
    size_t before = self->out->length, start, left_out;

    cm_put(self, "<section class=\"memory\" id=\"memory\">"
                 "<h2>Memory</h2>\n");
    start = self->out->length;
    left_out = add_devices(self, held, start);
    left_out += add_others(self, held, start);
    if (self->out->length == start) {
        cm_buffer_truncate(self->out, before);
        return;
    }
    cm_put_more_devices(self, left_out);
    cm_put(self, "</section>\n");
}

void
cm_memory_add(struct cm_sheet *self)
{
    struct cm_memory_held held = {0};
    enum cm_status status = cm_memory_held_init(&held, self->leak);

    if (status == CM_OK) {
        add_all(self, &held);
    }
    else if (self->out->status == CM_OK) {
        self->out->status = status;
    }
    cm_memory_held_release(&held);
}
