/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_INTERCEPTOR_H
#define CM_INTERCEPTOR_H

/* One contract, three ways to see what Python's collector finds dead:
 *   sentinel.c  primary: reads the collector's own unreachable list from a
 *               weak reference's callback, before any finalizer or tp_clear;
 *   saveall.c   fallback: gc.DEBUG_SAVEALL at start, tp_clear at stop;
 *   scan.c      read-only: what a collection would free now, on demand.
 *
 * What holds for all: called with the GIL held; no user code runs; no exception
 * is left set and none reaches the user; no object is kept alive past the
 * call; every failure is counted, none is fatal. */

#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../detector/status.h"

/* Dead objects at one moment.  Borrowed; valid during the sink's call only:
 * nothing in it has been cleared yet, nor finalized (saveall: finalizers have
 * run). */
struct cm_garbage {
    PyObject *const *objects; /* GC-tracked, each once */
    size_t count;
    const struct cm_type_set *types; /* of the objects; NULL: not noted */
    int generation;                  /* of the collection; -1: a scan */
    bool frozen; /* a scan's: dead, but gc.freeze() keeps a collection from
                     * freeing it */
    bool uncollectable; /* a scan's: dead, but held through C++, where no
                         * collection looks */
};

/* Garbage was found.  Called with the GIL, inside the collection: must not
 * allocate a GC object, run Python code, or raise. */
typedef void cm_garbage_sink(void *context, const struct cm_garbage *garbage);
/* The collection is over; Python code may run here, user callbacks too, and
 * an exception goes to sys.unraisablehook.  Called at every stop but those
 * that `heed` did not ask for. */
struct cm_collection {
    int generation;
    uint64_t duration_ns; /* so far, where `heed` is asked */
    int64_t collected;    /* as gc's info says; -1: not known */
    bool seen; /* the garbage was delivered to the sink (or was empty) */
};
typedef void cm_collection_sink(void *context,
                                const struct cm_collection *collection);

/* Starts and stops of collections that a sink wants to hear of. */
enum cm_heed { CM_HEED_NOTHING, CM_HEED_STOP /* of this one */, CM_HEED_ALL };

struct cm_sinks {
    cm_garbage_sink *garbage;
    cm_collection_sink *stop;
    /* At start, before anything else: cheap upkeep (notice torch, ...). */
    void (*start)(void *context);
    /* After `garbage`, within the collection: what must be told of it and the
     * next ones.  NULL: all.  As `garbage`. */
    enum cm_heed (*heed)(void *context, const struct cm_collection *so_far);
    void *context;
};

struct cm_interceptor_counts {
    uint64_t collections; /* starts seen */
    uint64_t unheard;     /* of them: seen at rest, without their starts */
    uint64_t walks;       /* lists read and proved */
    uint64_t bad_walks;   /* lists that failed their proof: discarded */
    uint64_t unfired;     /* collections in which our callback did not run */
    uint64_t lost_stops;  /* starts whose stop never came */
    uint64_t stood_aside; /* left alone: the user's own gc debug flags would
                           * show what we do (sentinel: DEBUG_COLLECTABLE), or
                           * are what we do (saveall: DEBUG_SAVEALL) */
    uint64_t nested;      /* starts inside another collection */
    uint64_t too_deep;    /* nested deeper than there is room for */
    uint64_t objects;     /* garbage objects seen */
    uint64_t no_memory;
    bool attached; /* our callback is still in gc.callbacks, or at rest */
    bool resting;  /* sentinel: not in gc.callbacks until there is need */
    bool first;    /* sentinel: runs before users' weakref callbacks */
    bool flags;    /* sentinel: gc's debug flags are read, not asked for */
};

struct cm_interceptor; /* one per interpreter, per kind */

struct cm_interceptor_kind {
    const char *name; /* "sentinel", "saveall" */
    /* [new; raises]: puts its callback at gc.callbacks[0].  `module_state` is
     * where heap types made for it may be cached by the implementation. */
    struct cm_interceptor *(*install)(PyObject *module,
                                      const struct cm_sinks *sinks);
    /* [none; never]: takes everything back, also inside a collection.  Accepts
     * NULL. */
    void (*remove)(struct cm_interceptor *self);
    /* Now and then, outside a collection: what user code has undone of our
     * place in the collector's lists is done again.  NULL: nothing to do. */
    void (*check)(struct cm_interceptor *self);
    void (*counts)(const struct cm_interceptor *self,
                   struct cm_interceptor_counts *result);
    /* NULL when this build and version can be served, else a sentence. */
    const char *(*unsupported)(void);
};

extern const struct cm_interceptor_kind cm_sentinel;
extern const struct cm_interceptor_kind cm_saveall;

/* The read-only scan.  Delivers one cm_garbage (generation -1), possibly
 * empty, to `sink`; where frozen objects are seen and some are dead, another
 * with `frozen` set; where there is what no collection frees, one with
 * `uncollectable` set.  Runs no collection, frees nothing, keeps
 * nothing.  Returns 0; -1 when memory ran out or the build cannot scan (no
 * exception is set).  `objects_scanned` may be NULL. */
int cm_scan(cm_garbage_sink *sink, void *context, size_t *objects_scanned);
struct cm_scan_counts {
    size_t objects;    /* looked at */
    uint64_t negative; /* shown by tp_traverse more often than they have
                        * references: taken for live */
    bool by_heads;     /* the lists were read by their heads; else through
                        * PyUnstable_GC_VisitObjects */
};
/* As cm_scan; `counts` is written on success. */
int cm_scan_counted(cm_garbage_sink *sink, void *context,
                    struct cm_scan_counts *counts);
struct cm_trial;
struct cm_objects_array;
/* Looks among objects that a scan has marked for those that no collection
 * frees (uncollectable.h); NULL, as at first: nobody does. */
typedef enum cm_status cm_scan_look(const struct cm_trial *collector,
                                    PyObject *const *objects, size_t count,
                                    struct cm_objects_array *result);
void cm_scan_look_further(cm_scan_look *look);
/* Whether an object is wanted, asked while the collector's lists are read and
 * perhaps twice: allocates no GC object and runs no code of the program. */
typedef bool cm_scan_pick(void *context, PyObject *object);
/* All tracked objects that `pick` says yes to, borrowed: valid until the GIL
 * is given away.  `result` is empty before, and after a failure. */
enum cm_status cm_scan_tracked(cm_scan_pick *pick, void *context,
                               struct cm_objects_array *result) CM_CHECKED;
/* NULL when this build can scan, else a sentence. */
const char *cm_scan_unsupported(void);
/* What the scan sees of gc.freeze()d objects: "seen", "counted", with the
 * number in *frozen (gc.get_freeze_count()). */
const char *cm_scan_frozen(size_t *frozen);

#endif
