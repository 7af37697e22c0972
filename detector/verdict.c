/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The series is read at four scales: as it is, and as the least value of each
 * 1, 2 and 4 strides of the series, since what is never freed lifts the lower
 * envelope, whatever saw-teeth stand on it.  At each scale every window that
 * ends now is asked; one that passes all tests makes a leak:
 *
 * - a trend: Mann (1945), Kendall (1975), on the sign of all pairs;
 * - more growth than a random walk would make (the law of the iterated
 *   logarithm) whose falls are those of the whole series: levels that wander
 *   rise for long;
 * - no single jump: the level keeps close to a line;
 * - steady: its younger half grew as much as its older half, its last quarter
 *   still grows, and before the window it did not grow faster.  Caches that
 *   fill, and buffers made for the largest batch so far, slow down;
 * - longer, or higher, than what was taken back before: lists that are
 *   emptied each epoch, evaluation phases.
 *
 * Few equal steps at equal distances pass without the first and the fourth.
 * The slope is robust: slope.h.
 *
 * Cost: quadratic in the 48 points at each scale; 15 us where all are full. */

#include "verdict.h"

#include <float.h>
#include <math.h>

#include "iterations.h"
#include "lingering.h"
#include "slope.h"

enum {
    ROWS = CM_SERIES_POINTS + 1, /* one for the end of the warm-up */
    SCALES = 4,
};

const struct cm_verdict_rules cm_verdict_defaults = {
    .warmup = 2,
    .min_bytes = 1 << 20,
    .min_bytes_per_iteration = 64,
    .only_replaced = true,
    .min_rises = 8,
    .min_z_noisy = 4.5,
    .max_spread = 0.2,
    .min_share = 0.46,
    .share_errors = 2,
    .walk_factor = 2.2,
    .slowing = 1.2,
};

struct row {
    double at; /* iterations after the first */
    double low, count;
};

struct rows {
    struct row items[ROWS];
    size_t count;
    double width; /* iterations, at least, of each row; 0: one */
    double walk;  /* variance per iteration of the walk with such falls */
};

/* The window from row `first` to the newest. */
struct window {
    size_t first;
    double rises, trend; /* trend: pairs that rise less pairs that fall */
    double growth, length, step; /* the highest step */
    double spread;               /* root of the mean square around the line */
    double walk; /* as rows->walk, by the steps of this window */
    bool falls;
};

/* ---- the lower envelope at a scale */

static double
time_of(const struct cm_series *series, int64_t iteration)
{
    if (iteration <= series->first_iteration) {
        return 0;
    }
    return (double)((uint64_t)iteration - (uint64_t)series->first_iteration);
}

static void
add_row(struct rows *rows, const struct row *row, double width)
{
    struct row *last = &rows->items[rows->count - (rows->count > 0)];
    if (rows->count == 0 || row->at - last->at >= width) {
        rows->items[rows->count++] = *row;
    }
    else if (row->low < last->low) {
        last->low = row->low;
        last->count = row->count;
    }
}

/* Every row has the same weight: the values as they were (width 0), or the
 * least ones of at least `width` iterations each.  Of the warm-up there is one
 * row: what is in force at its end. */
static void
read_rows(const struct cm_series *series, int64_t warmup, double width,
          struct rows *rows)
{
    struct cm_series_point point;
    rows->count = 0;
    rows->width = width;
    for (size_t i = 0; cm_series_get(series, i, &point); i++) {
        bool early = point.iteration <= warmup;
        struct row row = {
            .at = time_of(series, early ? warmup : point.iteration),
            .low = (double)(width > 0 ? point.low_bytes : point.bytes),
            .count = (double)point.count,
        };
        rows->count = early ? 0 : rows->count;
        add_row(rows, &row, width);
    }
}

static void
drop_unfinished(struct rows *rows, double now, double width)
{
    if (rows->count > 1 && now - rows->items[rows->count - 1].at < width) {
        rows->count--;
    }
}

/* A walk rises as it falls; a leak's own rises must not speak for a walk. */
static void
measure_walk(struct rows *rows)
{
    double squares = 0;
    for (size_t i = 1; i < rows->count; i++) {
        double step = rows->items[i].low - rows->items[i - 1].low;
        squares += step < 0 ? step * step : 0;
    }
    double length = rows->items[rows->count - 1].at - rows->items[0].at;
    rows->walk = length > 0 ? 2 * squares / length : 0;
}

static double
level_at(const struct rows *rows, double at)
{
    size_t i = rows->count - 1;
    while (i > 0 && rows->items[i - 1].at >= at) {
        i--;
    }
    const struct row *next = &rows->items[i];
    if (i == 0 || next->at <= at) {
        return next->low;
    }
    const struct row *last = next - 1;
    double part = (at - last->at) / (next->at - last->at);
    return last->low + part * (next->low - last->low);
}

/* ---- the tests of one window */

static double
sign(double number)
{
    return (number > 0) - (number < 0);
}

/* Is there a long time without any change before the window?  What was before
 * that is another story. */
static bool
is_quiet(const struct rows *rows, const struct window *window, double stride)
{
    const struct row *before = &rows->items[window->first];
    size_t gaps = rows->count - 2 - window->first;
    double pace =
        gaps ? (rows->items[rows->count - 1].at - before[1].at) / (double)gaps
             : 0;
    return gaps >= 3
           && before[1].at - before->at > 6 * (pace > stride ? pace : stride);
}

/* The window grows by the row `window->first`, older than the rest. */
static void
widen(const struct rows *rows, struct window *window)
{
    const struct row *row = &rows->items[window->first], *rest = row + 1;
    double step = rest->low - row->low;
    for (size_t i = 0; i < rows->count - window->first - 1; i++) {
        window->trend += sign(rest[i].low - row->low);
    }
    window->rises += step > 0;
    window->falls |= step < 0;
    window->step = step > window->step ? step : window->step;
}

/* How far the rows are from the line through the window's ends, and how far
 * each step is from that line's. */
static void
measure_scatter(const struct rows *rows, struct window *window)
{
    const struct row *first = &rows->items[window->first];
    double squares = 0, steps = 0, slope = window->growth / window->length;
    for (size_t i = window->first + 1; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        double off = row->low - first->low - slope * (row->at - first->at);
        double step = row->low - row[-1].low - slope * (row->at - row[-1].at);
        squares += off * off;
        steps += step * step;
    }
    window->spread = sqrt(squares / (double)(rows->count - window->first));
    window->walk = steps / window->length;
}

static void
measure(const struct rows *rows, struct window *window)
{
    const struct row *first = &rows->items[window->first];
    const struct row *last = &rows->items[rows->count - 1];
    double level = last->low < last[-1].low ? last->low : last[-1].low;
    window->growth = (window->falls ? level : last->low) - first->low;
    window->length = last->at - first->at;
    if (window->growth > 0 && window->length > 0) {
        measure_scatter(rows, window);
    }
}

static bool
has_trend(const struct rows *rows, const struct window *window, double min_z)
{
    double n = (double)(rows->count - window->first);
    double variance = n * (n - 1) * (2 * n + 5) / 18;
    return window->trend - 1 >= min_z * sqrt(variance);
}

/* What never fell does not wander: there the steps may be as they like. */
static bool
beats_a_walk(const struct cm_series *series, const struct rows *rows,
             const struct window *window, double factor)
{
    double walk = rows->walk;
    if (series->fell && window->walk > walk) {
        walk = window->walk;
    }
    double life = rows->items[rows->count - 1].at - rows->items[0].at;
    double bound = 2 * log(life > 8 ? life : 8);
    return window->growth >= factor * sqrt(bound * walk * window->length);
}

static bool
beats_the_past(const struct cm_series *series, const struct window *window)
{
    return window->length >= 2.0 * series->longest_taken_back
           || window->growth >= 2.0 * (double)series->deepest_fall;
}

static bool
is_steady(const struct rows *rows, const struct window *window,
          const struct cm_verdict_rules *rules)
{
    double end = rows->items[rows->count - 1].at;
    double top = rows->items[window->first].low + window->growth;
    double younger = top - level_at(rows, end - window->length / 2);
    double quarter = top - level_at(rows, end - window->length / 4);
    return window->spread <= rules->max_spread * window->growth
           && window->step <= window->growth / 2
           && younger - rules->share_errors * window->spread
                  >= rules->min_share * window->growth
           && quarter + window->spread >= 0.1 * window->growth;
}

/* Looks back from the window for a time of faster growth, until one without
 * any.  A single high step is no growth: state that is made once. */
static bool
was_faster(const struct rows *rows, const struct window *window,
           double slowing)
{
    const struct row *first = &rows->items[window->first];
    double now = window->growth / window->length, steps = 0;
    for (size_t i = window->first; i > 0; i--) {
        const struct row *row = &rows->items[i - 1];
        double step = row[1].low - row->low, length = first->at - row->at;
        steps += step > 5 * now * (row[1].at - row->at) ? step : 0;
        double before = first->low - row->low - steps;
        if (length >= window->length / 2 && before < now / 3 * length) {
            return false;
        }
        if (length >= window->length / 4
            && before > now * slowing * length + 2 * window->spread) {
            return true;
        }
    }
    return false;
}

/* Equal steps at equal distances need fewer of them. */
static bool
is_staircase(const struct rows *rows, const struct window *window)
{
    if (window->falls || window->length < 24) {
        return false;
    }
    double steps = (double)(rows->count - 1 - window->first);
    double height = window->growth / steps, width = window->length / steps;
    for (size_t i = window->first + 1; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        if (fabs(row->low - row[-1].low - height) > 0.1 * height
            || fabs(row->at - row[-1].at - width) > 0.1 * width) {
            return false;
        }
    }
    return steps >= 4;
}

static bool
is_leak(const struct cm_series *series, const struct rows *rows,
        const struct window *window, const struct cm_verdict_rules *rules)
{
    const double min_z_quiet = 2.9;
    return window->growth >= (double)rules->min_bytes
           && window->growth >= rules->min_bytes_per_iteration * window->length
           && (is_staircase(rows, window)
               || (window->rises >= rules->min_rises
                   && has_trend(rows, window,
                                window->falls ? rules->min_z_noisy
                                              : min_z_quiet)
                   && is_steady(rows, window, rules)))
           && beats_a_walk(series, rows, window, rules->walk_factor)
           && beats_the_past(series, window)
           && !was_faster(rows, window, rules->slowing);
}

static bool
is_growing(const struct cm_series *series, const struct rows *rows,
           const struct window *window, const struct cm_verdict_rules *rules)
{
    const double min_z = 1.5;
    return window->rises >= 3
           && window->growth >= (double)rules->min_bytes / 16
           && has_trend(rows, window, min_z)
           && beats_a_walk(series, rows, window, rules->walk_factor)
           && beats_the_past(series, window);
}

/* ---- all windows of all scales */

struct finding {
    enum cm_verdict verdict;
    const struct rows *rows; /* of its scale; borrowed */
    struct window window;
};

/* The longest window with the gravest verdict of this scale. */
static void
try_windows(const struct cm_series *series, struct rows *rows,
            const struct cm_verdict_rules *rules, struct finding *found)
{
    struct window window = {.first = rows->count - 1};
    measure_walk(rows);
    while (window.first-- > 0) {
        if (is_quiet(rows, &window, series->stride)) {
            break;
        }
        widen(rows, &window);
        measure(rows, &window);
        enum cm_verdict verdict = CM_VERDICT_OK;
        if (window.growth > 0 && window.length > 0) {
            verdict = is_leak(series, rows, &window, rules) ? CM_VERDICT_LEAK
                      : is_growing(series, rows, &window, rules)
                          ? CM_VERDICT_GROWING
                          : CM_VERDICT_OK;
        }
        if (verdict > found->verdict
            || (verdict == found->verdict
                && window.rises > found->window.rises)) {
            found->verdict = verdict;
            found->window = window;
            found->rows = rows;
        }
    }
}

/* The last rises came at some pace; three times that without one is an end. */
static bool
is_over(const struct rows *rows, double now)
{
    double last = 0, rises = 0, fourth = 0;
    for (size_t i = rows->count; i-- > 1 && rises < 5;) {
        if (rows->items[i].low > rows->items[i - 1].low) {
            fourth = rows->items[i].at;
            last = rises == 0 ? fourth : last;
            rises++;
        }
    }
    double pace = rises > 1 ? (last - fourth) / (rises - 1) : 0;
    return rises == 0 || now - last > 3 * pace + 2;
}

/* Sparse changes look alike at several scales. */
static bool
says_more(const struct cm_series *series, const struct rows *scales,
          size_t scale)
{
    return scales[scale].count >= 4
           && (scale == 0 || (scale == 1 && series->stride > 1)
               || scales[scale].count + 1 < scales[scale - 1].count);
}

static void
find_growth(const struct cm_series *series, double now,
            const struct cm_verdict_rules *rules,
            struct rows scales[static SCALES], struct finding *found)
{
    bool over = is_over(&scales[0], now);
    double width = series->stride > 1 ? series->stride : 2;
    for (size_t scale = 0; scale < SCALES; scale++, width *= 2) {
        if (scale > 0) {
            read_rows(series, rules->warmup, width, &scales[scale]);
            drop_unfinished(&scales[scale], now, width);
        }
        if (!over && says_more(series, scales, scale)) {
            try_windows(series, &scales[scale], rules, found);
        }
    }
    if (found->verdict == CM_VERDICT_LEAK && rules->bounded) {
        found->verdict = CM_VERDICT_GROWING;
    }
}

/* ---- what is said of it */

_Static_assert((int)ROWS <= (int)CM_SLOPE_POINTS, "a window fits");

static double
slope_of(const struct rows *rows, size_t first, bool of_count)
{
    double x[ROWS] = {0}, y[ROWS] = {0};
    for (size_t i = first; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        x[i - first] = row->at;
        y[i - first] = of_count ? row->count : row->low;
    }
    return cm_slope(x, y, rows->count - first);
}

/* From the window back as long as four rows together rise at a quarter of its
 * pace, then forth over the rows that do not rise. */
static size_t
start_of(const struct rows *rows, const struct window *window, double slope)
{
    size_t start = window->first;
    while (start > 0) {
        size_t four = start > 4 ? start - 4 : 0;
        const struct row *from = &rows->items[four];
        const struct row *to = &rows->items[start];
        if (to->low - from->low < slope / 4 * (to->at - from->at)) {
            break;
        }
        start--;
    }
    while (start + 2 < rows->count) {
        const struct row *row = &rows->items[start];
        if (row[1].low - row->low >= slope / 4 * (row[1].at - row->at)) {
            break;
        }
        start++;
    }
    return start;
}

/* The last iteration before it grew.  A value stands still until the next one,
 * unless what was between them was thinned out. */
static double
since_of(const struct cm_series *series, const struct rows *rows, size_t start)
{
    const struct row *row = &rows->items[start];
    bool whole =
        rows->width == 0
        && (series->stride <= 1 || start + CM_SERIES_RECENT >= rows->count);
    if (start > 0 && row->low > row[-1].low
        && row->at - row[-1].at > 2.0 * series->stride) {
        return row->at - 1;
    }
    return whole && start + 1 < rows->count ? row[1].at - 1 : row->at;
}

/* What grows at an even pace grows more in each longer slice: by the clock, in
 * first slices.  [How long one is by now] */
static double
read_by_clock(const struct cm_series *series, int64_t now,
              const struct cm_verdict_rules *rules, struct rows *rows)
{
    double base = (double)rules->sliced, slices = (double)now - base;
    double first = (double)series->first_iteration - base;
    for (struct row *row = rows->items; row < rows->items + rows->count;
         row++) {
        row->at = cm_iterations_clock(first + row->at);
    }
    return cm_iterations_clock(slices + 1) - cm_iterations_clock(slices);
}

static void
describe(const struct cm_series *series, const struct finding *found,
         int64_t now, const struct cm_verdict_rules *rules,
         struct cm_verdict_result *result)
{
    struct rows rows = *found->rows;
    double width =
        rules->slices ? read_by_clock(series, now, rules, &rows) : 1;
    double slope = slope_of(&rows, found->window.first, false);
    size_t start = start_of(&rows, &found->window, slope);
    result->since_iteration =
        (int64_t)((uint64_t)series->first_iteration
                  + (uint64_t)since_of(series, found->rows, start));
    result->bytes_per_iteration = slope * width;
    result->count_per_iteration =
        slope_of(&rows, found->window.first, true) * width;
    /* Half at four rises, nine tenths at thirty-six. */
    result->rises = found->window.rises;
    double sure = 1 - 1 / (1 + result->rises / 4);
    result->confidence = found->verdict == CM_VERDICT_LEAK ? sure : sure / 2;
}

/* From what it was at the end of the warm-up, or from nothing where it came
 * later, to a level that it no longer leaves. */
static bool
has_settled(const struct cm_series *series, const struct rows *rows,
            const struct cm_verdict_rules *rules)
{
    const struct row *items = rows->items;
    bool new = series->first_iteration > rules->warmup && !series->goes_on;
    double base = new ? 0 : items[0].low, least = DBL_MAX;
    size_t from = rows->count - (rows->count + 1) / 2;
    for (size_t i = from; i < rows->count; i++) {
        least = items[i].low < least ? items[i].low : least;
    }
    return least - base >= (double)rules->min_bytes && least >= base * 1.1;
}

void
cm_verdict(const struct cm_series *series, int64_t now,
           const struct cm_verdict_rules *rules,
           struct cm_verdict_result *result)
{
    struct rows scales[SCALES];
    struct finding found = {.verdict = CM_VERDICT_OK};
    *result = (struct cm_verdict_result){.since_iteration = now};
    if (cm_series_count(series) == 0) {
        return;
    }
    read_rows(series, rules->warmup, 0, &scales[0]);
    find_growth(series, time_of(series, now), rules, scales, &found);
    result->verdict = found.verdict;
    if (found.verdict == CM_VERDICT_LEAK) {
        describe(series, &found, now, rules, result);
    }
    else if (cm_lingers(series, now, rules, result)) {
        return;
    }
    else if (found.verdict == CM_VERDICT_GROWING) {
        describe(series, &found, now, rules, result);
    }
    else if (has_settled(series, &scales[1], rules)) {
        result->verdict = CM_VERDICT_SETTLED;
    }
}

const char *
cm_verdict_text(enum cm_verdict verdict)
{
    static const char *const texts[] = {
        [CM_VERDICT_OK] = "ok",           [CM_VERDICT_GROWING] = "growing",
        [CM_VERDICT_LEAK] = "leak",       [CM_VERDICT_LINGERING] = "lingering",
        [CM_VERDICT_SETTLED] = "settled",
    };
    return (size_t)verdict < sizeof(texts) / sizeof(texts[0]) ? texts[verdict]
                                                              : "unknown";
}
