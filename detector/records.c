/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Three tables of one make.  A record is a head of a few 32-bit words and a
 * tail, an array of plain words (stores, methods, frames); two records are
 * equal when head and tail are.  Heads stand in a table, tails in one arena,
 * an index for each kind finds an equal record.
 * Adding: one hash over head and tail, under the lock; reading: without. */

#include "records.h"

#include <string.h>

#include "alloc.h"
#include "arena.h"
#include "index.h"
#include "lock.h"
#include "table.h"

/* Tails are compared and hashed as bytes: they must have no padding (hence a
 * flag of 32 bits in cm_store). */
_Static_assert(sizeof(struct cm_store) == 10 * sizeof(uint32_t), "padding");
_Static_assert(sizeof(struct cm_frame) == 2 * sizeof(uint32_t), "padding");
_Static_assert(sizeof(struct cm_code_id) == sizeof(uint32_t), "padding");

enum { HEAD_WORDS = 6 };

/* What two equal records share. */
struct key {
    uint32_t head[HEAD_WORDS];
    const void *tail;
    size_t tail_bytes;
};

struct kind {
    struct cm_table table;
    struct cm_index index;
    /* Before use written, then read only: */
    struct key (*key_of)(const void *record);
    void (*set_tail)(void *record, const void *tail);
};

struct cm_records {
    struct cm_lock lock;
    size_t max_bytes;       /* written before use, then read only */
    struct cm_texts *texts; /* owned; has a lock of its own */
    struct cm_arena tails;  /* guarded by lock */
    struct kind codes, types, sites, sources; /* adding guarded by lock */
};

static struct key
code_key(const void *record)
{
    const struct cm_code *code = record;
    return (struct key){
        .head = {code->filename.index, code->name.index,
                 code->qualified_name.index, code->first_line, code->library,
                 code->store_count},
        .tail = code->stores,
        .tail_bytes = code->store_count * sizeof(*code->stores),
    };
}

static void
set_code_tail(void *record, const void *tail)
{
    ((struct cm_code *)record)->stores = tail;
}

static struct key
type_key(const void *record)
{
    const struct cm_type *type = record;
    return (struct key){
        .head = {type->name.index, type->module.index, type->library,
                 type->unweakable, type->method_count},
        .tail = type->methods,
        .tail_bytes = type->method_count * sizeof(*type->methods),
    };
}

static void
set_type_tail(void *record, const void *tail)
{
    ((struct cm_type *)record)->methods = tail;
}

static struct key
site_key(const void *record)
{
    const struct cm_site *site = record;
    return (struct key){
        .head = {site->cut, site->frame_count},
        .tail = site->frames,
        .tail_bytes = site->frame_count * sizeof(*site->frames),
    };
}

static void
set_site_tail(void *record, const void *tail)
{
    ((struct cm_site *)record)->frames = tail;
}

static struct key
source_key(const void *record)
{
    const struct cm_source *source = record;
    return (struct key){.head = {source->filename.index, source->length},
                        .tail = source->bytes,
                        .tail_bytes = source->length};
}

static void
set_source_tail(void *record, const void *tail)
{
    ((struct cm_source *)record)->bytes = tail;
}

struct cm_records *
cm_records_new(size_t max_bytes)
{
    struct cm_records *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->texts = cm_texts_new(max_bytes / 2);
    if (self->texts == NULL || cm_lock_init(&self->lock) != CM_OK) {
        cm_texts_free(self->texts);
        cm_free(self);
        return NULL;
    }
    self->max_bytes = max_bytes - max_bytes / 2;
    self->codes = (struct kind){.table.item_bytes = sizeof(struct cm_code),
                                .key_of = code_key,
                                .set_tail = set_code_tail};
    self->types = (struct kind){.table.item_bytes = sizeof(struct cm_type),
                                .key_of = type_key,
                                .set_tail = set_type_tail};
    self->sites = (struct kind){.table.item_bytes = sizeof(struct cm_site),
                                .key_of = site_key,
                                .set_tail = set_site_tail};
    self->sources = (struct kind){.table.item_bytes = sizeof(struct cm_source),
                                  .key_of = source_key,
                                  .set_tail = set_source_tail};
    return self;
}

static void
release_kind(struct kind *kind)
{
    cm_table_release(&kind->table);
    cm_index_release(&kind->index);
}

void
cm_records_free(struct cm_records *self)
{
    if (self == NULL) {
        return;
    }
    cm_lock_release(&self->lock);
    release_kind(&self->codes);
    release_kind(&self->types);
    release_kind(&self->sites);
    release_kind(&self->sources);
    cm_arena_release(&self->tails);
    cm_texts_free(self->texts);
    cm_free(self);
}

struct cm_texts *
cm_records_texts(const struct cm_records *self)
{
    return self->texts;
}

struct wanted {
    const struct kind *kind;
    struct key key;
};

static bool
is_wanted(const void *context, uint32_t number)
{
    const struct wanted *wanted = context;
    const struct kind *kind = wanted->kind;
    struct key key = kind->key_of(cm_table_get(&kind->table, number));
    return memcmp(key.head, wanted->key.head, sizeof(key.head)) == 0
           && key.tail_bytes == wanted->key.tail_bytes
           && (key.tail_bytes == 0
               || memcmp(key.tail, wanted->key.tail, key.tail_bytes) == 0);
}

static size_t
kind_bytes(const struct kind *kind)
{
    return kind->table.bytes
           + kind->index.capacity * sizeof(struct cm_index_slot);
}

/* Before: the lock is held. */
static bool
has_room(const struct cm_records *self, const struct kind *kind,
         size_t tail_bytes)
{
    size_t used = sizeof(*self) + self->tails.bytes + kind_bytes(&self->codes)
                  + kind_bytes(&self->types) + kind_bytes(&self->sites)
                  + kind_bytes(&self->sources);
    size_t needed = kind->table.item_bytes + 2 * sizeof(struct cm_index_slot);
    return used < self->max_bytes && needed < self->max_bytes - used
           && tail_bytes < self->max_bytes - used - needed;
}

/* Before: the lock is held and no equal record is there.  All that can fail
 * is done before anything is changed. */
static enum cm_status
add_new(struct cm_records *self, struct kind *kind, const void *record,
        uint32_t hash, const struct key *key, uint32_t *number)
{
    if (!has_room(self, kind, key->tail_bytes)) {
        return CM_LIMIT;
    }
    enum cm_status status = cm_index_reserve(&kind->index);
    if (status != CM_OK) {
        return status;
    }
    void *item;
    status = cm_table_reserve(&kind->table, &item);
    if (status != CM_OK) {
        return status;
    }
    const void *tail = NULL;
    if (key->tail_bytes > 0) {
        tail = cm_arena_copy(&self->tails, key->tail, key->tail_bytes);
        if (tail == NULL) {
            return CM_NO_MEMORY;
        }
    }
    memcpy(item, record, kind->table.item_bytes);
    kind->set_tail(item, tail);
    *number = cm_table_commit(&kind->table);
    cm_index_put(&kind->index, hash, *number);
    return CM_OK;
}

static enum cm_status
add(struct cm_records *self, struct kind *kind, const void *record,
    uint32_t *result)
{
    struct wanted wanted = {kind, kind->key_of(record)};
    struct key *key = &wanted.key;
    uint32_t hash = cm_hash(0, key->head, sizeof(key->head));
    hash = cm_hash(hash, key->tail, key->tail_bytes);
    enum cm_status status = CM_OK;
    cm_lock_take(&self->lock);
    uint32_t number = cm_index_find(&kind->index, hash, is_wanted, &wanted);
    if (number == 0) {
        status = add_new(self, kind, record, hash, key, &number);
    }
    cm_lock_give(&self->lock);
    if (status == CM_OK) {
        *result = number;
    }
    return status;
}

enum cm_status
cm_records_add_code(struct cm_records *self, const struct cm_code *code,
                    struct cm_code_id *result)
{
    return add(self, &self->codes, code, &result->index);
}

enum cm_status
cm_records_add_type(struct cm_records *self, const struct cm_type *type,
                    struct cm_type_id *result)
{
    return add(self, &self->types, type, &result->index);
}

enum cm_status
cm_records_add_site(struct cm_records *self, const struct cm_site *site,
                    struct cm_site_id *result)
{
    return add(self, &self->sites, site, &result->index);
}

enum cm_status
cm_records_add_source(struct cm_records *self, const struct cm_source *source)
{
    uint32_t number;
    return source->length <= CM_RECORDS_MAX_SOURCE
               ? add(self, &self->sources, source, &number)
               : CM_LIMIT;
}

const struct cm_source *
cm_records_source(const struct cm_records *self, struct cm_text_id filename)
{
    const struct cm_source *found = NULL, *source;
    for (uint32_t number = 1;
         (source = cm_table_get(&self->sources.table, number)) != NULL;
         number++) {
        if (cm_text_same(source->filename, filename)) {
            found = source;
        }
    }
    return found;
}

uint32_t
cm_records_code_count(const struct cm_records *self)
{
    return atomic_load_explicit(&self->codes.table.count,
                                memory_order_acquire);
}

const struct cm_code *
cm_records_code(const struct cm_records *self, struct cm_code_id id)
{
    static const struct cm_code none;
    const struct cm_code *code = cm_table_get(&self->codes.table, id.index);
    return code != NULL ? code : &none;
}

const struct cm_type *
cm_records_type(const struct cm_records *self, struct cm_type_id id)
{
    static const struct cm_type none;
    const struct cm_type *type = cm_table_get(&self->types.table, id.index);
    return type != NULL ? type : &none;
}

const struct cm_site *
cm_records_site(const struct cm_records *self, struct cm_site_id id)
{
    static const struct cm_site none;
    const struct cm_site *site = cm_table_get(&self->sites.table, id.index);
    return site != NULL ? site : &none;
}
