/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A table that only grows, and an index by the pair's hash. */

#include "origins.h"

#include <stdbool.h>

#include "../detector/alloc.h"
#include "../detector/index.h"
#include "../detector/lock.h"
#include "../detector/table.h"

struct cm_origins {
    struct cm_lock lock;
    struct cm_table table; /* of struct cm_origin */
    struct cm_index index; /* guarded by lock */
    uint32_t most;
};

struct wanted {
    const struct cm_table *table;
    struct cm_origin origin;
};

struct cm_origins *
cm_origins_new(uint32_t most)
{
    struct cm_origins *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    if (cm_lock_init(&self->lock) != CM_OK) {
        cm_free(self);
        return NULL;
    }
    self->table.item_bytes = sizeof(struct cm_origin);
    self->most = most;
    return self;
}

void
cm_origins_free(struct cm_origins *self)
{
    if (self != NULL) {
        cm_lock_release(&self->lock);
        cm_index_release(&self->index);
        cm_table_release(&self->table);
        cm_free(self);
    }
}

static bool
is_same(const void *context, uint32_t number)
{
    const struct wanted *wanted = context;
    const struct cm_origin *origin = cm_table_get(wanted->table, number);
    return origin->site.index == wanted->origin.site.index
           && origin->library == wanted->origin.library;
}

/* Before: the lock is held, and it is not there. */
static uint32_t
add(struct cm_origins *self, uint32_t hash, struct cm_origin origin)
{
    void *item;
    if (self->index.count >= self->most
        || cm_index_reserve(&self->index) != CM_OK
        || cm_table_reserve(&self->table, &item) != CM_OK) {
        return 0;
    }
    *(struct cm_origin *)item = origin;
    uint32_t number = cm_table_commit(&self->table);
    cm_index_put(&self->index, hash, number);
    return number;
}

uint32_t
cm_origins_number(struct cm_origins *self, struct cm_origin origin)
{
    uint32_t key[] = {origin.site.index, origin.library};
    uint32_t hash = cm_hash(0, key, sizeof(key));
    struct wanted wanted = {&self->table, origin};
    if ((origin.site.index | origin.library) == 0) {
        return 0;
    }
    cm_lock_take(&self->lock);
    uint32_t number = cm_index_find(&self->index, hash, is_same, &wanted);
    if (number == 0) {
        number = add(self, hash, origin);
    }
    cm_lock_give(&self->lock);
    return number;
}

struct cm_origin
cm_origins_get(const struct cm_origins *self, uint32_t number)
{
    const struct cm_origin *origin = cm_table_get(&self->table, number);
    return origin != NULL ? *origin : (struct cm_origin){0};
}
