/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MEMORY_USE_H
#define CM_MEMORY_USE_H

/* Where the memory of the devices is, as the traced process tells it, into its
 * document: bytes, frameworks and pools of each device, what no Python object
 * explains, and the bytes of each iteration.  Numbers that a file cannot hold
 * are capped; lists are bounded.
 *
 * Not guarded: one thread at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/records.h"
#include "leak.h"
#include "ledger.h" // CM_LEDGER_MAX_DEVICES

#define CM_MEMORY_MAX_FRAMEWORKS 16
#define CM_MEMORY_MAX_POOLS 64
#define CM_MEMORY_MAX_HELD 200
#define CM_MEMORY_MAX_ITERATIONS 2000

/* CM_LEAK_UNKNOWN for what is not known, in all of them. */
struct cm_framework_use {
    const char *name;
    uint64_t allocated, reserved;
};
struct cm_pool_use {
    const char *name; /* "common", "(0, 1)" */
    uint64_t reserved, allocated, requested, pending_free, largest_free;
    uint64_t segments;
    bool expandable; /* some of them are */
};

/* One device at one moment; made by cm_device_use_init(). */
struct cm_device_use {
    const char *name;
    uint64_t total, allocated, reserved, peak_allocated; /* 0: not known */
    uint64_t cached, pending_free, private_pools, outside_frameworks;
    uint64_t other_processes, free, largest_free;
    uint64_t asked_bytes; /* that an allocation which failed asked for; 0 */
    bool unasked;         /* for its pools: the program's own recorder is on */
    const struct cm_framework_use *frameworks; /* borrowed */
    size_t framework_count;
    const struct cm_pool_use *pools; /* borrowed; those that matter first */
    size_t pool_count;
};
/* Nothing is known but the name. */
void cm_device_use_init(struct cm_device_use *self, const char *name);

/* Live bytes that no Python-visible storage explains, or that a driver hook
 * saw outside the frameworks; texts may be NULL. */
struct cm_held {
    const char *device, *framework;
    const char *library;    /* of a driver allocation */
    struct cm_site_id site; /* of the records */
    bool awaited;
    uint64_t bytes, count;
};

/* Replaces what is known of the device.  After one with asked_bytes, what is
 * said of that moment stays, but for the peak, until memory runs out again:
 * that moment is what the report is read for. */
enum cm_status cm_memory_set_device(struct cm_leak *leak,
                                    const struct cm_device_use *use)
    CM_CHECKED;
/* Replaces the list; the largest are kept. */
enum cm_status cm_memory_set_held(struct cm_leak *leak,
                                  const struct cm_records *records,
                                  const struct cm_held *items, size_t count)
    CM_CHECKED;

/* How many iterations of each device one row stands for. */
struct cm_memory_rows {
    uint64_t seen[CM_LEDGER_MAX_DEVICES], step[CM_LEDGER_MAX_DEVICES];
};
/* Adds a row.  When there are too many, each row is the one of its neighbours
 * with the higher peak, so that the highest of all stays.  -1: not known. */
enum cm_status cm_memory_add_iteration(struct cm_leak *leak,
                                       struct cm_memory_rows *rows,
                                       const char *device, int64_t number,
                                       int64_t start, int64_t end,
                                       int64_t peak) CM_CHECKED;

/* Copies all of it into another document of the same process, with the stacks
 * that are named. */
enum cm_status cm_memory_copy(const struct cm_leak *from, struct cm_leak *to)
    CM_CHECKED;
/* Whether an allocation failed: worth a report without any finding. */
bool cm_memory_ran_out(const struct cm_leak *leak);

#endif
