/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FAULT_H
#define CM_FAULT_H

/* What lies in one container and is mended by one change is one fault of the
 * program, however many lines allocate it: a loss that is kept with its graph
 * keeps what every layer has made, and detach() frees all of it.
 *
 * The growth of one fault lies side by side in the document, the line with
 * most bytes first; it stands for all of them.  Nothing of this is in the
 * file. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leak.h"

/* Largest fault first; sets what the growth says of its fault.  Two different
 * faults are taken for one if 64 bits of a hash are equal. */
void cm_faults_sort(struct cm_leak *leak);

/* How many lines a fault has, by its first; in a document that was never
 * sorted each is alone. */
static inline uint32_t
cm_fault_lines(const struct cm_leak_growth *first)
{
    return first->fault_lines > 1 ? first->fault_lines : 1;
}

/* Its bytes at most, all lines together. */
static inline uint64_t
cm_fault_peak(const struct cm_leak_growth *first)
{
    return first->fault_lines > 1 ? first->fault_peak : first->peak_bytes;
}

/* A fault as if one line had allocated all of it; borrows from its first,
 * whose series stays that of one line. */
struct cm_leak_growth cm_fault_sum(const struct cm_leak_growth *first);
/* What all of it held at the iterations of its first line: as many points as
 * that has, the caller's to free. */
enum cm_status cm_fault_series(const struct cm_leak_growth *first,
                               int64_t (**result)[CM_LEAK_SERIES_NUMBERS])
    CM_CHECKED;
/* Whether one of its lines has one of these fingerprints. */
bool cm_fault_is_among(const struct cm_leak_growth *first,
                       const uint64_t *fingerprints, size_t count);

#endif
