/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FINDING_H
#define CM_FINDING_H

/* From a frozen heap to what a person is told: each cyclic strongly connected
 * component that holds device memory, folded by fingerprint, with the edge to
 * cut and the sentence of advice.
 *
 * Pure: reads the heap and the records, allocates only its result. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/heap.h"
#include "../detector/records.h"

enum cm_class {
    CM_CLASS_COLLECTABLE = 0,
    CM_CLASS_FINALIZER,     /* a finalizer (__del__) stands in the component */
    CM_CLASS_UNCOLLECTABLE, /* no collector will free it */
    CM_CLASS_FROZEN,        /* behind gc.freeze() */
    CM_CLASS_RESURRECTED,   /* a finalizer brought it back: not dead */
};

/* Where a reference was made. */
struct cm_place {
    struct cm_code_id code;
    uint32_t line;
    bool certain; /* false: a candidate, shown with "probably" */
};

#define CM_MAX_PLACES 3

struct cm_bytes_on {
    struct cm_text_id device;
    uint64_t bytes;
};

struct cm_finding {
    uint64_t fingerprint; /* folds equal cycles, see fingerprint.h */
    enum cm_class class;
    /* One representative, as node indices of the heap.  Owned.  Bounded, see
     * outline.h: `freed` says what goes, however much of it is listed. */
    uint32_t *component; /* the cycle's strongly connected component */
    size_t component_count;
    size_t round_count; /* the first of them, in order, go once round through
                          * cut_edge; from the cycle's owner when it is there */
    uint32_t *via;      /* nodes between the component and its payload */
    size_t via_count;
    uint32_t *payload; /* device-backed nodes that it holds, largest first */
    size_t payload_count;
    uint32_t *freed; /* storages that go with it and are counted here */
    size_t freed_count;
    uint32_t *held_elsewhere; /* storages with uses outside: in no total */
    size_t held_elsewhere_count;
    uint64_t
        *shared_with; /* fingerprints that hold some of the same storages */
    size_t shared_count;
    bool carries_shared; /* the shared bytes are counted here */

    uint32_t count;               /* equal cycles in this heap */
    uint64_t bytes_each;          /* freed with the representative */
    uint64_t bytes_total;         /* freed with all `count` of them */
    struct cm_bytes_on *bytes_on; /* owned: bytes_total by device; equal
                                   * cycles may lie on several */
    size_t device_count, device_capacity;

    uint32_t cut_edge;   /* heap edge index; 0: none, see `advice` */
    const char *rule;    /* constant: name of the row of the rule table */
    char *advice;        /* owned: one sentence for this cycle, its names in */
    char *no_cut_reason; /* owned: why no line is given; NULL when one is */
    struct cm_place places[CM_MAX_PLACES];
    uint32_t place_count;
    char *library; /* owned: the installed package that the whole cycle lives
                    * in, NULL when something of it is the user's */
};

struct cm_findings {
    struct cm_finding *items; /* owned; largest bytes_total first */
    size_t count;
    _Atomic uint32_t *owners; /* of the items, who all read only; NULL: one */
    uint32_t left_out;        /* kinds of cycles beyond CM_MAX_FINDINGS */
    uint64_t dead_bytes;      /* of all findings, each storage once */
};

#define CM_MAX_FINDINGS 1000

/* What it owns; its place belongs to the array. */
void cm_finding_release(struct cm_finding *self);
/* A zeroed value is valid and empty. */
void cm_findings_release(struct cm_findings *self);

/* Both own the items then, each in a thread of its own if need be.  On failure
 * `result` is empty. */
enum cm_status cm_findings_share(struct cm_findings *from,
                                 struct cm_findings *result) CM_CHECKED;

/* Cost: O(nodes + edges) time and space.  On failure `result` is empty. */
enum cm_status cm_findings_find(const struct cm_heap *heap,
                                const struct cm_records *records,
                                struct cm_findings *result) CM_CHECKED;

#endif
