/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "helped.h"

#include "alias.h"
#include "emptying.h"
#include "way.h"

/* return items[-n:], or items = items[-n:] before that; with `anew` also
 * `return []`. */
static bool
returns_part(const struct cm_holding *self, const struct cm_alias *alias,
             bool anew)
{
    const char *name = cm_way_text(self, alias->name);
    for (uint32_t i = 0; i < alias->code->store_count; i++) {
        const struct cm_store *store = &alias->code->stores[i];
        /* return torch.cat([items, x])[-n:] names none */
        bool made = store->owner.index == 0
                    && (store->trimmed || (anew && store->empty));
        bool returned = store->kind == CM_STORE_RETURN
                        && (made || cm_way_is(self, store->owner, name));
        bool set = store->kind == CM_STORE_LOCAL && store->trimmed
                   && cm_way_is(self, store->name, name);
        if (returned || set) {
            return true;
        }
    }
    return false;
}

/* What the call that makes the value of this store is given: by name if that is
 * the place, else its first argument; NULL: that has no name. */
static const struct cm_store *
handed_to_maker(const struct cm_holding *self, const struct cm_code *code,
                uint32_t at, const char *name)
{
    const struct cm_store *set = &code->stores[at], *first = NULL;
    for (uint32_t i = at; i-- > 0;) {
        const struct cm_store *store = &code->stores[i];
        bool its = store->line == set->line && store->kind == CM_STORE_HAND
                   && cm_text_same(store->name, set->by);
        if (its && cm_emptying_is_about(self, store, name)) {
            return store;
        }
        if (its && store->decides == 0 && store->owner.index != 0) {
            first = store;
        }
    }
    return first;
}

/* z of `z = f(y)` above. */
static bool
is_made_above(const struct cm_code *code, uint32_t at, struct cm_text_id name)
{
    bool made = false;
    for (uint32_t i = 0; i < at; i++) {
        const struct cm_store *store = &code->stores[i];
        if (store->kind == CM_STORE_LOCAL && cm_text_same(store->name, name)) {
            made = store->made;
        }
    }
    return made;
}

/* What the first argument goes by in each function of that name. */
static void
add_first_parameters(const struct cm_holding *self, struct cm_text_id name,
                     struct cm_aliases *all)
{
    for (size_t i = 0; i < self->code_count + self->helper_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        struct cm_text_id first = {0};
        if (!code->library && cm_text_same(code->name, name)) {
            first = cm_emptying_parameter_at(self, code, 0, true);
        }
        if (first.index != 0) {
            cm_aliases_add(all, code, first);
        }
    }
}

/* x = last(x), but not x = merge(x, last(x)); x = last(torch.cat([x, y])), and
 * z of z = torch.cat([x, y]) in place of that. */
bool
cm_helped_leaves_part(const struct cm_holding *self,
                      const struct cm_code *code, uint32_t at,
                      const char *name)
{
    const struct cm_store *set = &code->stores[at];
    struct cm_aliases all = {.count = 0};
    bool part = false, itself = false;
    if (set->by.index != 0) {
        const struct cm_store *handed = handed_to_maker(self, code, at, name);
        itself = handed != NULL && cm_emptying_is_about(self, handed, name);
        if (itself) {
            cm_emptying_add_parameters(self, handed, &all);
        }
        else if (handed == NULL || is_made_above(code, at, handed->owner)) {
            add_first_parameters(self, set->by, &all);
        }
    }
    for (size_t i = 0; i < all.count; i++) {
        part |= returns_part(self, &all.items[i], itself);
    }
    return part;
}

static bool
is_listed(const struct cm_text_id *names, size_t count, struct cm_text_id name)
{
    size_t i = 0;
    while (i < count && !cm_text_same(names[i], name)) {
        i++;
    }
    return i < count;
}

size_t
cm_helped_names(const struct cm_holding *self, struct cm_text_id *names,
                size_t capacity)
{
    size_t count = 0;
    bool asked = cm_way_step(self, self->at)->counted
                 || cm_way_is_category(self, CM_HOLDING_LARGER);
    for (size_t i = 0; asked && i < self->code_count + self->helper_count;
         i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        for (uint32_t k = 0; k < code->store_count && count < capacity; k++) {
            const struct cm_store *store = &code->stores[k];
            bool handed = store->kind == CM_STORE_HAND && !store->sized;
            struct cm_text_id function = handed ? store->name : store->by;
            if (function.index != 0 && !is_listed(names, count, function)) {
                names[count++] = function;
            }
        }
    }
    return count;
}
