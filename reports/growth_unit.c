/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "growth_unit.h"

#include <string.h>

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
cm_growth_unit_now(const struct cm_leak *leak)
{
    return cm_growth_has_iterations(leak) ? "iteration" : "time slice";
}

const char *
cm_growth_unit_of(const struct cm_leak *leak, int64_t number)
{
    int64_t since = leak->timeline.slices_since;

    return since != 0 && number >= since ? "time slice" : cm_growth_unit(leak);
}

/* 0: not known. */
static double
last_seconds(const struct cm_leak_timeline_device *device, int64_t since)
{
    size_t last = device->point_count;
    int64_t slices = 0;

    if (last-- > 1 && device->iterations[last - 1] >= since) {
        slices = device->iterations[last] - device->iterations[last - 1];
    }
    return slices > 0 ? (device->seconds[last] - device->seconds[last - 1])
                            / (double)slices
                      : 0;
}

void
cm_growth_add_per_unit(const struct cm_leak *leak, int64_t since,
                       struct cm_buffer *out)
{
    const struct cm_leak_timeline *timeline = &leak->timeline;
    const char *unit = cm_growth_unit_of(leak, since);
    const double shortest = 0.05, longest = 1e6, without_tenths = 99;
    double seconds = 0;

    cm_buffer_addf(out, " per %s", unit);
    for (size_t i = 0; strcmp(unit, "iteration") != 0 && seconds <= 0
                       && i < timeline->device_count;
         i++) {
        seconds = last_seconds(&timeline->devices[i], timeline->slices_since);
    }
    if (seconds >= shortest && seconds < longest) {
        cm_buffer_addf(out, " of %.*f s", seconds < without_tenths, seconds);
    }
}
