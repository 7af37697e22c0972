/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Texts stand in an arena, a table says where each begins, an index finds an
 * equal one.  Adding: one hash, one comparison, under the lock; getting: a
 * table read without it. */

#include "text.h"

#include <stdbool.h>
#include <string.h>

#include "alloc.h"
#include "arena.h"
#include "index.h"
#include "lock.h"
#include "table.h"

struct text {
    const char *bytes; /* borrowed from the arena */
    uint32_t length;
};

struct cm_texts {
    struct cm_lock lock;
    size_t max_bytes;      /* written before use, then read only */
    struct cm_arena arena; /* guarded by lock */
    struct cm_index index; /* guarded by lock */
    struct cm_table table; /* adding guarded by lock; holds struct text */
};

/* What one text costs beside its bytes: its record, its share of the index. */
enum {
    OVERHEAD_BYTES = sizeof(struct text) + 2 * sizeof(struct cm_index_slot)
};

struct wanted {
    const struct cm_table *table;
    const char *bytes;
    size_t length;
};

struct cm_texts *
cm_texts_new(size_t max_bytes)
{
    struct cm_texts *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    if (cm_lock_init(&self->lock) != CM_OK) {
        cm_free(self);
        return NULL;
    }
    self->max_bytes = max_bytes;
    self->table.item_bytes = sizeof(struct text);
    return self;
}

void
cm_texts_free(struct cm_texts *self)
{
    if (self == NULL) {
        return;
    }
    cm_lock_release(&self->lock);
    cm_arena_release(&self->arena);
    cm_index_release(&self->index);
    cm_table_release(&self->table);
    cm_free(self);
}

static bool
is_wanted(const void *context, uint32_t number)
{
    const struct wanted *wanted = context;
    const struct text *text = cm_table_get(wanted->table, number);
    return text->length == wanted->length
           && memcmp(text->bytes, wanted->bytes, wanted->length) == 0;
}

/* Before: the lock is held. */
static size_t
footprint(const struct cm_texts *self)
{
    return sizeof(*self) + self->arena.bytes + self->table.bytes
           + self->index.capacity * sizeof(struct cm_index_slot);
}

/* Before: the lock is held and the text is not in the table.  All that can
 * fail is done before anything is changed. */
static enum cm_status
add_new(struct cm_texts *self, uint32_t hash, const struct wanted *wanted,
        uint32_t *number)
{
    size_t used = footprint(self);
    if (used >= self->max_bytes
        || wanted->length + OVERHEAD_BYTES > self->max_bytes - used) {
        return CM_LIMIT;
    }
    enum cm_status status = cm_index_reserve(&self->index);
    if (status != CM_OK) {
        return status;
    }
    void *item;
    status = cm_table_reserve(&self->table, &item);
    if (status != CM_OK) {
        return status;
    }
    struct text *text = item;
    text->bytes = cm_arena_copy(&self->arena, wanted->bytes, wanted->length);
    if (text->bytes == NULL) {
        return CM_NO_MEMORY;
    }
    text->length = (uint32_t)wanted->length;
    *number = cm_table_commit(&self->table);
    cm_index_put(&self->index, hash, *number);
    return CM_OK;
}

enum cm_status
cm_texts_add(struct cm_texts *self, const char *bytes, size_t length,
             struct cm_text_id *result)
{
    if (length == 0) {
        *result = (struct cm_text_id){0};
        return CM_OK;
    }
    if (length > UINT32_MAX / 2) {
        return CM_LIMIT;
    }
    struct wanted wanted = {&self->table, bytes, length};
    uint32_t hash = cm_hash(0, bytes, length);
    enum cm_status status = CM_OK;
    cm_lock_take(&self->lock);
    uint32_t number = cm_index_find(&self->index, hash, is_wanted, &wanted);
    if (number == 0) {
        status = add_new(self, hash, &wanted, &number);
    }
    cm_lock_give(&self->lock);
    if (status == CM_OK) {
        result->index = number;
    }
    return status;
}

struct cm_text_id
cm_texts_intern(struct cm_texts *self, const char *text)
{
    struct cm_text_id id = {0};
    if (text == NULL || cm_texts_add(self, text, strlen(text), &id) != CM_OK) {
        return (struct cm_text_id){0};
    }
    return id;
}

const char *
cm_texts_get(const struct cm_texts *self, struct cm_text_id id)
{
    const struct text *text = cm_table_get(&self->table, id.index);
    return text != NULL ? text->bytes : "";
}

size_t
cm_texts_bytes(const struct cm_texts *self)
{
    /* The lock is not part of what the caller may not change. */
    struct cm_lock *lock = (struct cm_lock *)&self->lock;
    cm_lock_take(lock);
    size_t bytes = footprint(self);
    cm_lock_give(lock);
    return bytes;
}
