/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_REPRESENTATIVE_H
#define CM_REPRESENTATIVE_H

/* Copies one finding out of its heap into the document: its objects,
 * references, storages, stacks and places, and nothing that refers back.  For
 * the ledger only. */

#include "../detector/heap.h"
#include "../graph/finding.h"
#include "buffer.h"
#include "leak.h"
#include "source.h"

/* References kept of one representative, those to the cut aside. */
#define CM_COPY_MAX_EDGES 10000

struct cm_copy {
    struct cm_leak *leak;
    const struct cm_heap *heap;
    const struct cm_records *records;
    uint32_t *vertex_of;  /* owned: per heap node, its vertex or 0 */
    uint32_t *storage_of; /* owned: per heap storage, the document's or 0 */
    uint32_t *order;      /* owned: this finding's nodes, in order */
    size_t order_count, order_capacity;
    struct cm_sources sources; /* owned */
    struct cm_buffer text;     /* owned: scratch */
};

/* `self` is zeroed before.  Costs O(heap), so once per heap, and only when a
 * finding of it is new. */
enum cm_status cm_copy_init(struct cm_copy *self, struct cm_leak *leak,
                            const struct cm_heap *heap,
                            const struct cm_records *records) CM_CHECKED;
void cm_copy_release(struct cm_copy *self);

/* Appends the representative's parts to the document and fills `cycle`.  On
 * failure the document is as it was, and `cycle` empty. */
enum cm_status cm_copy_finding(struct cm_copy *self,
                               const struct cm_finding *finding,
                               struct cm_leak_cycle *cycle) CM_CHECKED;

/* Parts, in stacks.c.  Interned as valid UTF-8; id 0 for an empty text. */
enum cm_status cm_copy_text(struct cm_copy *self, const char *text,
                            struct cm_text_id *result) CM_CHECKED;
enum cm_status cm_copy_text_id(struct cm_copy *self, struct cm_text_id text,
                               struct cm_text_id *result) CM_CHECKED;
/* A line of code with its source. */
enum cm_status cm_copy_frame(struct cm_copy *self, struct cm_code_id code,
                             uint32_t line, struct cm_leak_frame *result)
    CM_CHECKED;
/* The document's id of a stack. */
enum cm_status cm_copy_site(struct cm_copy *self, struct cm_site_id id,
                            uint32_t *result) CM_CHECKED;

#endif
