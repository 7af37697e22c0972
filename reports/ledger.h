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

#include <stddef.h>
#include <stdint.h>

#include "../detector/heap.h"
#include "../graph/finding.h"
#include "leak.h"

/* Different findings that are kept; more are counted in leak.lost_events. */
#define CM_LEDGER_MAX_CYCLES 4096
#define CM_LEDGER_MAX_DEVICES 64

/* Fingerprints of what a person should hear of now: findings seen for the
 * first time, or whose total bytes are twice what they were when last named
 * here.  What came back to life (resurrected) is never named. */
struct cm_ledger_news {
    uint64_t *fingerprints; /* owned */
    size_t count, capacity;
};
void cm_ledger_news_release(struct cm_ledger_news *self);
/* Appends what `from` has, and empties it. */
enum cm_status cm_ledger_news_move(struct cm_ledger_news *self,
                                   struct cm_ledger_news *from) CM_CHECKED;

/* Adds the findings of one heap to the document, which the caller may sort,
 * write and describe (process, devices) meanwhile; `news` (may be NULL) is
 * appended to.  After a failure the document is whole and lacks what was not
 * added. */
enum cm_status cm_ledger_add(struct cm_leak *leak, const struct cm_heap *heap,
                             const struct cm_findings *findings,
                             const struct cm_records *records,
                             struct cm_ledger_news *news) CM_CHECKED;

/* The document's entry for a device, made when there is none, with nothing
 * known of its memory; NULL: no memory, or too many devices.  The pointer is good until the next call. */
struct cm_leak_device *cm_ledger_device(struct cm_leak *leak,
                                        const char *name);

#endif
