/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "growth_unit.h"

#include <inttypes.h>
#include <string.h>

#include "../detector/iterations.h"

bool
cm_growth_has_iterations(const struct cm_leak *leak)
{
    return leak->timeline.slices_since == 0
           && strcmp(cm_leak_text(leak, leak->timeline.by), "time") != 0;
}

const char *
cm_growth_unit(const struct cm_leak *leak)
{
    return strcmp(cm_leak_text(leak, leak->timeline.by), "time") != 0
               ? "iteration"
               : "time slice";
}

const char *
cm_growth_unit_of(const struct cm_leak *leak, int64_t number)
{
    int64_t since = leak->timeline.slices_since;

    return since != 0 && number >= since ? "time slice" : cm_growth_unit(leak);
}

bool
cm_growth_same_unit(const struct cm_leak *leak, int64_t one, int64_t other)
{
    return strcmp(cm_growth_unit_of(leak, one), cm_growth_unit_of(leak, other))
           == 0;
}

/* How long the last slice would have been, had each since then lasted as long as
 * it should, and all together as they did: they end when tensors come.  0: not
 * known. */
static double
last_seconds(const struct cm_leak *leak,
             const struct cm_leak_timeline_device *device, int64_t since)
{
    int64_t slices_since = leak->timeline.slices_since;
    double before = slices_since != 0 ? (double)slices_since - 1 : 0;
    int64_t from = since > slices_since ? since : slices_since;
    size_t last = device->point_count - (device->point_count > 0), first = 0;
    double end, clock, units;

    while (first < last && device->iterations[first] < from) {
        first++;
    }
    if (first >= last) {
        return 0;
    }
    end = (double)device->iterations[last] - before;
    clock = cm_iterations_clock(end);
    units = clock
            - cm_iterations_clock((double)device->iterations[first] - before);
    return units > 0 ? (device->seconds[last] - device->seconds[first]) / units
                           * (cm_iterations_clock(end + 1) - clock)
                     : 0;
}

struct cm_growth_pace
cm_growth_pace_of(const struct cm_leak *leak, int64_t since)
{
    const struct cm_leak_timeline *timeline = &leak->timeline;
    struct cm_growth_pace pace = {cm_growth_unit_of(leak, since), 1};
    const double shortest = 0.05, longest = 1e6;
    double seconds = 0;

    for (size_t i = 0; strcmp(pace.unit, "iteration") != 0 && seconds <= 0
                       && i < timeline->device_count;
         i++) {
        seconds = last_seconds(leak, &timeline->devices[i], since);
    }
    if (seconds >= shortest && seconds < longest) {
        pace = (struct cm_growth_pace){"second", seconds};
    }
    return pace;
}

struct cm_growth_pace
cm_growth_pace_now(const struct cm_leak *leak)
{
    return cm_growth_pace_of(leak, leak->timeline.slices_since);
}

/* When that one was over; below 0: not known. */
static double
seconds_on(const struct cm_leak_timeline_device *device, int64_t number)
{
    size_t i = 0;

    while (i < device->point_count && device->iterations[i] < number) {
        i++;
    }
    return i < device->point_count ? device->seconds[i] : -1;
}

/* Of a slice of time; else below 0, as where it is not known. */
static double
seconds_at(const struct cm_leak *leak, int64_t number)
{
    const struct cm_leak_timeline *timeline = &leak->timeline;
    bool slice = strcmp(cm_growth_unit_of(leak, number), "iteration") != 0;
    double seconds = -1;

    for (size_t i = 0; slice && seconds < 0 && i < timeline->device_count;
         i++) {
        seconds = seconds_on(&timeline->devices[i], number);
    }
    return seconds >= 0.5 && seconds < 1e7 ? seconds : -1;
}

void
cm_growth_add_at(const struct cm_leak *leak, int64_t number,
                 struct cm_buffer *out)
{
    double seconds = seconds_at(leak, number);

    if (seconds >= 0) {
        cm_buffer_addf(out, " at %.0f s", seconds);
    }
    else {
        cm_buffer_addf(out, " at %s %" PRId64, cm_growth_unit_of(leak, number),
                       number);
    }
}

void
cm_growth_add_since(const struct cm_leak *leak, int64_t since,
                    struct cm_buffer *out)
{
    double seconds = seconds_at(leak, since);

    cm_buffer_addf(out, "since %s %" PRId64, cm_growth_unit_of(leak, since),
                   since);
    if (seconds >= 0) {
        cm_buffer_addf(out, " (at %.0f s)", seconds);
    }
}
