/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DIGEST_H
#define CM_DIGEST_H

/* What becomes of frozen heaps in the traced process: each is analysed, its
 * findings are folded into one document, the report file is written when it is
 * due, and warnings wait to be said.  Needs no Python; every call may come from
 * any thread.
 *
 * The analysis runs outside the lock, and so does the disk: the lock guards the
 * document and the warnings, and is never held while calling out.  Who has the
 * file written (cm_digest_add, _find, _exhausted, _exhausted_all, _write) waits
 * for the disk; all others do not, and may hold the GIL.
 *
 * A fork does not wait for it: a child that was forked while it was held has
 * an empty document, and every call is legal there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/heap.h"
#include "../detector/records.h"
#include "../graph/finding.h"
#include "buffer.h"
#include "growth_use.h"
#include "memory_use.h"

struct cm_digest;
struct cm_exhausted_use;
struct cm_leak_looks;

/* `records` is borrowed and outlives the result. */
struct cm_digest *cm_digest_new(struct cm_records *records);
void cm_digest_free(struct cm_digest *self);

/* Who and where: keys host, python, torch, cumem, interceptor,
 * allocator_hook.  Unknown keys are ignored. */
void cm_digest_describe(struct cm_digest *self, const char *key,
                        const char *value);
/* Keys pid, rank, world_size, iteration. */
void cm_digest_number(struct cm_digest *self, const char *key, int64_t value);
/* Where the memory of one device is (memory_use.h).  With asked_bytes, memory
 * ran out: then the report is written even when nothing is found. */
void cm_digest_device(struct cm_digest *self, const struct cm_device_use *use);
/* Replaces the list of what no Python object explains; the largest are kept.
 * Once memory ran out, to be called only with what was held at that moment. */
enum cm_status cm_digest_held(struct cm_digest *self,
                              const struct cm_held *items, size_t count)
    CM_CHECKED;
/* One row for a device's table of iterations: bytes allocated when it began,
 * when it ended, at most in it; -1: not known. */
void cm_digest_iteration(struct cm_digest *self, const char *device,
                         int64_t number, int64_t start, int64_t end,
                         int64_t peak);
/* Replaces the list of what grows (growth_use.h).  A fault that is new, or has
 * doubled since it was named, makes the report due and is a warning once that
 * is written (cm_digest_write), unless nobody is to be told yet. */
enum cm_status cm_digest_growth(struct cm_digest *self,
                                const struct cm_growth_use *items,
                                size_t count, bool aloud) CM_CHECKED;
/* One point of a device's timeline; all of a process come with the same
 * categories, in the same order. */
void cm_digest_timeline_add(struct cm_digest *self,
                            const struct cm_timeline_use *point);
/* The report was asked for: it is due, even when nothing is found. */
void cm_digest_demand(struct cm_digest *self);
void cm_digest_suppress(struct cm_digest *self, const char *path);
/* `path` NULL: no report file.  Warnings name findings of at least
 * `min_bytes` at once. */
void cm_digest_output(struct cm_digest *self, const char *path, bool warn,
                      uint64_t min_bytes);

/* Analyses `heap`; with `recorded` its findings are folded into the document
 * of the process.  `findings` is zeroed before, and the caller's to release;
 * others may have the same items: they are read only. */
enum cm_status cm_digest_find(struct cm_digest *self,
                              const struct cm_heap *heap, bool recorded,
                              struct cm_findings *findings) CM_CHECKED;
/* The same, recorded, where nobody wants the findings themselves. */
enum cm_status cm_digest_add(struct cm_digest *self,
                             const struct cm_heap *heap) CM_CHECKED;
/* Appends a leak.json document of these heaps' findings alone. */
enum cm_status cm_digest_document(struct cm_digest *self,
                                  const struct cm_heap *heaps,
                                  const struct cm_findings *findings,
                                  size_t count, struct cm_buffer *document)
    CM_CHECKED;
/* Appends the document of the process as it is now, as the file would be. */
enum cm_status cm_digest_export(struct cm_digest *self,
                                struct cm_buffer *document) CM_CHECKED;
/* Whether automatic collection is switched off, as last seen. */
void cm_digest_collector_off(struct cm_digest *self, bool off);
/* What was looked at unasked, all so far, in a run that began at `began_ns`
 * (CLOCK_MONOTONIC; 0: not known); what is written has the run's length. */
void cm_digest_looks(struct cm_digest *self, const struct cm_leak_looks *looks,
                     uint64_t began_ns);
/* Memory ran out: written at once.  Whoever is warned hears of it, and of all
 * that is found until then, in one text at the next call; from the second
 * time on of each as it comes, with where the memory is and why it ran out
 * where that differs.  Before: the device is as it was then. */
enum cm_status cm_digest_exhausted(struct cm_digest *self,
                                   const struct cm_exhausted_use *use)
    CM_CHECKED;
void cm_digest_exhausted_all(struct cm_digest *self);
/* One row for the table of collections. */
void cm_digest_collection(struct cm_digest *self, int generation,
                          uint64_t duration_us, uint64_t collected,
                          uint64_t device_bytes);
void cm_digest_lost(struct cm_digest *self, uint64_t events, uint64_t nodes,
                    const char *reason);

/* Writes the report if it is due (`now`: in any case, if there is anything to
 * say), and has what grows said.  CM_OK also when nothing was due. */
enum cm_status cm_digest_write(struct cm_digest *self, bool now) CM_CHECKED;
/* Returns new: the oldest warning that nobody has taken, or NULL.  To be
 * freed with cm_free().  `finding`, if not NULL: whether it tells of one that
 * cyclereport would fail on. */
char *cm_digest_take_warning(struct cm_digest *self, bool *finding);
bool cm_digest_warns(struct cm_digest *self);
/* Returns new: path of the report that was written, or NULL. */
char *cm_digest_report_path(struct cm_digest *self);

struct cm_digest_counts {
    uint64_t heaps, findings, reports_written, write_errors, no_memory;
    uint64_t dead_bytes_peak;
};
void cm_digest_counts(struct cm_digest *self, struct cm_digest_counts *result);

#endif
