/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_RECURRENCE_H
#define CM_RECURRENCE_H

/* A leak in a loop gives the same heap again and again, but for its addresses
 * and its time; and heaps that are alike have the same findings.  So the
 * findings of the last few small heaps are kept, and looked up by a picture of
 * the heap: every number of it that the analysis reads, compared as a whole.
 *
 * A finding costs some 40,000 instructions to find and 2,000 to look up.
 * Not for several threads at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "finding.h"

enum {
    CM_RECURRENCES = 8,
    CM_RECURRENCE_WORDS = 4096, /* of a picture; a larger heap is not kept */
};

struct cm_known_heap {
    uint64_t *picture; /* owned; NULL: free */
    size_t words;
    struct cm_findings findings; /* owned */
};

/* Zeroed before first use. */
struct cm_recurrence {
    struct cm_known_heap known[CM_RECURRENCES];
    size_t next;       /* to be replaced */
    uint64_t *scratch; /* owned: the picture of the heap that is asked for */
    size_t scratch_words, scratch_capacity;
};

void cm_recurrence_release(struct cm_recurrence *self);
/* True: *result is what was kept for a heap that is alike, and the caller's to
 * release.  False: not known, or no memory. */
bool cm_recurrence_recall(struct cm_recurrence *self,
                          const struct cm_heap *heap,
                          struct cm_findings *result);
/* Shares the findings, which nobody changes any more.  Without memory nothing
 * is kept. */
void cm_recurrence_keep(struct cm_recurrence *self, const struct cm_heap *heap,
                        struct cm_findings *findings);

#endif
