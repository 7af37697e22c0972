/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DIGEST_PRIVATE_H
#define CM_DIGEST_PRIVATE_H

/* The digest from inside: digest.c has findings, digest_file.c the report
 * file, digest_say.c the warnings, digest_growth.c growth and the collections,
 * digest_fork.c what a forked child finds.  Not for others. */

#include <pthread.h>

#include "../graph/recurrence.h"
#include "backlog.h"
#include "digest.h"
#include "growth_told.h"
#include "leak.h"
#include "ledger.h"
#include "suppress.h"

#define CM_DIGEST_MAX_WARNINGS 64u

/* Why memory ran out: `number` of cm_memory_why(). */
struct cm_digest_reason {
    struct cm_text_id device;
    uint64_t asked_bytes;
    int number;
};

struct cm_digest {
    struct cm_records *records; /* borrowed */
    struct cm_digest *next;     /* borrowed; of digest_fork.c, as are these */
    struct cm_leak spare;
    bool whole_at_fork;
    pthread_mutex_t lock;
    pthread_cond_t written; /* `writing` has become false */
    /* Guarded by lock, all below. */
    bool writing; /* somebody writes the file, and does not have the lock */
    struct cm_leak leak;
    struct cm_suppressions suppressions;
    struct cm_recurrence recurrence; /* of heaps that were looked at */
    char *path;                      /* owned: as asked for */
    bool warn;
    bool path_claimed; /* leak.source_path is ours to replace */
    bool dirty, urgent;
    uint64_t min_bytes, last_write_ns, interval_ns;
    uint64_t collections_seen, collection_step;
    uint64_t looks_began_ns;
    struct cm_memory_rows rows; /* of the iterations */
    struct cm_timeline_rows timeline_rows;
    struct cm_growth_told told;
    struct cm_ledger_news grown; /* of growth, not said yet */
    bool growth_unsaid;          /* nor what has stopped */
    struct cm_backlog backlog;   /* of cycles */
    bool demanded;
    bool ran_out, held_back; /* memory did; what is new is told with that */
    struct cm_digest_reason told_reason; /* of the last time */
    int write_error; /* errno of the last write; 0: it went well */
    bool told_write_error;
    char *warnings[CM_DIGEST_MAX_WARNINGS]; /* owned */
    bool finding[CM_DIGEST_MAX_WARNINGS];   /* what each of them tells of */
    size_t first_warning;
    _Atomic size_t warning_count; /* asked without the lock, too */
    struct cm_digest_counts counts;
};

enum cm_status cm_digest_make_document(struct cm_leak *leak) CM_CHECKED;
/* Before: its document is made, and all else is zeroed. */
void cm_digest_begin(struct cm_digest *self);
/* Forks see to it from now on, until it is forgotten; one that they do not
 * know may be. */
enum cm_status cm_digest_outlive_forks(struct cm_digest *self) CM_CHECKED;
void cm_digest_forget_forks(struct cm_digest *self);

/* Before: lock held; it is given while the file is written, as by all below
 * that write.  Writes the report and queues a warning of what is new.
 * What is said is in the file before, so that the file has a name. */
void cm_digest_say(struct cm_digest *self, const struct cm_ledger_news *news);
/* Before: lock held.  The same of growth: what is over by the time that it is
 * written leaves `news`, and is not said. */
void cm_digest_say_grown(struct cm_digest *self, struct cm_ledger_news *news);
/* Before: lock held.  The same of cycles, of which many wait for each other:
 * those that are told now are left in `news`. */
enum cm_status cm_digest_say_found(struct cm_digest *self,
                                   struct cm_ledger_news *news) CM_CHECKED;
/* Before: lock held.  And of all that wait. */
void cm_digest_say_rest(struct cm_digest *self);
/* Before: lock held.  And what the last list of what grows brought. */
void cm_digest_say_growth(struct cm_digest *self);
/* Before: lock held.  Writes the report if it has anything new. */
void cm_digest_write_first(struct cm_digest *self);

/* Before: lock held.  Writes the report and queues that memory ran out; `all`
 * that is known by now too, or who held most alone. */
void cm_digest_say_exhausted(struct cm_digest *self, bool all);
/* Whether why memory ran out differs from what was told the time before; it
 * is told now. */
bool cm_digest_note_reason(struct cm_digest *self);

/* Before: lock held.  For the user's standard error; false: there are too many,
 * or no memory, and the text is dropped. */
bool cm_digest_queue(struct cm_digest *self, const struct cm_buffer *text,
                     bool finding);

/* Before: lock held.  The run is as long as it is by now. */
void cm_digest_note_run(struct cm_digest *self);

#endif
