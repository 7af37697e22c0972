/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MEMORY_HELD_H
#define CM_MEMORY_HELD_H

/* What leak->held says, by device: what no object explains of the frameworks'
 * memory, and what the driver's hook saw outside of them, by library too.  A
 * document may have as many devices as it has items: they are grouped once.
 *
 * A zeroed one is a valid empty one.  All is borrowed from the document. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leak.h"

/* The items of one device and kind, in the document's order. */
struct cm_memory_rows {
    struct cm_text_id device;
    bool driver;                            /* outside the frameworks */
    const struct cm_leak_held *const *rows; /* NULL: there is none */
    size_t count;
    uint64_t bytes; /* at most UINT64_MAX - 1, as below */
};

/* What one library holds on a device. */
struct cm_memory_library {
    const struct cm_leak_held *most; /* the first one */
    uint64_t bytes;
};

struct cm_memory_held {
    const struct cm_leak *leak;
    const struct cm_leak_held **rows; /* owned, as the arrays below */
    struct cm_memory_rows *groups;    /* by device, then kind */
    size_t group_count;
    struct cm_memory_library *libraries; /* by device, then as they come */
    size_t library_count;
    struct cm_text_id *known; /* devices of which more is known */
    size_t known_count;
};

/* Before: zeroed.  Cost: n log n in the items and devices. */
enum cm_status cm_memory_held_init(struct cm_memory_held *self,
                                   const struct cm_leak *leak) CM_CHECKED;
void cm_memory_held_release(struct cm_memory_held *self);

/* Cost of each: log n. */
struct cm_memory_rows cm_memory_held_of(const struct cm_memory_held *self,
                                        struct cm_text_id device, bool driver);
/* The first of the libraries on a device, in the order in which the document
 * comes to them, and how many there are. */
const struct cm_memory_library *cm_memory_held_libraries(
    const struct cm_memory_held *self, struct cm_text_id device,
    size_t *count);
/* Whether leak->held[at] is the first of a device of which nothing else is
 * known: the host, where nobody asks. */
bool cm_memory_held_is_alone(const struct cm_memory_held *self, size_t at);

#endif
