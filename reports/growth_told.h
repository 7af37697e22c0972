/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_TOLD_H
#define CM_GROWTH_TOLD_H

/* What a person was told of growth: the list in the document is replaced at
 * each look, so this outlives it.  Not guarded: one thread at a time. */

#include <stddef.h>
#include <stdint.h>

#include "leak.h"
#include "ledger.h"

/* More different faults are not told. */
#define CM_GROWTH_TOLD_MAX 4096

struct cm_growth_told_entry {
    uint64_t fingerprint, bytes; /* bytes when it was last told */
};

/* A zeroed value is valid and empty. */
struct cm_growth_told {
    struct cm_growth_told_entry *items; /* owned */
    size_t count, capacity;
};
void cm_growth_told_release(struct cm_growth_told *self);

/* Appends the fingerprints of faults (fault.h) none of whose lines was ever
 * told, or whose bytes are twice what they were then.  Of growth that is not
 * sure nobody is told. */
enum cm_status cm_growth_announce(struct cm_growth_told *self,
                                  const struct cm_leak *leak,
                                  struct cm_ledger_news *news) CM_CHECKED;
/* Whether the document has a fault of growth: worth a report. */
bool cm_growth_has_fault(const struct cm_leak *leak);

#endif
