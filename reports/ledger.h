/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LEDGER_H
#define CM_LEDGER_H

/* What a process has found so far, as a document: the findings of one
 * collection after the other, equal ones folded by fingerprint over time.  Of
 * equal cycles one representative is kept, with the source lines that a
 * person needs; nothing refers to the heap or the records afterwards.
 *
 * Not guarded: one thread at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/heap.h"
#include "../graph/finding.h"
#include "leak.h"
#include "source.h"

/* Different findings that are kept; more are counted in leak.lost_events. */
#define CM_LEDGER_MAX_CYCLES 4096
/* Objects and references kept of one representative: those nearest to the
 * cut, and the ways from it to itself and to the largest payload.  What is
 * left out is counted in leak.lost_nodes. */
#define CM_LEDGER_MAX_VERTICES 2000
#define CM_LEDGER_MAX_EDGES 10000

/* Findings that a person should hear of now: seen for the first time, or with
 * total bytes twice what they were when last named here. */
struct cm_ledger_item {
    uint64_t fingerprint, peak_bytes, total_bytes;
    bool first;   /* of this fingerprint */
    bool library; /* the cut lies in an installed package */
};
struct cm_ledger_news {
    struct cm_ledger_item *items; /* owned */
    size_t count, capacity;
};
void cm_ledger_news_release(struct cm_ledger_news *self);

struct cm_ledger {
    struct cm_leak leak; /* owned; may be sorted, and its process fields
                          * filled, by the caller */
    struct cm_sources sources;
    uint32_t *site_map; /* owned: records' site -> document's */
    size_t site_capacity;
};

/* `self` is zeroed before. */
enum cm_status cm_ledger_init(struct cm_ledger *self) CM_CHECKED;
void cm_ledger_release(struct cm_ledger *self);

/* Adds the findings of one heap; `news` (may be NULL) is appended to.  After a
 * failure the document is whole and lacks what was not added. */
enum cm_status cm_ledger_add(struct cm_ledger *self,
                             const struct cm_heap *heap,
                             const struct cm_findings *findings,
                             const struct cm_records *records,
                             struct cm_ledger_news *news) CM_CHECKED;

/* The document's entry for a device, made when there is none; NULL: no
 * memory.  The pointer is good until the next call. */
struct cm_leak_device *cm_ledger_device(struct cm_ledger *self,
                                        const char *name);

#endif
