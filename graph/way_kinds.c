/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What stands on the way: steps by which a kind of holder is known, a cache, a
 * table of hooks, a default, a finalizer.  O(steps). */

#include "way.h"

static const char *
edge_of(const struct cm_holding *self, size_t i)
{
    return cm_way_text(self, cm_way_step(self, i)->edge);
}

bool
cm_way_is_module_table(const struct cm_holding *self, size_t i)
{
    static const char *const tables[] = {"._modules", "._parameters",
                                         "._buffers"};
    for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++) {
        if (strcmp(edge_of(self, i), tables[k]) == 0) {
            return cm_way_step(self, i)->species == CM_DICT;
        }
    }
    return false;
}

bool
cm_way_is_optimizer_table(const struct cm_holding *self, size_t i)
{
    return strcmp(edge_of(self, i), ".param_groups") == 0
           || strcmp(edge_of(self, i), ".state") == 0;
}

bool
cm_way_is_lru_cache(const struct cm_holding *self, size_t i)
{
    return cm_way_begins(cm_way_text(self, cm_way_step(self, i)->annotation),
                         "lru_cache of ");
}

/* What is in a container that a key or a result of it has piles up there; the
 * result may itself be that container. */
static bool
piles_up_in_cache(const struct cm_holding *self, size_t i)
{
    const struct cm_holding_step *next = cm_way_step(self, i + 1);
    bool result = next->counted && strcmp(edge_of(self, i + 1), "cache") != 0;
    return self->at <= i || (self->at == i + 1 && !result);
}

size_t
cm_way_lru_cache(const struct cm_holding *self)
{
    for (size_t i = 1; i + 1 < self->count; i++) {
        if (cm_way_is_lru_cache(self, i) && piles_up_in_cache(self, i)) {
            return i;
        }
    }
    return 0;
}

const char *
cm_way_less(const struct cm_holding *self)
{
    return self->on_host ? "numbers, or a summary of each"
                         : "numbers, or tensors on the CPU";
}

const char *
cm_way_cached(const struct cm_holding *self)
{
    size_t at = cm_way_lru_cache(self);
    return cm_way_text(self, cm_way_step(self, at)->annotation)
           + strlen("lru_cache of ");
}

static bool
is_hook_table(const struct cm_holding *self, size_t i)
{
    const char *edge = edge_of(self, i);
    size_t length = strlen(edge);
    return cm_way_step(self, i)->species == CM_DICT
           && cm_way_begins(edge, "._") && length > 6
           && strcmp(edge + length - 6, "_hooks") == 0;
}

static size_t
hooks_between(const struct cm_holding *self, size_t first, size_t last)
{
    for (size_t i = first; i + 1 < self->count && i <= last; i++) {
        if (is_hook_table(self, i) && cm_way_step(self, i)->items > 1) {
            return i;
        }
    }
    return 0;
}

uint32_t
cm_way_decorator(const struct cm_holding *self, size_t cache,
                 struct cm_place places[CM_MAX_PLACES])
{
    struct cm_code_id id = cm_way_step(self, cache)->code;
    const struct cm_code *maker = cm_records_code(self->records, id);
    if (maker->store_count == 0) {
        return 0;
    }
    places[0] = (struct cm_place){
        .code = id, .line = maker->stores[0].line, .certain = true};
    return 1;
}

size_t
cm_way_hooks(const struct cm_holding *self)
{
    return hooks_between(self, 1, self->at);
}

size_t
cm_way_hooks_behind(const struct cm_holding *self)
{
    return hooks_between(self, self->at + 1, self->count);
}

/* Handles of hooks are numbers. */
static bool
is_number_key(const char *edge)
{
    size_t digits = strspn(edge + (edge[0] == '['), "0123456789");
    return edge[0] == '[' && digits > 0 && strcmp(edge + 1 + digits, "]") == 0;
}

size_t
cm_way_lone_hook(const struct cm_holding *self)
{
    bool lone =
        self->count > 3 && cm_way_step(self, 1)->species == CM_DICT
        && cm_way_step(self, 1)->edge.index == 0
        && cm_way_is_root(self, CM_HOLDING_CPP)
        && cm_way_begins(cm_way_text(self, cm_way_step(self, 1)->annotation),
                         "collections.OrderedDict");
    return lone && cm_way_step(self, 2)->species == CM_FUNCTION
                   && is_number_key(edge_of(self, 2))
               ? 2
               : 0;
}

size_t
cm_way_default(const struct cm_holding *self)
{
    for (size_t i = 1; i < self->count; i++) {
        if (cm_way_begins(edge_of(self, i), "default ")) {
            return i;
        }
    }
    return 0;
}

size_t
cm_way_finalizer(const struct cm_holding *self)
{
    for (size_t i = 1; i + 1 < self->count; i++) {
        const char *what = cm_way_text(self, cm_way_step(self, i)->annotation);
        if (strcmp(what, "weakref.finalize._Info") == 0) {
            return self->at < i || self->at + 1 == self->count ? i : 0;
        }
    }
    return 0;
}

bool
cm_way_is_on_librarys(const struct cm_holding *self)
{
    struct cm_type_id owner = self->at > 1
                                  ? cm_way_step(self, self->at - 1)->type
                                  : (struct cm_type_id){0};
    return owner.index != 0 && self->at < self->count
           && cm_way_step(self, self->at)->role == CM_ATTRIBUTE
           && cm_records_type(self->records, owner)->library
           && !cm_way_is_of(cm_way_module(self, self->at - 1), "torch");
}

bool
cm_way_is_handed_over(const struct cm_holding *self)
{
    return cm_way_finalizer(self) != 0
           || (self->at < self->count
               && cm_way_begins(edge_of(self, self->at), "contextvar "));
}
