/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Filling the document's account of growth.  The new list is made whole before
 * it takes the place of the old one.  Cost: linear in what is kept; a point of
 * the timeline costs its categories. */
#include "growth_use.h"

#include <stdlib.h> // qsort()
#include <string.h>

#include "../detector/alloc.h"
#include "../detector/number.h"
#include "growth.h"
#include "growth_inherit.h"
#include "representative.h"

#define MAX_REAL 1125899906842624.0 /* 2^50 */

/* Between the bounds; the lower one also for what is no number. */
static double
between(double number, double low, double high)
{
    if (!(number >= low)) {
        return low;
    }
    return number < high ? number : high;
}

void
cm_growth_use_init(struct cm_growth_use *self)
{
    *self = (struct cm_growth_use){.verdict = "ok",
                                   .retained_bytes = CM_LEAK_UNKNOWN,
                                   .since_iteration = -1,
                                   .iterations_to_full = -1,
                                   .seconds_to_full = -1};
}

/* ===== one entry ======================================================== */

static enum cm_status
copy_text(struct cm_copy *copy, const char *text, struct cm_text_id *result)
{
    return cm_copy_text(copy, text != NULL ? text : "", result);
}

/* The step of the way that the i-th of those kept is. */
static size_t
kept_step(const struct cm_growth_use *use, size_t count, size_t i)
{
    return i < count / 2 ? i : use->holder_count - count + i;
}

static enum cm_status
copy_holder(struct cm_copy *copy, const struct cm_growth_use *use,
            struct cm_leak_growth *growth)
{
    size_t count = use->holder_count < CM_GROWTH_MAX_HOLDERS
                       ? use->holder_count
                       : CM_GROWTH_MAX_HOLDERS;
    enum cm_status status = CM_OK;

    growth->holder = cm_calloc(count + 1, sizeof(*growth->holder));
    if (growth->holder == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        size_t step = kept_step(use, count, i);
        struct cm_leak_holder *holder = &growth->holder[i];

        growth->holder_at = step == use->holder_at ? i : growth->holder_at;
        status =
            copy_text(copy, use->holder[step].annotation, &holder->annotation);
        if (status == CM_OK) {
            status = copy_text(copy, use->holder[step].edge, &holder->edge);
        }
    }
    growth->holder_count = count;
    return status;
}

static enum cm_status
copy_places(struct cm_copy *copy, const struct cm_growth_use *use,
            struct cm_leak_growth *growth)
{
    size_t count = use->made_at_count < CM_MAX_PLACES ? use->made_at_count
                                                      : CM_MAX_PLACES;
    enum cm_status status = CM_OK;

    growth->made_at = cm_calloc(count + 1, sizeof(*growth->made_at));
    if (growth->made_at == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        status = cm_copy_frame(copy, use->made_at[i].code,
                               use->made_at[i].line, &growth->made_at[i]);
        growth->made_at[i].certain = use->made_at[i].certain;
    }
    growth->made_at_count = count;
    return status;
}

static enum cm_status
copy_names(struct cm_copy *copy, const struct cm_growth_use *use,
           struct cm_leak_growth *growth)
{
    size_t count = use->name_count < CM_GROWTH_MAX_NAMES ? use->name_count
                                                         : CM_GROWTH_MAX_NAMES;
    enum cm_status status = CM_OK;

    growth->names = cm_calloc(count + 1, sizeof(*growth->names));
    if (growth->names == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        status = copy_text(copy, use->names[i], &growth->names[i]);
    }
    growth->name_count = count;
    return status;
}

/* Rows that would fall are left out. */
static enum cm_status
copy_series(const struct cm_growth_use *use, struct cm_leak_growth *growth)
{
    size_t all = use->series_count;
    size_t count = all < CM_GROWTH_MAX_SERIES ? all : CM_GROWTH_MAX_SERIES;
    int64_t last = 0;

    growth->series = cm_calloc(count + 1, sizeof(*growth->series));
    if (growth->series == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        const int64_t *row = use->series[(i + 1) * all / count - 1];
        int64_t *to = growth->series[growth->series_count];

        if (row[0] < last) {
            continue;
        }
        last = row[0];
        for (size_t j = 0; j < CM_LEAK_SERIES_NUMBERS; j++) {
            to[j] = row[j] > 0 ? cm_number_known(row[j]) : 0;
        }
        growth->series_count++;
    }
    return CM_OK;
}

static void
copy_numbers(const struct cm_growth_use *use, struct cm_leak_growth *growth)
{
    double seconds = use->seconds_to_full;

    growth->bounded = use->bounded;
    growth->unsure = use->unsure;
    growth->holder_iteration = -1;
    growth->awaited = use->awaited;
    growth->bytes_per_iteration =
        between(use->bytes_per_iteration, -MAX_REAL, MAX_REAL);
    growth->count_per_iteration =
        between(use->count_per_iteration, -MAX_REAL, MAX_REAL);
    growth->since_iteration = cm_number_known(use->since_iteration);
    growth->bytes = cm_number_capped(use->bytes);
    growth->count = cm_number_capped(use->count);
    growth->peak_bytes = cm_number_capped(
        use->peak_bytes > use->bytes ? use->peak_bytes : use->bytes);
    growth->retained_bytes = use->retained_bytes != CM_LEAK_UNKNOWN
                                 ? cm_number_capped(use->retained_bytes)
                                 : CM_LEAK_UNKNOWN;
    growth->autograd_depth = cm_number_capped(use->autograd_depth);
    growth->confidence = between(use->confidence, 0, 1);
    growth->iterations_to_full = cm_number_known(use->iterations_to_full);
    growth->seconds_to_full =
        seconds >= 0 ? between(seconds, 0, MAX_REAL) : -1;
}

static enum cm_status
copy_texts(struct cm_copy *copy, const struct cm_growth_use *use,
           struct cm_leak_growth *growth)
{
    const char *texts[] = {use->category,    use->device, use->verdict,
                           use->rule,        use->advice, use->library_package,
                           use->library_link};
    struct cm_text_id *ids[] = {&growth->category,    &growth->device,
                                &growth->verdict,     &growth->rule,
                                &growth->advice,      &growth->library_package,
                                &growth->library_link};
    enum cm_status status = CM_OK;

    for (size_t i = 0; status == CM_OK && i < sizeof(texts) / sizeof(texts[0]);
         i++) {
        status = copy_text(copy, texts[i], ids[i]);
    }
    return status;
}

static enum cm_status
copy_growth(struct cm_copy *copy, const struct cm_growth_use *use,
            struct cm_leak_growth *growth)
{
    enum cm_status status = copy_texts(copy, use, growth);

    copy_numbers(use, growth);
    if (status == CM_OK
        && cm_growth_verdict(copy->leak, growth) == CM_GROWTH_NO_VERDICT) {
        status = CM_MISUSE;
    }
    if (status == CM_OK) {
        status = cm_copy_site(copy, use->site, &growth->site);
    }
    if (status == CM_OK) {
        status = copy_holder(copy, use, growth);
    }
    if (status == CM_OK) {
        status = copy_places(copy, use, growth);
    }
    if (status == CM_OK) {
        status = copy_names(copy, use, growth);
    }
    if (status == CM_OK) {
        status = copy_series(use, growth);
    }
    growth->fingerprint = cm_growth_fingerprint(copy->leak, growth);
    return status;
}

/* ===== the list ========================================================= */

/* A leak, lingering, growing: a person hears of it. */
static bool
is_told(const struct cm_growth_use *use)
{
    const char *verdict = use->verdict != NULL ? use->verdict : "";

    return verdict[0] == 'l' || verdict[0] == 'g';
}

/* Those that are told before others, then by bytes. */
static int
by_weight(const void *first, const void *second)
{
    const struct cm_growth_use *const *a = first, *const *b = second;
    bool a_told = is_told(*a), b_told = is_told(*b);

    if (a_told != b_told) {
        return a_told ? -1 : 1;
    }
    if ((*a)->bytes != (*b)->bytes) {
        return (*a)->bytes > (*b)->bytes ? -1 : 1;
    }
    return *a < *b ? -1 : *a > *b;
}

static enum cm_status
sort_uses(const struct cm_growth_use *items, size_t count,
          const struct cm_growth_use ***order)
{
    *order = cm_calloc(count + 1, sizeof(**order));
    if (*order == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        (*order)[i] = &items[i];
    }
    qsort(*order, count, sizeof(**order), by_weight);
    return CM_OK;
}

static void
release_list(struct cm_leak_growth *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cm_leak_growth_release(&items[i]);
    }
    cm_free(items);
}

enum cm_status
cm_growth_set(struct cm_leak *leak, const struct cm_records *records,
              const struct cm_growth_use *items, size_t count)
{
    struct cm_copy copy = {.leak = leak, .records = records};
    size_t kept = count < CM_GROWTH_MAX ? count : CM_GROWTH_MAX;
    struct cm_leak_growth *list = cm_calloc(kept + 1, sizeof(*list));
    const struct cm_growth_use **order = NULL;
    enum cm_status status =
        list != NULL ? sort_uses(items, count, &order) : CM_NO_MEMORY;

    for (size_t i = 0; status == CM_OK && i < kept; i++) {
        status = copy_growth(&copy, order[i], &list[i]);
    }
    for (size_t i = 0; status == CM_OK && i < kept; i++) {
        cm_growth_inherit(leak, &list[i], order[i]->at_end);
    }
    if (status == CM_OK) {
        release_list(leak->growth, leak->growth_count);
        leak->growth = list;
        leak->growth_count = leak->growth_capacity = kept;
        leak->growth_iteration = leak->iteration;
    }
    else if (list != NULL) {
        release_list(list, kept);
    }
    cm_free(order);
    cm_copy_release(&copy);
    return status;
}

/* ===== the timeline ===================================================== */

/* Made when there is none; NULL: no memory, or too many. */
static struct cm_leak_timeline_device *
device_of(struct cm_leak *leak, const char *name)
{
    struct cm_leak_timeline *timeline = &leak->timeline;
    struct cm_leak_timeline_device device = {0};

    for (size_t i = 0; i < timeline->device_count; i++) {
        if (strcmp(cm_leak_text(leak, timeline->devices[i].name), name) == 0) {
            return &timeline->devices[i];
        }
    }
    if (timeline->device_count == CM_TIMELINE_MAX_DEVICES
        || cm_texts_add(leak->texts, name, strlen(name), &device.name) != CM_OK
        || cm_grow((void **)&timeline->devices, &timeline->device_capacity,
                   timeline->device_count + 1, sizeof(device))
               != CM_OK) {
        return NULL;
    }
    timeline->devices[timeline->device_count] = device;
    return &timeline->devices[timeline->device_count++];
}

/* The categories are those of the first point. */
static enum cm_status
set_categories(struct cm_leak *leak, struct cm_leak_timeline_device *device,
               const struct cm_timeline_use *point)
{
    struct cm_copy copy = {.leak = leak};
    struct cm_text_id *names;
    enum cm_status status = CM_OK;

    if (device->categories != NULL) {
        return CM_OK;
    }
    if (point->category_count == 0
        || point->category_count > CM_LEAK_MAX_CATEGORIES) {
        return CM_MISUSE;
    }
    names = cm_calloc(point->category_count, sizeof(*names));
    status = names != NULL ? CM_OK : CM_NO_MEMORY;
    for (size_t i = 0; status == CM_OK && i < point->category_count; i++) {
        status = cm_copy_text(&copy, point->categories[i], &names[i]);
    }
    cm_copy_release(&copy);
    if (status != CM_OK) {
        cm_free(names);
        return status;
    }
    device->categories = names;
    device->category_count = point->category_count;
    return CM_OK;
}

/* Room for one more point; nothing changes on failure. */
static enum cm_status
reserve_point(struct cm_leak_timeline_device *device)
{
    size_t room = device->point_capacity > 0 ? 2 * device->point_capacity : 64;
    size_t row_bytes = device->category_count * sizeof(uint64_t);
    void *larger;

    if (device->point_count < device->point_capacity) {
        return CM_OK;
    }
    larger = cm_realloc(device->iterations, room * sizeof(int64_t));
    if (larger == NULL) {
        return CM_NO_MEMORY;
    }
    device->iterations = larger;
    larger = cm_realloc(device->seconds, room * sizeof(double));
    if (larger == NULL) {
        return CM_NO_MEMORY;
    }
    device->seconds = larger;
    larger = cm_realloc(device->bytes, room * row_bytes);
    if (larger == NULL) {
        return CM_NO_MEMORY;
    }
    device->bytes = larger;
    device->point_capacity = room;
    return CM_OK;
}

static uint64_t
total_of(const uint64_t *bytes, size_t count)
{
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total += cm_number_capped(bytes[i]);
    }
    return total;
}

static void
put_point(struct cm_leak_timeline_device *device, size_t at, int64_t iteration,
          double seconds, const uint64_t *bytes)
{
    device->iterations[at] = iteration > 0 ? cm_number_known(iteration) : 0;
    device->seconds[at] = between(seconds, 0, MAX_REAL);
    for (size_t i = 0; i < device->category_count; i++) {
        device->bytes[at * device->category_count + i] =
            cm_number_capped(bytes[i]);
    }
}

/* Of each two neighbours the one with more bytes stays. */
static void
thin_points(struct cm_leak_timeline_device *device)
{
    size_t width = device->category_count, kept = 0;

    for (size_t i = 0; i + 1 < device->point_count; i += 2) {
        const uint64_t *first = device->bytes + i * width;
        size_t from =
            i + (total_of(first + width, width) > total_of(first, width));

        put_point(device, kept++, device->iterations[from],
                  device->seconds[from], device->bytes + from * width);
    }
    device->point_count = kept;
}

static bool
lies_before(const struct cm_leak_timeline_device *device,
            const struct cm_timeline_use *point)
{
    size_t last = device->point_count - 1;

    return device->point_count > 0
           && (point->iteration < device->iterations[last]
               || !(point->seconds >= device->seconds[last]));
}

/* A device that has its categories. */
static enum cm_status
add_point(struct cm_leak_timeline_device *device, uint64_t *seen,
          uint64_t *step, const struct cm_timeline_use *point)
{
    size_t width = device->category_count;
    size_t last = device->point_count - 1;
    enum cm_status status;

    *step = *step != 0 ? *step : 1;
    if (device->point_count > 0 && *seen % *step != 0) {
        if (total_of(point->bytes, width)
            > total_of(device->bytes + last * width, width)) {
            put_point(device, last, point->iteration, point->seconds,
                      point->bytes);
        }
        *seen += 1;
        return CM_OK;
    }
    if (device->point_count == CM_TIMELINE_MAX_POINTS) {
        thin_points(device);
        *step *= 2;
    }
    status = reserve_point(device);
    if (status == CM_OK) {
        put_point(device, device->point_count++, point->iteration,
                  point->seconds, point->bytes);
        *seen += 1;
    }
    return status;
}

/* Slices of time stand for iterations only until there are some; later ones are
 * counted on from these. */
static void
begin_anew(struct cm_leak *leak, struct cm_timeline_rows *rows)
{
    *rows = (struct cm_timeline_rows){{0}, {0}};
    for (size_t i = 0; i < leak->timeline.device_count; i++) {
        leak->timeline.devices[i].point_count = 0;
    }
}

static void
note_way(struct cm_leak *leak, struct cm_timeline_rows *rows,
         const struct cm_timeline_use *point)
{
    struct cm_leak_timeline *timeline = &leak->timeline;
    const char *by = cm_leak_text(leak, timeline->by);
    bool slices = strcmp(point->by, "time") == 0;

    if (slices && by[0] != '\0' && strcmp(by, "time") != 0) {
        if (timeline->slices_since == 0) {
            timeline->slices_since = point->iteration;
            *rows = (struct cm_timeline_rows){{0}, {0}}; /* none left out */
        }
        return;
    }
    if (!slices && strcmp(by, "time") == 0) {
        begin_anew(leak, rows);
    }
    timeline->slices_since = 0;
    timeline->by = cm_texts_intern(leak->texts, point->by);
}

enum cm_status
cm_timeline_add(struct cm_leak *leak, struct cm_timeline_rows *rows,
                const struct cm_timeline_use *point)
{
    struct cm_leak_timeline_device *device = device_of(leak, point->device);
    size_t at;
    enum cm_status status;

    if (device == NULL) {
        return CM_NO_MEMORY;
    }
    note_way(leak, rows, point);
    status = set_categories(leak, device, point);
    if (status != CM_OK) {
        return status;
    }
    if (point->category_count != device->category_count) {
        return CM_MISUSE;
    }
    if (lies_before(device, point)) {
        return CM_OK;
    }
    at = (size_t)(device - leak->timeline.devices);
    return add_point(device, &rows->seen[at], &rows->step[at], point);
}
