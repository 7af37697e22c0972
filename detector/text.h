/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TEXT_H
#define CM_TEXT_H

/* Interned text: each different string is stored once and named by an id.
 * Bytes are stored as they came (valid UTF-8 is the writer's duty, see
 * reports/); a text never moves and is never freed before its table.
 *
 * Invariant: id 0 is "none" and reads as "".  Adding is guarded by the
 * table's own leaf mutex; reading an id that was handed over needs no lock. */

#include <stddef.h>
#include <stdint.h>

#include "status.h"

struct cm_text_id {
    uint32_t index; /* 0: none */
};

struct cm_texts;

struct cm_texts *cm_texts_new(size_t max_bytes);
void cm_texts_free(struct cm_texts *self);

/* CM_LIMIT when the table holds max_bytes already. */
enum cm_status cm_texts_add(struct cm_texts *self, const char *bytes,
                            size_t length, struct cm_text_id *result)
    CM_CHECKED;
/* As cm_texts_add for a NUL-terminated text; on any failure id 0. */
struct cm_text_id cm_texts_intern(struct cm_texts *self, const char *text);
/* Borrowed, NUL-terminated, never NULL. */
const char *cm_texts_get(const struct cm_texts *self, struct cm_text_id id);
size_t cm_texts_bytes(const struct cm_texts *self);

static inline int
cm_text_same(struct cm_text_id a, struct cm_text_id b)
{
    return a.index == b.index;
}

#endif
