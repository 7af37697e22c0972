/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LEAK_H
#define CM_LEAK_H

/* The document behind leak.json: what the traced process writes and what
 * cyclereport reads.  Self-contained: it names no object, no record and no
 * heap; every text is interned in its own table and is valid UTF-8.
 *
 * Invariants (cm_leak_check): ids are positions from 1, so that id n is item
 * n - 1 of its array (use the accessors below); every id that is named exists
 * or is 0.  Filled by cm_ledger_add() in the process and by
 * cm_leak_json_read() elsewhere. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/status.h"
#include "../detector/text.h"

struct cm_leak_frame {
    struct cm_text_id filename;
    struct cm_text_id name;          /* qualified name of the function */
    struct cm_text_id source;        /* the line's text, "" when not known */
    struct cm_text_id before, after; /* up to two lines each, for the page */
    uint32_t line;
    bool library;
    bool certain; /* of a made_at place */
};

struct cm_leak_site {
    struct cm_leak_frame *frames; /* owned; innermost first */
    size_t frame_count;
    int32_t user_frame; /* index of the first frame of the user's; -1: none */
};

struct cm_leak_vertex {
    struct cm_text_id annotation, type, kind;
    uint64_t bytes;
    uint32_t site;    /* 0: none */
    uint32_t storage; /* 0: none */
};

struct cm_leak_edge {
    struct cm_text_id annotation;
    struct cm_text_id kind;        /* python, autograd, hook, saved */
    uint32_t tail, head;           /* vertices */
    struct cm_leak_frame *made_at; /* owned */
    size_t made_at_count;
};

struct cm_leak_storage {
    struct cm_text_id device;
    uint64_t address, bytes;
    uint64_t block_bytes;   /* as the allocator rounded them; 0: not known */
    int64_t stream;         /* -1: not known */
    struct cm_text_id pool; /* "" the common one; else "(0, 1)" */
    uint32_t thread;        /* the kernel's id; 0: not known */
    uint32_t site;          /* stack that allocated the memory */
    bool awaited; /* site is of the thread that waited in backward() */
    struct cm_text_id category;
    uint32_t *vertices; /* owned */
    size_t vertex_count;
};

struct cm_leak_cycle {
    uint64_t fingerprint;
    struct cm_text_id class; /* collectable, finalizer, ... */
    uint32_t *vertices;      /* owned: the component of the representative */
    size_t vertex_count;
    uint32_t *payload; /* owned: storages that go with it */
    size_t payload_count;
    uint32_t *held_elsewhere; /* owned: storages */
    size_t held_elsewhere_count;
    uint64_t *shared_with; /* owned */
    size_t shared_count;
    uint64_t bytes_each, count, peak_bytes, total_bytes;
    /* Of these, what collections freed: a scan's sight is not added to an
     * earlier one, it may be the same cycles.  Not in the file. */
    uint64_t collected_count, collected_bytes;
    int64_t first_iteration, last_iteration; /* -1: not known */
    double time;               /* seconds since the epoch, first seen */
    struct cm_text_id trigger; /* gc, scan, oom, exit, manual */
    uint32_t *cut;             /* owned: edges, the suspect first */
    size_t cut_count;
    struct cm_text_id rule, advice, no_cut_reason;
    struct cm_text_id library_package, library_link; /* "" when none */
    uint64_t announced_bytes; /* the ledger's alone, not in the file: total
                               * when the finding was last named to the user */
};

/* CM_LEAK_UNKNOWN where nobody could say. */
#define CM_LEAK_UNKNOWN UINT64_MAX

/* Bytes that one framework's allocator holds on a device. */
struct cm_leak_framework {
    struct cm_text_id name; /* "torch", "cupy", "jax", ... */
    uint64_t allocated, reserved;
};

/* One pool of an allocator: whether its free bytes lie together. */
struct cm_leak_pool {
    struct cm_text_id name; /* "common", "(0, 1)" of a graph or MemPool */
    uint64_t reserved, allocated;
    uint64_t requested; /* of allocated: what the callers asked for */
    uint64_t pending_free, largest_free;
    uint64_t segments;
    bool expandable; /* some of them are */
};

#define CM_LEAK_ITERATION_NUMBERS 4

/* Where a device's memory is; the keys of cumem.memory(). */
struct cm_leak_device {
    struct cm_text_id name;
    uint64_t total, allocated, reserved, peak_allocated;
    uint64_t cached;        /* reserved and free */
    uint64_t pending_free;  /* freed, another stream still uses it */
    uint64_t private_pools; /* reserved by CUDA graphs and MemPools */
    uint64_t outside_frameworks, other_processes, free, largest_free;
    struct cm_leak_framework *frameworks; /* owned */
    size_t framework_count;
    struct cm_leak_pool *pools; /* owned */
    size_t pool_count;
    /* Owned; four numbers an iteration: its number, bytes allocated when it
     * began, when it ended, at most in it. */
    int64_t *iterations;
    size_t iteration_count;
    bool
        unasked; /* the program's own recorder is on: its pools are not known */
    uint64_t asked_bytes; /* that an allocation which failed asked for */
    uint64_t dead_peak;   /* most dead bytes at one moment, all findings */
    int64_t dead_peak_iteration;
};

/* Live bytes that no Python-visible storage explains ("held by C++"), and
 * with CUMEM_DRIVER=1 what was allocated outside the frameworks. */
struct cm_leak_held {
    struct cm_text_id device, framework; /* "torch", "driver" */
    struct cm_text_id library; /* of a driver allocation: "libnccl.so.2" */
    uint32_t site;             /* 0: none */
    bool awaited;
    uint64_t bytes, count;
};

struct cm_leak_collection {
    int64_t iteration;
    int32_t generation;
    uint64_t duration_us, collected, device_bytes_freed;
};

/* All collections together: the list above may be thinned. */
struct cm_leak_collector {
    uint64_t seen, duration_us, longest_us, collected, device_bytes_freed;
    bool off;   /* automatic collection was switched off when last looked */
    bool known; /* false: of one event, or of another program, without them */
};

/* Scans that nobody asked for, and the collections that some of them made:
 * CUMEM_AUTO_COLLECT. */
struct cm_leak_looks {
    uint64_t count, duration_us, longest_us;
    uint64_t skipped; /* wanted, and put off: they would have cost too much */
    uint64_t collections, saved_bytes;
    uint64_t growth_count, growth_duration_us; /* at who holds what grows */
    uint64_t run_us; /* of the run, in which that was; 0: not known */
};

#define CM_LEAK_MAX_KEPT 3

/* Who held most when memory ran out. */
struct cm_leak_kept {
    struct cm_text_id way; /* "`train.cache` (dict, 9 items)" */
    uint64_t bytes;        /* that would go with it */
};

struct cm_leak_exhausted {
    bool known; /* memory ran out; else all is empty */
    int64_t iteration;
    struct cm_text_id error, device; /* "RuntimeError", "cuda:0"; "" */
    uint64_t asked_bytes;            /* CM_LEAK_UNKNOWN */
    struct cm_leak_kept kept[CM_LEAK_MAX_KEPT];
    size_t kept_count;
};

/* From a named root to what grows: what an object is ("train.py:80 main", "list
 * of 409"), and how the one before holds it ("local losses", "[0]"; "" for the
 * root). */
struct cm_leak_holder {
    struct cm_text_id annotation, edge;
};

#define CM_LEAK_SERIES_NUMBERS 3

/* What one line of code allocates of one category, over the iterations. */
struct cm_leak_growth {
    uint64_t fingerprint; /* of the functions, the line and the category */
    uint32_t site;        /* stack that allocates; 0: none */
    bool awaited;         /* site is of the thread that waited */
    struct cm_text_id category; /* parameter, gradient, optimizer state,
                                 * saved for backward, input, other,
                                 * outside the frameworks */
    struct cm_text_id device;
    struct cm_text_id verdict;     /* growing, leak, lingering, settled, ok */
    bool bounded;                  /* to an end, so no leak; not in the file */
    bool unsure;                   /* whether it has stopped; nor is this */
    struct cm_leak_holder *holder; /* owned */
    size_t holder_count;
    size_t holder_at;         /* of it, where they pile up; 0: not known */
    int64_t holder_iteration; /* when it was seen, where that was before the
                               * numbers were read; else -1 */
    uint64_t retained_bytes;  /* that go when that reference goes;
                              * CM_LEAK_UNKNOWN */
    struct cm_leak_frame *made_at; /* owned: where it is filled */
    size_t made_at_count;
    double bytes_per_iteration, count_per_iteration;
    int64_t since_iteration;                   /* -1: not known */
    uint64_t bytes, count;                     /* live now */
    uint64_t peak_bytes;                       /* live at most */
    int64_t (*series)[CM_LEAK_SERIES_NUMBERS]; /* owned: iteration, count,
                                                * bytes; in order */
    size_t series_count;
    uint64_t autograd_depth;    /* nodes behind one of the objects */
    double confidence;          /* of the verdict, 0 to 1 */
    int64_t iterations_to_full; /* -1: not known */
    double seconds_to_full;     /* below 0: not known */
    struct cm_text_id rule, advice;
    struct cm_text_id *names; /* owned: "layer1.0.weight.grad" */
    size_t name_count;
    struct cm_text_id library_package, library_link; /* "" when none */
    /* Of the fault that it is a line of: set by cm_leak_sort(), not in the
     * file, see fault.h. */
    uint64_t fault, fault_peak; /* its key, 0: of this alone; its bytes */
    uint32_t fault_lines;       /* at its first line: how many; else 0 */
};

#define CM_LEAK_MAX_CATEGORIES 16

/* The live bytes of one device over the iterations. */
struct cm_leak_timeline_device {
    struct cm_text_id name;
    struct cm_text_id *categories; /* owned */
    size_t category_count;
    int64_t *iterations; /* owned, as below: of each point, never falling */
    double *seconds;     /* since the start */
    uint64_t *bytes;     /* category_count a point */
    size_t point_count, point_capacity;
};

struct cm_leak_timeline {
    struct cm_text_id by; /* step, optimizer, time; "" when none */
    int64_t slices_since; /* from this iteration on, nothing stepped; or 0 */
    struct cm_leak_timeline_device *devices; /* owned */
    size_t device_count, device_capacity;
};

struct cm_leak {
    struct cm_texts *texts; /* owned */
    int64_t pid;
    int64_t rank, world_size; /* -1: none */
    struct cm_text_id host, python, torch, cumem;
    struct cm_text_id interceptor, allocator_hook;
    int64_t iteration;
    uint64_t lost_events, lost_nodes;
    struct cm_text_id lost_reason;
    struct cm_leak_device *devices; /* owned, as the arrays below */
    size_t device_count, device_capacity;
    struct cm_leak_held *held; /* most bytes first */
    size_t held_count, held_capacity;
    struct cm_leak_site *sites;
    size_t site_count, site_capacity;
    struct cm_leak_vertex *vertices;
    size_t vertex_count, vertex_capacity;
    struct cm_leak_edge *edges;
    size_t edge_count, edge_capacity;
    struct cm_leak_storage *storages;
    size_t storage_count, storage_capacity;
    struct cm_leak_cycle *cycles;
    size_t cycle_count, cycle_capacity;
    struct cm_leak_growth *growth;
    size_t growth_count, growth_capacity;
    int64_t growth_iteration; /* of its look; -1: not known; not in the file */
    struct cm_leak_timeline timeline;
    struct cm_leak_collection *collections;
    size_t collection_count, collection_capacity;
    struct cm_leak_collector collector;
    struct cm_leak_looks looks;
    struct cm_leak_exhausted exhausted;
    char
        *source_path; /* owned: file it was read from or written to, or NULL */
    uint32_t *site_map; /* owned; the ledger's alone, not in the file: the
                         * records' stack -> the document's */
    size_t site_map_capacity;
};

/* `self` is zeroed before; holds its text table after. */
enum cm_status cm_leak_init(struct cm_leak *self) CM_CHECKED;
/* Accepts a zeroed or half-built document. */
void cm_leak_release(struct cm_leak *self);
/* What one cycle owns; `self` itself belongs to the document. */
void cm_leak_cycle_release(struct cm_leak_cycle *self);
/* A device of which nothing is known but that it is there. */
void cm_leak_device_init(struct cm_leak_device *self);
/* What one device owns. */
void cm_leak_device_release(struct cm_leak_device *self);
/* What one of them owns. */
void cm_leak_growth_release(struct cm_leak_growth *self);
void cm_leak_timeline_device_release(struct cm_leak_timeline_device *self);
void cm_leak_timeline_release(struct cm_leak_timeline *self);
/* NULL when every invariant holds, else a constant text. */
const char *cm_leak_check(const struct cm_leak *self);
/* Cycles by peak_bytes, growth by that of its fault and then its own, largest
 * first, equal ones by fingerprint; what is held by bytes, equal ones by
 * site. */
void cm_leak_sort(struct cm_leak *self);
/* The first reference to cut; NULL: there is none, or its lines are not
 * known. */
const struct cm_leak_edge *cm_leak_known_cut(
    const struct cm_leak *self, const struct cm_leak_cycle *cycle);
/* NULL: none bears it. */
const struct cm_leak_cycle *cm_leak_cycle_of(const struct cm_leak *self,
                                             uint64_t fingerprint);
/* The stack that allocated the memory of `storage` as `vertex` has it (each
 * may be 0): the memory's own where that names a frame of the user's or the
 * object has none either, else the object's.  0: none. */
uint32_t cm_leak_alloc_site(const struct cm_leak *self, uint32_t storage,
                            uint32_t vertex);

/* Before: the id exists. */
static inline const struct cm_leak_site *
cm_leak_site_at(const struct cm_leak *self, uint32_t id)
{
    return &self->sites[id - 1];
}
static inline const struct cm_leak_vertex *
cm_leak_vertex_at(const struct cm_leak *self, uint32_t id)
{
    return &self->vertices[id - 1];
}
static inline const struct cm_leak_edge *
cm_leak_edge_at(const struct cm_leak *self, uint32_t id)
{
    return &self->edges[id - 1];
}
static inline const struct cm_leak_storage *
cm_leak_storage_at(const struct cm_leak *self, uint32_t id)
{
    return &self->storages[id - 1];
}

static inline const char *
cm_leak_text(const struct cm_leak *self, struct cm_text_id id)
{
    return cm_texts_get(self->texts, id);
}

/* So many are done.  Fewer than before: slices of time were counted until
 * something stepped, and their numbers name no iteration any more. */
void cm_leak_set_iteration(struct cm_leak *leak, int64_t value);

/* Of some collections a part was read only: what was dead is no less than what
 * is told. */
static inline bool
cm_leak_is_partial(const struct cm_leak *self)
{
    return self->lost_nodes != 0 || self->lost_events != 0;
}

#endif
