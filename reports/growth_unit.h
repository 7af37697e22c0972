/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_UNIT_H
#define CM_GROWTH_UNIT_H

/* What growth, and all else that has an iteration's number, is counted by:
 * iterations of the program, or slices of time where none was seen, or none was
 * any more, which get longer with the run. */

#include <stdbool.h>

#include "buffer.h"
#include "leak.h"

/* By now; false: slices of time. */
bool cm_growth_has_iterations(const struct cm_leak *leak);
/* "iteration", or "time slice": of the run, of the one with this number. */
const char *cm_growth_unit(const struct cm_leak *leak);
const char *cm_growth_unit_of(const struct cm_leak *leak, int64_t number);
bool cm_growth_same_unit(const struct cm_leak *leak, int64_t one,
                         int64_t other);
/* What the slope of something that grows since then is told by. */
struct cm_growth_pace {
    const char *unit; /* a constant: "iteration", "second", "time slice" */
    double each; /* of the slope's own unit: seconds of a slice by now; 1 */
};

/* Slices of time get longer with the run: seconds are told where the timeline
 * has them. */
struct cm_growth_pace cm_growth_pace_of(const struct cm_leak *leak,
                                        int64_t since);
/* Of what grows by now. */
struct cm_growth_pace cm_growth_pace_now(const struct cm_leak *leak);
/* " at iteration 17", " at 63 s": where the timeline has it, of a slice. */
void cm_growth_add_at(const struct cm_leak *leak, int64_t number,
                      struct cm_buffer *out);
/* "since iteration 3", "since time slice 42 (at 68 s)" */
void cm_growth_add_since(const struct cm_leak *leak, int64_t since,
                         struct cm_buffer *out);

#endif
