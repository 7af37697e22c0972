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
/* "iteration", or "time slice": of the run, of what goes on by now, of the one
 * with this number. */
const char *cm_growth_unit(const struct cm_leak *leak);
const char *cm_growth_unit_now(const struct cm_leak *leak);
const char *cm_growth_unit_of(const struct cm_leak *leak, int64_t number);
/* " per iteration", " per time slice of 1.6 s": of the last one; without that
 * where the timeline does not say it.  The slope is of what grows since then. */
void cm_growth_add_per_unit(const struct cm_leak *leak, int64_t since,
                            struct cm_buffer *out);

#endif
