/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_TOLD_H
#define CM_GROWTH_TOLD_H

/* What a person was told of growth: the list in the document is replaced at
 * each look, so this outlives it.  Not guarded: one thread at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "leak.h"
#include "ledger.h"

/* More different faults are not told. */
#define CM_GROWTH_TOLD_MAX 4096

struct cm_growth_told_entry {
    uint64_t fingerprint, bytes; /* bytes when it was last told; 0: to be told
                                  * again when it grows again */
    uint64_t fault;              /* the fingerprint of its first line */
    uint64_t gradients; /* that linger, by names and size; 0: not known */
    uint32_t stops;     /* how often somebody heard that it stopped */
    bool leak;          /* heard of as one, and not since that it stopped */
};

/* A zeroed value is valid and empty. */
struct cm_growth_told {
    struct cm_growth_told_entry *items; /* owned */
    size_t count, capacity;
};
void cm_growth_told_release(struct cm_growth_told *self);

/* Appends the fingerprints of faults (fault.h) none of whose lines was ever
 * told, or whose bytes are twice what they were then.  The gradients of the
 * same parameters linger once, by whatever line, as they are one finding of a
 * document.  Of growth that is not sure nobody is told. */
enum cm_status cm_growth_announce(struct cm_growth_told *self,
                                  const struct cm_leak *leak,
                                  struct cm_ledger_news *news) CM_CHECKED;
/* Before what was announced is told, some time later: what is no fault any
 * more is taken out, and announced again when it grows again. */
void cm_growth_recall(struct cm_growth_told *self, const struct cm_leak *leak,
                      struct cm_ledger_news *news);
/* The news (NULL: the whole document) is told as it is now; until then nobody
 * hears that any of it stopped.  Who is told is shown no fault of fewer bytes
 * than `least`, and so need not hear that it stopped. */
void cm_growth_note_told(struct cm_growth_told *self,
                         const struct cm_leak *leak, uint64_t least,
                         const struct cm_ledger_news *news);
/* A fault that was told as a leak, and of which no line grows any more. */
struct cm_growth_stopped {
    size_t row;           /* its line with most bytes, of leak->growth */
    size_t lines;         /* how many it has in the document */
    uint64_t bytes, peak; /* of all its lines: live now, at most */
};
/* The next one from row `*at` on (0 at first), each once for each time that it
 * was told; false: there is none.  What fills and empties by turns is told
 * again as soon as it grows again only a few times, then when it has doubled. */
bool cm_growth_next_stopped(struct cm_growth_told *self,
                            const struct cm_leak *leak, size_t *at,
                            struct cm_growth_stopped *result);
/* "cumem: stopped growing: cache.py:13 fill, at 40 MiB (told as a leak
 * before)", and the end of the line. */
enum cm_status cm_growth_stopped_write(const struct cm_growth_stopped *self,
                                       const struct cm_leak *leak,
                                       struct cm_buffer *out) CM_CHECKED;
/* Whether the document has a fault of growth: worth a report. */
bool cm_growth_has_fault(const struct cm_leak *leak);

#endif
