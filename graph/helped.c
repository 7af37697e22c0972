/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "helped.h"

#include "alias.h"
#include "emptying.h"
#include "way.h"

/* return items[-n:], return torch.cat([items, x])[-n:]; where it is handed
 * `itself`, also items = items[-n:] somewhere, and `return []`. */
static bool
returns_part(const struct cm_holding *self, const struct cm_alias *alias,
             bool itself)
{
    const char *name = cm_way_text(self, alias->name);
    for (uint32_t i = 0; i < alias->code->store_count; i++) {
        const struct cm_store *store = &alias->code->stores[i];
        bool made = store->owner.index == 0
                    && (store->trimmed || (itself && store->empty));
        bool returned = store->kind == CM_STORE_RETURN
                        && (made || cm_way_is(self, store->owner, name));
        bool set = itself && store->kind == CM_STORE_LOCAL && store->trimmed
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

/* x = last(x), but not x = merge(x, last(x)); x = last(torch.cat([x, y])), and
 * z of z = torch.cat([x, y]) in place of that. */
bool
cm_helped_leaves_part(const struct cm_holding *self,
                      const struct cm_code *code, uint32_t at,
                      const char *name)
{
    const struct cm_store *set = &code->stores[at];
    const struct cm_store first = {.name = set->by, .made = true};
    struct cm_aliases all = {.count = 0};
    bool part = false, itself = false;
    if (set->by.index != 0) {
        const struct cm_store *handed = handed_to_maker(self, code, at, name);
        itself = handed != NULL && cm_emptying_is_about(self, handed, name);
        if (itself) {
            cm_emptying_add_parameters(self, handed, &all);
        }
        /* another library's function of that name is not the program's */
        else if (!set->nested
                 && (handed == NULL
                     || is_made_above(code, at, handed->owner))) {
            cm_emptying_add_parameters(self, &first, &all);
        }
    }
    for (size_t i = 0; i < all.count; i++) {
        part |= returns_part(self, &all.items[i], itself);
    }
    return part;
}

bool
cm_helped_cuts_item(const struct cm_holding *self, const struct cm_code *code,
                    uint32_t at, const char *name)
{
    const struct cm_store *item = &code->stores[at];
    bool cut = false;
    for (uint32_t i = 0; !cut && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        cut = store->kind == CM_STORE_ITEM
              && cm_text_same(store->name, item->name)
              && cm_text_same(store->key, item->key)
              && cm_emptying_is_about(self, store, name)
              && (store->given || cm_helped_leaves_part(self, code, i, name));
    }
    return cut;
}

bool
cm_helped_moves(const struct cm_holding *self, const struct cm_store *store)
{
    static const char *const calls[] = {"clone", "detach", "cpu", "cuda",
                                        "to",    "float",  "half"};
    bool moves = false;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        moves |= store->nested && cm_way_is(self, store->by, calls[i]);
    }
    return moves;
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
        for (uint32_t k = 0;
             !code->library && k < code->store_count && count < capacity;
             k++) {
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
