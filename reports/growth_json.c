/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Rows of numbers stand without their names: there may be thousands.  A row
 * that falls behind the one before it is refused, so that whoever draws need
 * not ask.  Linear in the file. */
#include "growth_json.h"

#include <string.h>

#include "../detector/number.h"
#include "collector.h"
#include "growth.h"
#include "growth_use.h"

#define MAX_REAL 1125899906842624.0 /* 2^50 */

/* ===== writing ========================================================== */

static void
add_holder(struct cm_json_writer *self, const struct cm_leak_growth *growth)
{
    cm_json_add_key(self, "holder");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < growth->holder_count; i++) {
        cm_json_open_part(self, i);
        cm_json_add_text(self, "annotation", growth->holder[i].annotation);
        cm_json_add_text(self, "edge", growth->holder[i].edge);
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
}

static void
add_names(struct cm_json_writer *self, const char *key,
          const struct cm_text_id *names, size_t count)
{
    cm_json_add_key(self, key);
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < count; i++) {
        cm_buffer_add_text(self->out, i > 0 ? "," : "");
        cm_json_add_string(self, cm_leak_text(self->leak, names[i]));
    }
    cm_json_close_array(self);
}

static void
add_series(struct cm_json_writer *self, const struct cm_leak_growth *growth)
{
    cm_json_add_key(self, "series");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < growth->series_count; i++) {
        cm_buffer_add_text(self->out, i > 0 ? ",[" : "[");
        for (size_t j = 0; j < CM_LEAK_SERIES_NUMBERS; j++) {
            int64_t number = growth->series[i][j];

            cm_buffer_add_text(self->out, j > 0 ? "," : "");
            cm_json_add_whole(self, number > 0 ? (uint64_t)number : 0);
        }
        cm_buffer_add_char(self->out, ']');
    }
    cm_json_close_array(self);
}

static void
add_trend(struct cm_json_writer *self, const struct cm_leak_growth *growth)
{
    cm_json_add_real(self, "bytes_per_iteration", growth->bytes_per_iteration);
    cm_json_add_real(self, "count_per_iteration", growth->count_per_iteration);
    cm_json_add_known(self, "since_iteration", growth->since_iteration);
    cm_json_add_number(self, "bytes", growth->bytes);
    cm_json_add_number(self, "count", growth->count);
    cm_json_add_number(self, "peak_bytes", growth->peak_bytes);
    cm_json_add_real(self, "confidence", growth->confidence);
    cm_json_add_known(self, "iterations_to_full", growth->iterations_to_full);
    if (growth->seconds_to_full >= 0) {
        cm_json_add_real(self, "seconds_to_full", growth->seconds_to_full);
    }
    else {
        cm_json_add_known(self, "seconds_to_full", -1);
    }
}

static void
add_growth(struct cm_json_writer *self, const struct cm_leak_growth *growth)
{
    cm_json_add_key(self, "fingerprint");
    cm_json_add_fingerprint(self, growth->fingerprint);
    cm_json_add_known(self, "site",
                      growth->site > 0 ? (int64_t)growth->site : -1);
    cm_json_add_flag(self, "awaited", growth->awaited);
    cm_json_add_text(self, "category", growth->category);
    cm_json_add_text(self, "device", growth->device);
    cm_json_add_text(self, "verdict", growth->verdict);
    add_holder(self, growth);
    if (growth->holder_at > 0) {
        cm_json_add_number(self, "holder_at", growth->holder_at);
    }
    if (growth->holder_iteration >= 0) {
        cm_json_add_known(self, "holder_iteration", growth->holder_iteration);
    }
    cm_json_add_some_number(self, "retained_bytes", growth->retained_bytes);
    cm_json_add_frames(self, "made_at", growth->made_at, growth->made_at_count,
                       true);
    add_trend(self, growth);
    add_series(self, growth);
    cm_json_add_number(self, "autograd_depth", growth->autograd_depth);
    add_names(self, "names", growth->names, growth->name_count);
    cm_json_add_text(self, "rule", growth->rule);
    cm_json_add_text(self, "advice", growth->advice);
    cm_json_add_library(self, growth->library_package, growth->library_link);
}

static void
add_points(struct cm_json_writer *self,
           const struct cm_leak_timeline_device *device)
{
    cm_json_add_key(self, "points");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < device->point_count; i++) {
        int64_t iteration = device->iterations[i];

        cm_buffer_add_text(self->out, i > 0 ? ",[" : "[");
        cm_json_add_whole(self, iteration > 0 ? (uint64_t)iteration : 0);
        cm_buffer_add_char(self->out, ',');
        cm_json_add_real_value(self, device->seconds[i]);
        for (size_t j = 0; j < device->category_count; j++) {
            cm_buffer_add_char(self->out, ',');
            cm_json_add_whole(self,
                              device->bytes[i * device->category_count + j]);
        }
        cm_buffer_add_char(self->out, ']');
    }
    cm_json_close_array(self);
}

/* Absent where nobody looked. */
static void
add_timeline(struct cm_json_writer *self)
{
    const struct cm_leak_timeline *timeline = &self->leak->timeline;

    if (timeline->by.index == 0 && timeline->device_count == 0) {
        return;
    }
    cm_buffer_add_text(self->out, ",\n\"timeline\":{");
    self->comma = false;
    cm_json_add_text(self, "by", timeline->by);
    if (timeline->slices_since > 0) {
        cm_json_add_number(self, "slices_since",
                           (uint64_t)timeline->slices_since);
    }
    cm_json_add_key(self, "devices");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < timeline->device_count; i++) {
        const struct cm_leak_timeline_device *device = &timeline->devices[i];

        cm_json_open_item(self, i);
        cm_json_add_text(self, "name", device->name);
        add_names(self, "categories", device->categories,
                  device->category_count);
        add_points(self, device);
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
    cm_json_close_item(self);
}

void
cm_growth_write(struct cm_json_writer *self)
{
    cm_json_open_array(self, "growth");
    for (size_t i = 0; i < self->leak->growth_count; i++) {
        cm_json_open_item(self, i);
        add_growth(self, &self->leak->growth[i]);
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
    add_timeline(self);
}

void
cm_collector_write(struct cm_json_writer *self)
{
    const struct cm_leak_collector *sum = &self->leak->collector;

    if (!sum->known) {
        return;
    }
    cm_buffer_add_text(self->out, ",\n\"collector\":{");
    self->comma = false;
    cm_json_add_number(self, "seen", sum->seen);
    cm_json_add_number(self, "duration_us", sum->duration_us);
    cm_json_add_number(self, "longest_us", sum->longest_us);
    cm_json_add_number(self, "collected", sum->collected);
    cm_json_add_number(self, "device_bytes_freed", sum->device_bytes_freed);
    cm_json_add_flag(self, "off", sum->off);
    cm_json_close_item(self);
}

static bool
has_looks(const struct cm_leak_looks *looks)
{
    return looks->count != 0 || looks->skipped != 0 || looks->collections != 0
           || looks->growth_count != 0;
}

void
cm_looks_write(struct cm_json_writer *self)
{
    const struct cm_leak_looks *looks = &self->leak->looks;

    if (!has_looks(looks)) {
        return;
    }
    cm_buffer_add_text(self->out, ",\n\"looks\":{");
    self->comma = false;
    cm_json_add_number(self, "count", looks->count);
    cm_json_add_number(self, "duration_us", looks->duration_us);
    cm_json_add_number(self, "longest_us", looks->longest_us);
    cm_json_add_number(self, "skipped", looks->skipped);
    cm_json_add_number(self, "collections", looks->collections);
    cm_json_add_number(self, "saved_bytes", looks->saved_bytes);
    cm_json_add_number(self, "growth_count", looks->growth_count);
    cm_json_add_number(self, "growth_duration_us", looks->growth_duration_us);
    cm_json_add_number(self, "run_us", looks->run_us);
    cm_json_close_item(self);
}

/* ===== reading ========================================================== */

static void
read_holder(struct cm_leak_reader *self, const struct cJSON *item, void *place)
{
    struct cm_leak_holder *holder = place;

    holder->annotation = cm_json_text(&self->json, item, "annotation");
    holder->edge = cm_json_text(&self->json, item, "edge");
}

/* The texts of an array. */
static struct cm_text_id *
read_names(struct cm_leak_reader *self, const struct cJSON *object,
           const char *key, size_t *count)
{
    const struct cJSON *array = cm_json_array(&self->json, object, key),
                       *value;
    struct cm_text_id *names = cm_json_items(&self->json, cm_json_count(array),
                                             sizeof(struct cm_text_id));

    *count = 0;
    if (names == NULL) {
        return NULL;
    }
    self->json.list = key;
    for (value = cm_json_first(array); value != NULL;
         value = cm_json_next(value)) {
        self->json.item = *count;
        names[(*count)++] = cm_json_text_value(&self->json, value);
    }
    self->json.list = NULL;
    return names;
}

/* `count` whole numbers; false, and a failure, for anything else. */
static bool
read_row(struct cm_leak_reader *self, const struct cJSON *row, size_t count,
         const char *expected, int64_t *numbers)
{
    const struct cJSON *value = cm_json_first(row);

    if (!cm_json_is_array(row) || cm_json_count(row) != count) {
        cm_json_fail(&self->json, NULL, "expected %s", expected);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        numbers[i] = cm_json_known_value(&self->json, value);
        if (numbers[i] < 0) {
            cm_json_fail(&self->json, NULL, "expected %s", expected);
            return false;
        }
        value = cm_json_next(value);
    }
    return true;
}

static void
read_series(struct cm_leak_reader *self, const struct cJSON *item,
            struct cm_leak_growth *growth)
{
    const struct cJSON *array = cm_json_array(&self->json, item, "series"),
                       *row;
    size_t count = 0;

    growth->series = cm_json_items(&self->json, cm_json_count(array),
                                   sizeof(*growth->series));
    if (growth->series == NULL) {
        return;
    }
    self->json.list = "series";
    for (row = cm_json_first(array); row != NULL; row = cm_json_next(row)) {
        self->json.item = count;
        if (!read_row(self, row, CM_LEAK_SERIES_NUMBERS,
                      "[iteration, count, bytes]", growth->series[count])) {
            break;
        }
        if (count > 0
            && growth->series[count][0] < growth->series[count - 1][0]) {
            cm_json_fail(&self->json, NULL,
                         "expected an iteration not before the last");
            break;
        }
        count++;
    }
    growth->series_count = count;
    self->json.list = NULL;
}

static void
read_trend(struct cm_leak_reader *self, const struct cJSON *item,
           struct cm_leak_growth *growth)
{
    struct cm_json *json = &self->json;

    growth->bytes_per_iteration = cm_json_real(
        json, item, "bytes_per_iteration", -MAX_REAL, MAX_REAL, 0);
    growth->count_per_iteration = cm_json_real(
        json, item, "count_per_iteration", -MAX_REAL, MAX_REAL, 0);
    growth->since_iteration = cm_json_known(json, item, "since_iteration");
    growth->bytes = cm_json_number(json, item, "bytes", 0);
    growth->count = cm_json_number(json, item, "count", 0);
    growth->peak_bytes =
        cm_json_number(json, item, "peak_bytes", growth->bytes);
    growth->confidence = cm_json_real(json, item, "confidence", 0, 1, 0);
    growth->iterations_to_full =
        cm_json_known(json, item, "iterations_to_full");
    growth->seconds_to_full =
        cm_json_real(json, item, "seconds_to_full", 0, MAX_REAL, -1);
}

void
cm_growth_read(struct cm_leak_reader *self, const struct cJSON *item,
               size_t position)
{
    struct cm_leak_growth *growth = &self->leak->growth[position];
    struct cm_json *json = &self->json;

    growth->site = cm_json_id(json, item, "site", &self->sites, false);
    growth->awaited = cm_json_flag(json, item, "awaited");
    growth->category = cm_json_text(json, item, "category");
    growth->device = cm_json_text(json, item, "device");
    growth->verdict = cm_json_text(json, item, "verdict");
    if (cm_growth_verdict(self->leak, growth) == CM_GROWTH_NO_VERDICT) {
        cm_json_fail(json, "verdict",
                     "expected growing, leak, lingering, settled or ok");
    }
    growth->holder =
        cm_leak_read_parts(self, item, "holder", sizeof(*growth->holder),
                           &growth->holder_count, read_holder);
    growth->holder_at = cm_json_small(json, item, "holder_at");
    if (growth->holder_at > 0 && growth->holder_at >= growth->holder_count) {
        cm_json_fail(json, "holder_at", "holder %zu does not exist",
                     growth->holder_at);
    }
    growth->holder_iteration = cm_json_known(json, item, "holder_iteration");
    growth->retained_bytes =
        cm_json_number(json, item, "retained_bytes", CM_LEAK_UNKNOWN);
    growth->made_at =
        cm_leak_read_frames(self, item, "made_at", &growth->made_at_count);
    read_trend(self, item, growth);
    read_series(self, item, growth);
    growth->autograd_depth = cm_json_number(json, item, "autograd_depth", 0);
    growth->names = read_names(self, item, "names", &growth->name_count);
    growth->rule = cm_json_text(json, item, "rule");
    growth->advice = cm_json_text(json, item, "advice");
    cm_leak_read_library(self, item, &growth->library_package,
                         &growth->library_link);
    growth->fingerprint = cm_json_hex(json, item, "fingerprint");
    if (growth->fingerprint == 0 && json->status == CM_OK) {
        growth->fingerprint = cm_growth_fingerprint(self->leak, growth);
    }
}

/* Room for all points; false when there are none, or none can be had. */
static bool
make_points(struct cm_leak_reader *self, const struct cJSON *points,
            struct cm_leak_timeline_device *device)
{
    size_t count = cm_json_count(points);
    struct cm_json *json = &self->json;

    if (count == 0 || json->status != CM_OK) {
        return false;
    }
    if (device->category_count == 0) {
        cm_json_fail(json, "points", "expected none without categories");
        return false;
    }
    device->iterations =
        cm_json_items(json, count, sizeof(*device->iterations));
    device->seconds = cm_json_items(json, count, sizeof(*device->seconds));
    device->bytes = cm_json_items(json, count * device->category_count,
                                  sizeof(*device->bytes));
    return device->iterations != NULL && device->seconds != NULL
           && device->bytes != NULL;
}

/* Everything but that it does not fall. */
static bool
read_point(struct cm_leak_reader *self, const struct cJSON *row,
           struct cm_leak_timeline_device *device, size_t at)
{
    const struct cJSON *value = cm_json_first(row);
    uint64_t *bytes = device->bytes + at * device->category_count;
    bool good = cm_json_is_array(row)
                && cm_json_count(row) == device->category_count + 2;

    for (size_t i = 0; good && i < device->category_count + 2; i++) {
        double number = cm_json_value_of(value);

        good = number >= 0 && number <= (double)CM_MOST_NUMBER;
        if (good && i == 0) {
            device->iterations[at] = (int64_t)number;
        }
        else if (good && i == 1) {
            device->seconds[at] = number;
        }
        else if (good) {
            bytes[i - 2] = (uint64_t)number;
        }
        value = cm_json_next(value);
    }
    if (!good) {
        cm_json_fail(&self->json, NULL,
                     "expected [iteration, seconds, bytes of each category]");
    }
    return good;
}

static void
read_points(struct cm_leak_reader *self, const struct cJSON *item,
            struct cm_leak_timeline_device *device)
{
    const struct cJSON *array = cm_json_array(&self->json, item, "points"),
                       *row;
    size_t count = 0;

    if (!make_points(self, array, device)) {
        return;
    }
    self->json.list = "points";
    for (row = cm_json_first(array); row != NULL; row = cm_json_next(row)) {
        self->json.item = count;
        if (!read_point(self, row, device, count)) {
            break;
        }
        if (count > 0
            && (device->iterations[count] < device->iterations[count - 1]
                || device->seconds[count] < device->seconds[count - 1])) {
            cm_json_fail(&self->json, NULL,
                         "expected a point not before the last");
            break;
        }
        count++;
    }
    device->point_count = device->point_capacity = count;
    self->json.list = NULL;
}

static void
read_device(struct cm_leak_reader *self, const struct cJSON *item,
            struct cm_leak_timeline_device *device)
{
    if (!cm_json_is_object(item)) {
        cm_json_fail(&self->json, NULL, "expected an object");
        return;
    }
    device->name = cm_json_text(&self->json, item, "name");
    device->categories =
        read_names(self, item, "categories", &device->category_count);
    if (device->category_count > CM_LEAK_MAX_CATEGORIES) {
        cm_json_fail(&self->json, "categories", "expected at most %d",
                     CM_LEAK_MAX_CATEGORIES);
    }
    read_points(self, item, device);
}

/* How iterations may have been told. */
static bool
is_way(const char *by)
{
    static const char *const ways[] = {"", "step", "optimizer", "time"};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(by, ways[i]) == 0) {
            return true;
        }
    }
    return false;
}

void
cm_timeline_read(struct cm_leak_reader *self)
{
    struct cm_leak_timeline *timeline = &self->leak->timeline;
    const struct cJSON *root = cm_json_get(self->json.root, "timeline"),
                       *array, *item;

    if (root == NULL || self->json.status != CM_OK) {
        return;
    }
    if (!cm_json_is_object(root)) {
        cm_json_fail(&self->json, "timeline", "expected an object");
        return;
    }
    self->json.object = "timeline";
    timeline->by = cm_json_text(&self->json, root, "by");
    if (!is_way(cm_leak_text(self->leak, timeline->by))) {
        cm_json_fail(&self->json, "by", "expected step, optimizer or time");
    }
    timeline->slices_since =
        (int64_t)cm_json_number(&self->json, root, "slices_since", 0);
    array = cm_json_array(&self->json, root, "devices");
    if (cm_json_count(array) > CM_TIMELINE_MAX_DEVICES) {
        cm_json_fail(&self->json, "devices", "expected at most %d",
                     CM_TIMELINE_MAX_DEVICES);
        return;
    }
    timeline->devices = cm_json_items(&self->json, cm_json_count(array),
                                      sizeof(*timeline->devices));
    self->json.array = timeline->devices != NULL ? "devices" : NULL;
    for (item = cm_json_first(array); item != NULL && self->json.array != NULL
                                      && self->json.status == CM_OK;
         item = cm_json_next(item)) {
        self->json.index = timeline->device_count;
        read_device(self, item, &timeline->devices[timeline->device_count++]);
    }
    timeline->device_capacity = timeline->device_count;
    self->json.array = self->json.object = NULL;
}

void
cm_collector_read(struct cm_leak_reader *self)
{
    const struct cJSON *item = cm_json_get(self->json.root, "collector");
    struct cm_leak_collector *sum = &self->leak->collector;

    sum->known = item != NULL || self->leak->collection_count > 0;
    if (item == NULL) {
        cm_collector_add_up(self->leak);
        return;
    }
    if (!cm_json_is_object(item)) {
        cm_json_fail(&self->json, "collector", "expected an object");
        return;
    }
    self->json.object = "collector";
    sum->seen = cm_json_number(&self->json, item, "seen", 0);
    sum->duration_us = cm_json_number(&self->json, item, "duration_us", 0);
    sum->longest_us = cm_json_number(&self->json, item, "longest_us", 0);
    sum->collected = cm_json_number(&self->json, item, "collected", 0);
    sum->device_bytes_freed =
        cm_json_number(&self->json, item, "device_bytes_freed", 0);
    sum->off = cm_json_flag(&self->json, item, "off");
    self->json.object = NULL;
}

static void
read_looks(struct cm_json *json, const struct cJSON *item,
           struct cm_leak_looks *looks)
{
    looks->count = cm_json_number(json, item, "count", 0);
    looks->duration_us = cm_json_number(json, item, "duration_us", 0);
    looks->longest_us = cm_json_number(json, item, "longest_us", 0);
    looks->skipped = cm_json_number(json, item, "skipped", 0);
    looks->collections = cm_json_number(json, item, "collections", 0);
    looks->saved_bytes = cm_json_number(json, item, "saved_bytes", 0);
    looks->growth_count = cm_json_number(json, item, "growth_count", 0);
    looks->growth_duration_us =
        cm_json_number(json, item, "growth_duration_us", 0);
    looks->run_us = cm_json_number(json, item, "run_us", 0);
}

void
cm_looks_read(struct cm_leak_reader *self)
{
    const struct cJSON *item = cm_json_get(self->json.root, "looks");

    if (item == NULL) {
        return;
    }
    if (!cm_json_is_object(item)) {
        cm_json_fail(&self->json, "looks", "expected an object");
        return;
    }
    self->json.object = "looks";
    read_looks(&self->json, item, &self->leak->looks);
    self->json.object = NULL;
}
