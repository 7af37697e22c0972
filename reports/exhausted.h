/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_EXHAUSTED_H
#define CM_EXHAUSTED_H

/* That memory ran out, and who held most of it then: leak->exhausted, its
 * section "exhausted" of leak.json, and the sentence for it. */

#include "buffer.h"
#include "json_write.h"
#include "leak_json_read.h"

/* What was seen, before it is in a document; the texts are borrowed. */
struct cm_exhausted_use {
    const char *error, *device; /* "" where not known */
    uint64_t asked_bytes;       /* CM_LEAK_UNKNOWN */
    const char *ways[CM_LEAK_MAX_KEPT];
    uint64_t bytes[CM_LEAK_MAX_KEPT]; /* largest first */
    size_t count;
};

/* The last time counts. */
enum cm_status cm_exhausted_set(struct cm_leak *leak,
                                const struct cm_exhausted_use *use) CM_CHECKED;
/* Nothing where memory did not run out. */
void cm_exhausted_write(struct cm_json_writer *self);
void cm_exhausted_read(struct cm_leak_reader *self);

/* NULL where memory did not run out, or on which device is not known. */
const struct cm_leak_device *cm_exhausted_device(const struct cm_leak *leak);

/* "memory ran out on cuda:0 at iteration 30: RuntimeError, 4.0 GiB asked
 * for".  Before: it did. */
void cm_exhausted_add_sentence(const struct cm_leak *leak,
                               struct cm_buffer *out);
/* "1.5 GiB: local `kept` (list, 30 items)" */
void cm_exhausted_add_kept(const struct cm_leak *leak, size_t i,
                           struct cm_buffer *out);

#endif
