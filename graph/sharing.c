/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The set of groups above each component is handed down the condensation.
 * Sets are kept once in a pool and named by number: a thousand components
 * below one cycle share one number, and a union with itself or with a part
 * of itself costs nothing new.  The pool is bounded; when it is full a union
 * keeps the larger of its two sets. */

#include "sharing.h"

#include "../detector/alloc.h"

#define MAX_SETS 65536u

struct pool {
    struct cm_group_set *sets; /* owned; [0] is the empty set */
    size_t count, capacity;
};

struct pass {
    const struct cm_heap *heap;
    const struct cm_components *components;
    const uint32_t *group_of;
    struct pool pool;
    uint32_t *above;  /* owned; [components + storages + 1] set of an item */
    uint32_t *single; /* owned; [groups + 1] set that has only this group */
};

static bool
set_has(const struct cm_group_set *set, uint32_t group)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->groups[i] == group) {
            return true;
        }
    }
    return false;
}

static void
set_add(struct cm_group_set *set, uint32_t group)
{
    if (set->count < CM_MAX_SHARED && !set_has(set, group)) {
        set->groups[set->count++] = group;
    }
}

static bool
set_contains(const struct cm_group_set *set, const struct cm_group_set *part)
{
    for (uint32_t i = 0; i < part->count; i++) {
        if (!set_has(set, part->groups[i])) {
            return false;
        }
    }
    return true;
}

static enum cm_status
pool_add(struct pool *self, struct cm_group_set set, uint32_t *result)
{
    enum cm_status status = cm_grow((void **)&self->sets, &self->capacity,
                                    self->count + 1, sizeof *self->sets);

    if (status == CM_OK) {
        *result = (uint32_t)self->count;
        self->sets[self->count++] = set;
    }
    return status;
}

/* `*a` becomes the union with `b`. */
static enum cm_status
pool_unite(struct pool *self, uint32_t *a, uint32_t b)
{
    struct cm_group_set united = self->sets[*a];

    if (*a == b || set_contains(&united, &self->sets[b])) {
        return CM_OK;
    }
    if (set_contains(&self->sets[b], &united)
        || (self->count >= MAX_SETS && self->sets[b].count > united.count)) {
        *a = b;
        return CM_OK;
    }
    if (self->count >= MAX_SETS || united.count == CM_MAX_SHARED) {
        return CM_OK;
    }
    for (uint32_t i = 0; i < self->sets[b].count; i++) {
        set_add(&united, self->sets[b].groups[i]);
    }
    return pool_add(self, united, a);
}

/* The component's own group stands above all that it reaches. */
static enum cm_status
enter_component(struct pass *self, uint32_t component)
{
    uint32_t group = self->group_of[component];
    struct cm_group_set set = {.count = 1, .groups = {group}};

    if (group == 0) {
        return CM_OK;
    }
    if (self->single[group] == 0) {
        enum cm_status status =
            pool_add(&self->pool, set, &self->single[group]);

        if (status != CM_OK) {
            return status;
        }
    }
    return pool_unite(&self->pool, &self->above[component],
                      self->single[group]);
}

static enum cm_status
hand_down(struct pass *self, uint32_t component, uint32_t node)
{
    const struct cm_node *record = &self->heap->nodes[node];
    uint32_t set = self->above[component];
    enum cm_status status = CM_OK;

    for (uint32_t i = 0; i < record->edge_count && status == CM_OK; i++) {
        uint32_t head = self->heap->edges[record->first_edge + i].head;
        uint32_t below = self->components->of_node[head];

        if (below != component) {
            status = pool_unite(&self->pool, &self->above[below], set);
        }
    }
    if (record->storage.index != 0 && status == CM_OK) {
        size_t item = self->components->count + record->storage.index;

        status = pool_unite(&self->pool, &self->above[item], set);
    }
    return status;
}

static enum cm_status
hand_all_down(struct pass *self)
{
    enum cm_status status = CM_OK;
    uint32_t component = (uint32_t)self->components->count;

    for (; component > 0 && status == CM_OK; component--) {
        const uint32_t *nodes =
            cm_components_nodes(self->components, component);
        uint32_t size = cm_components_size(self->components, component);

        status = enter_component(self, component);
        for (uint32_t i = 0; i < size && status == CM_OK; i++) {
            status = hand_down(self, component, nodes[i]);
        }
    }
    return status;
}

static void
collect(const struct pass *self, const struct cm_payloads *payloads,
        struct cm_sharing *result)
{
    for (uint32_t storage = 1; storage <= self->heap->storage_count;
         storage++) {
        size_t item = self->components->count + storage;
        const struct cm_group_set *set = &self->pool.sets[self->above[item]];
        uint32_t carrier = self->group_of[payloads->carrier[storage]];

        if (set->count < 2) {
            continue;
        }
        result->carries[carrier] = true;
        for (uint32_t i = 0; i < set->count; i++) {
            for (uint32_t j = 0; j < set->count; j++) {
                if (i != j) {
                    set_add(&result->with[set->groups[i]], set->groups[j]);
                }
            }
        }
    }
}

enum cm_status
cm_sharing_find(const struct cm_heap *heap,
                const struct cm_components *components,
                const struct cm_payloads *payloads, const uint32_t *group_of,
                uint32_t groups, struct cm_sharing *result)
{
    struct pass self = {
        .heap = heap, .components = components, .group_of = group_of};
    size_t items = components->count + heap->storage_count + 1;
    uint32_t empty;
    enum cm_status status = CM_NO_MEMORY;

    *result = (struct cm_sharing){0};
    result->with = cm_calloc((size_t)groups + 1, sizeof *result->with);
    result->carries = cm_calloc((size_t)groups + 1, sizeof *result->carries);
    self.above = cm_calloc(items, sizeof *self.above);
    self.single = cm_calloc((size_t)groups + 1, sizeof *self.single);
    if (result->with == NULL || result->carries == NULL || self.above == NULL
        || self.single == NULL) {
        goto done;
    }
    status = pool_add(&self.pool, (struct cm_group_set){0}, &empty);
    if (status != CM_OK) {
        goto done;
    }
    status = hand_all_down(&self);
    if (status == CM_OK) {
        collect(&self, payloads, result);
    }
done:
    cm_free(self.pool.sets);
    cm_free(self.above);
    cm_free(self.single);
    if (status != CM_OK) {
        cm_sharing_release(result);
    }
    return status;
}

void
cm_sharing_release(struct cm_sharing *self)
{
    cm_free(self->with);
    cm_free(self->carries);
    *self = (struct cm_sharing){0};
}
