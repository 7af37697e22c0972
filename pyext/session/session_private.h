/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SESSION_PRIVATE_H
#define CM_SESSION_PRIVATE_H

/* The session's own state, for session.c and status.c alone. */

#include "session.h"

#include "../../detector/event.h"
#include "../../detector/site_growth.h"
#include "../../detector/iterations.h"
#include "../../detector/steady.h"
#include "../../reports/digest.h"
#include "../../reports/worker.h"
#include "../frameworks/devices.h"
#include "../collector/gc_switch.h"
#include "../collector/interceptor.h"
#include "looks.h"
#include "../objects/objects.h"

enum { CM_MAX_PENDING = 8, CM_MAX_SCANNED = 3 };

enum { CM_MOST_STEP_ROWS = 64 };

/* What a device held when an iteration began, ended, and at most in it. */
struct cm_step_row {
    int64_t number, start, end, peak;
    int device;
    bool counted; /* the four above are known */
    enum cm_iterations_by by;
    double seconds;
    uint64_t bytes[CM_CATEGORIES];
};

struct cm_session {
    /* What each collection reads, side by side. */
    int64_t iteration; /* the one under way; -1: none ended */
    size_t pending_count;
    uint32_t quiet_collections, rested, since_iteration;
    bool silent;                     /* a forked child */
    bool collecting;                 /* a collection is under way */
    PyObject *module;                /* borrowed: it owns us */
    PyInterpreterState *interpreter; /* borrowed */
    PyObject *deliver; /* owned: cumem._runtime._deliver, or NULL */
    struct cm_records *records;
    uint32_t sourced; /* code whose text was looked for, of linecache.h */
    struct cm_objects *objects;
    struct cm_devices *devices;
    struct cm_freezer *freezer;
    struct cm_digest *digest;
    struct cm_worker *worker;
    const struct cm_interceptor_kind *kind;
    struct cm_interceptor *interceptor; /* owned; NULL: not installed */
    struct cm_interceptor_counts past;  /* of interceptors removed since */
    const char *why;                    /* constant: why this interceptor */
    const char *described_hook; /* constant: what the document says of it */
    struct cm_heap spare;       /* empty, with room for the next one */
    struct cm_heap pending[CM_MAX_PENDING];
    bool observed, warned; /* somebody wants pages; warnings */
    bool unsaid;           /* the native thread writes what is said then */
    bool stacks;           /* allocations are known by their stacks */
    bool brief;            /* one question of other devices than observed */
    bool noticed; /* the observers of torch's accelerator are attached */
    bool used;    /* an accelerator, by whatever framework: Python was told */
    bool notice_pending;
    bool stepping;       /* torch's optimizers are heard */
    Py_ssize_t imported; /* modules at the last collection */
    bool due;            /* something waits for a collection's start */
    PyObject
        *cuda_dict; /* owned: of the module torch.cuda, once it is there */
    PyObject *cuda_key, *initialized_key; /* owned: interned names */
    PyObject *groups_key, *params_key;
    struct cm_iterations iterations;
    struct cm_steady steady;
    uint64_t considered_ns; /* when slices of time were looked at last */
    uint32_t each_tensor;   /* so many more look at the clock one by one */
    bool slice_pending; /* a slice of time is over: at the next safe point */
    bool memory_due;    /* then, too: a collection does not wait for drivers */
    int64_t looked_early; /* in this slice, while nobody was told yet */
    int64_t look_at;  /* this iteration: a verdict may have lapsed; 0: none */
    int64_t check_at; /* this one: what was bounded may be another's by now */
    struct cm_growth growth;
    bool between_turns;  /* an iteration ends just now */
    uint64_t began_ns;   /* the first iteration; 0: none yet */
    double seconds;      /* from then to the last boundary */
    double unit_seconds; /* when the program's iterations, or slices, began, */
    int64_t unit_iteration;                      /* and after which one */
    int64_t step_bytes[CM_MAX_DEVICES];          /* live when it began */
    struct cm_step_row steps[CM_MOST_STEP_ROWS]; /* not in the document yet */
    size_t step_count;
    uint64_t ended_at;  /* autograd's number where an iteration was over */
    bool collector_off; /* by the program, when that was last seen */
    struct cm_gc_switch gc_switch;
    struct cm_looks looks;
    enum cm_trigger trigger; /* of the scan under way */
    /* What is dead; what is dead but frozen; what no collection frees. */
    struct cm_heap scanned[CM_MAX_SCANNED];
    size_t scanned_count;
    uint64_t memory_not_before_ns;
    uint64_t memory_asked; /* how often */
    uint64_t frozen_heaps, dropped_heaps, no_memory, longest_freeze_ns;
};

/* Counts of an interceptor that is over and of the one in use, added up. */
void cm_session_counts(const struct cm_session *self,
                       struct cm_interceptor_counts *result);
/* A collection of ours has it switched on for its time, a question off. */
static inline void
cm_session_see_collector(struct cm_session *self)
{
    if (!self->looks.saving && !cm_gc_switch_is_held(&self->gc_switch)) {
        self->collector_off = !PyGC_IsEnabled();
    }
}

/* At an iteration's end: our place in the collector's lists. */
void cm_session_check_collector(struct cm_session *self);
/* Looks for what was imported or initialised since. */
void cm_session_notice(struct cm_session *self);
/* The same after imports, from now on, where the ends of code are heard. */
void cm_session_hear_imports(void);
/* What the devices hold by now, for the report and for what grows outside the
 * frameworks; seldom. */
void cm_session_ask_memory(struct cm_session *self);
/* The objects that stand for memory without a hook; not while one question is
 * of other devices. */
void cm_session_see_objects(struct cm_session *self);
/* [none; never] cumem._runtime._deliver(kind, payload); `payload` is taken. */
void cm_session_deliver(struct cm_session *self, const char *kind,
                        PyObject *payload);
/* Has the report written where that is due and somebody is warned; the GIL is
 * given meanwhile. */
void cm_session_write(struct cm_session *self);
/* The same by the native thread, which then has said what is new; no thread
 * waits for the disk.  False: it has much to do, or none can be had. */
bool cm_session_write_later(struct cm_session *self);
/* Says the warnings that wait. */
void cm_session_drain_warnings(struct cm_session *self);
/* The session whose interpreter torch lives in; borrowed, NULL: none. */
struct cm_session *cm_session_main(void);
bool cm_session_is_main(const struct cm_session *self);
/* This is its interpreter.  Not so in a pending call, perhaps: CPython 3.11
 * gives what a native thread adds to the one that happens to run. */
bool cm_session_is_here(const struct cm_session *self);
/* Of tags.h: a tensor was made; how many more before the next call. */
uint32_t cm_session_on_tensor(void);
/* Something can be learnt, or CUDA is initialised by now: cm_session_notice()
 * has something to do. */
bool cm_session_has_news(struct cm_session *self);
/* Tells the tags whether the allocator's hook has the stacks of all tensors
 * that count: from its first block on. */
void cm_session_know_blocks(struct cm_session *self);

#endif
