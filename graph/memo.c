/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* By the names in one function: it asks for a key (`k in memo`, memo.get(k),
 * memo[k]) and stores one after that; or any function asks `k in memo`.  Keys
 * in order are a data set's where the same variable is an index of something
 * else, self.rows[k], or where key.c knows what makes them.  Of keys that are
 * drawn from so many nobody has to ask.  O(stores). */

#include "memo.h"

#include <stdio.h>
#include <string.h>

#include "emptying.h"
#include "key.h"
#include "way.h"

struct memo {
    const struct cm_holding *holding;
    struct cm_name name;
    struct cm_text_id key; /* of the line that stores */
    bool asked, stored, indexes, again;
    bool others; /* a line stores under a key of which nothing is known */
};

static bool
is_its(const struct memo *self, const struct cm_store *store)
{
    return cm_way_is(self->holding, store->owner, self->name.text);
}

static bool
asks(const struct memo *self, const struct cm_store *store)
{
    bool gets = store->kind == CM_STORE_CALL
                && cm_way_is(self->holding, store->name, "get");
    return is_its(self, store)
           && (gets || store->kind == CM_STORE_ASK
               || store->kind == CM_STORE_READ);
}

/* A comprehension of CPython 3.11 comes behind the rest, wherever it stands. */
static bool
is_asked_before(const struct memo *self, const struct cm_code *code,
                uint32_t at)
{
    bool asked = false;
    for (uint32_t i = 0; !asked && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        asked = asks(self, store)
                && (i < at || store->line < code->stores[at].line);
    }
    return asked;
}

static void
read_code(struct memo *self, const struct cm_code *code)
{
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool stores = store->kind == CM_STORE_ITEM && is_its(self, store);
        self->asked |= (stores && is_asked_before(self, code, i))
                       || (store->kind == CM_STORE_ASK && is_its(self, store));
        self->stored |= stores;
        self->key = stores && store->key.index != 0 && !store->sized
                        ? store->key
                        : self->key;
    }
}

static void
read_all(struct memo *self,
         void (*read)(struct memo *self, const struct cm_code *code))
{
    const struct cm_holding *holding = self->holding;
    for (size_t i = 0; i < holding->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(holding->records, holding->codes[i]);
        if (!code->library) {
            read(self, code);
        }
    }
}

static void
look_for_store(struct memo *self, const struct cm_code *code)
{
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        self->stored |= store->kind == CM_STORE_ITEM && is_its(self, store);
    }
}

/* Not another memo. */
static bool
is_filled(const struct memo *self, struct cm_text_id owner)
{
    struct memo other = {.holding = self->holding};
    snprintf(other.name.text, sizeof other.name.text, "%s",
             cm_way_text(self->holding, owner));
    read_all(&other, look_for_store);
    return other.stored;
}

static void
look_for_index(struct memo *self, const struct cm_code *code)
{
    for (uint32_t i = 0; !self->indexes && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        self->indexes =
            store->kind == CM_STORE_READ && store->key.index != 0
            && store->owner.index != 0 && cm_text_same(store->key, self->key)
            && !is_its(self, store) && !is_filled(self, store->owner);
    }
}

/* ---- keys that come from a set */

static bool
is_known(const struct cm_holding *self, const struct cm_code *code,
         struct cm_text_id key)
{
    return cm_key_always_comes_again(self, code, key)
           || cm_key_is_size(self, code, key)
           || cm_key_is_item(self, code, key);
}

/* Of what comes again one line is enough. */
static void
look_at_keys(struct memo *self, const struct cm_code *code)
{
    const struct cm_holding *holding = self->holding;
    for (uint32_t i = 0; !self->again && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        if (store->kind == CM_STORE_ITEM && is_its(self, store)) {
            self->again =
                !store->sized && cm_key_comes_again(holding, code, store->key);
            self->others |= store->sized
                                ? !cm_key_is_of_data(holding, code, store->key)
                                : !is_known(holding, code, store->key);
        }
        self->others |= cm_emptying_adds(holding, store, self->name.text);
    }
}

/* Not `if k not in rows: rows[k] = []`, whose lists grow, nor states of which
 * each new one keeps the graph of the last, nor tensors that get longer. */
static bool
has_new_keys(const struct cm_holding *self)
{
    return cm_way_step(self, self->at)->items >= self->through
           && self->autograd_depth == 0
           && !cm_way_is_category(self, CM_HOLDING_LARGER);
}

static bool
is_named_dict(const struct cm_holding *self)
{
    const struct cm_holding_step *step = cm_way_step(self, self->at);
    return step->species == CM_DICT && cm_way_is_variable(step);
}

/* False: it is none. */
static bool
read_memo(const struct cm_holding *self, struct memo *memo)
{
    if (self->count < 2 || self->at == 0 || !is_named_dict(self)
        || !has_new_keys(self)) {
        return false;
    }
    *memo =
        (struct memo){.holding = self, .name = cm_way_name_of(self, self->at)};
    read_all(memo, read_code);
    return memo->stored;
}

static bool
are_of_a_set(uint8_t keys)
{
    return keys == CM_KEYS_OF_A_SET || keys == CM_KEYS_DRAWN;
}

bool
cm_memo_is(const struct cm_holding *self)
{
    struct memo memo;
    return read_memo(self, &memo) && memo.asked;
}

bool
cm_memo_fills(const struct cm_holding *self)
{
    struct memo memo;
    if (!read_memo(self, &memo)) {
        return false;
    }
    uint8_t keys = cm_way_step(self, self->at)->keys;
    if (!memo.asked && keys != CM_KEYS_DRAWN) {
        return false;
    }
    if (cm_holding_keys_count(keys)) {
        read_all(&memo, look_for_index);
        read_all(&memo, look_at_keys);
    }
    return are_of_a_set(keys)
           || (cm_holding_keys_count(keys)
               && (memo.indexes || memo.again || !memo.others));
}

static bool
has_known_arguments(const struct cm_holding *self, const struct cm_code *code)
{
    bool any = false, known = true;
    for (uint32_t i = 0; known && i < code->store_count; i++) {
        if (code->stores[i].kind == CM_STORE_PARAMETER) {
            any = true;
            known = is_known(self, code, code->stores[i].name);
        }
    }
    return any && known;
}

/* The function whose results it keeps, by its name. */
static bool
is_called_with_known(const struct cm_holding *self)
{
    const char *name = cm_way_cached(self);
    bool known = false;
    for (size_t i = 0; !known && i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        known = !code->library && cm_way_is(self, code->qualified_name, name)
                && has_known_arguments(self, code);
    }
    return known;
}

bool
cm_memo_fills_cache(const struct cm_holding *self)
{
    size_t cache = self->count > 1 ? cm_way_lru_cache(self) : 0;
    if (cache == 0 || self->at != cache + 1 || !has_new_keys(self)) {
        return false;
    }
    uint8_t keys = cm_way_step(self, self->at)->keys;
    return are_of_a_set(keys)
           || (cm_holding_keys_count(keys) && is_called_with_known(self));
}
