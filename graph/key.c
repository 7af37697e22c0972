/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* That a variable comes again is said by one line that sets it.  What else it
 * may be must be said by each: of a size that is set by a counter too nobody
 * knows, nor of one that a caller hands who cannot be read.  What a loop goes
 * over may be containers that grow: not where a line adds to one, or sets the
 * item anew.  O(stores) for each name that it goes by, and for each line that
 * fills something. */

#include "key.h"

#include "alias.h"
#include "emptying.h"
#include "repeat.h"
#include "way.h"

/* A data set is asked for its items, by number. */
static bool
is_index(const struct cm_holding *self, const struct cm_code *code,
         const struct cm_store *store)
{
    return store->kind == CM_STORE_PARAMETER && store->decides == 1
           && cm_way_is(self, code->name, "__getitem__");
}

/* ---- what comes again */

/* Of a loop in another one, or in a function that runs again and again. */
static bool
is_turn_again(const struct cm_holding *self, const struct cm_code *code,
              const struct cm_store *store)
{
    return store->turn && (store->nested || cm_repeat_is_called(self, code));
}

/* By this store the variable has what it has had before; else what that is
 * known by elsewhere is added. */
static bool
is_set_again(const struct cm_holding *self, const struct cm_alias *variable,
             const struct cm_store *store, struct cm_aliases *all)
{
    if (store->kind == CM_STORE_ALIAS && store->owner.index != 0) {
        cm_aliases_add(all, variable->code, store->owner);
    }
    else if (store->kind == CM_STORE_PARAMETER) {
        cm_emptying_add_callers(self, variable, all);
    }
    return is_turn_again(self, variable->code, store)
           || is_index(self, variable->code, store);
}

bool
cm_key_comes_again(const struct cm_holding *self, const struct cm_code *code,
                   struct cm_text_id name)
{
    struct cm_aliases all = {.count = name.index != 0,
                             .items = {{.code = code, .name = name}}};
    bool again = false;
    for (size_t i = 0; !again && i < all.count; i++) {
        const struct cm_alias variable = all.items[i];
        for (uint32_t k = 0; !again && k < variable.code->store_count; k++) {
            const struct cm_store *store = &variable.code->stores[k];
            again = cm_text_same(store->name, variable.name)
                    && is_set_again(self, &variable, store, &all);
        }
    }
    return again;
}

/* ---- what it is, by each line that sets it */

/* Names, of which each must be like that. */
struct origin {
    const struct cm_holding *holding;
    struct cm_aliases turns, sizes, data, items;
    bool unknown; /* a line says that one is not */
    bool found;   /* a loop, or an index */
};

static bool
is_variable(const struct cm_store *store)
{
    return store->kind >= CM_STORE_LOCAL && store->kind <= CM_STORE_GLOBAL;
}

static void
expect(struct origin *self, struct cm_aliases *all, const struct cm_code *code,
       struct cm_text_id name)
{
    self->unknown |= name.index == 0 || all->count == CM_MOST_ALIASES;
    cm_aliases_add(all, code, name);
}

/* Nothing but __init__ sets it or puts something in. */
static bool
is_filled_once(const struct cm_holding *self, struct cm_text_id container)
{
    const char *name = cm_way_text(self, container);
    bool filled = container.index == 0;
    for (size_t i = 0; !filled && i < self->code_count + self->helper_count;
         i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        bool may = !code->library && !cm_way_is(self, code->name, "__init__");
        for (uint32_t k = 0; may && !filled && k < code->store_count; k++) {
            const struct cm_store *store = &code->stores[k];
            filled = cm_emptying_adds(self, store, name)
                     || (store->kind == CM_STORE_ITEM
                         && cm_emptying_is_about(self, store, name))
                     || (store->kind == CM_STORE_ATTRIBUTE
                         && cm_text_same(store->name, container));
        }
    }
    return !filled;
}

/* `from`: NAME = x, or f(x), which hands it on. */
static void
take(struct origin *self, struct cm_aliases *all, const struct cm_code *code,
     const struct cm_store *from)
{
    bool size = from->sized && all == &self->sizes;
    bool item = !from->sized && from->key.index != 0 && all == &self->items;
    bool same = !from->sized && from->within.index == 0;
    if (size || item) {
        self->unknown |= item && !is_filled_once(self->holding, from->within);
        expect(self, size ? &self->data : &self->items, code, from->key);
    }
    else {
        expect(self, all, code, same ? from->owner : (struct cm_text_id){0});
    }
}

/* That line of the caller's is such a call. */
static bool
gives_there(const struct cm_holding *self, const struct cm_code *caller,
            uint32_t line, const struct cm_alias *to)
{
    bool found = false;
    for (uint32_t i = 0; !found && i < caller->store_count; i++) {
        found = caller->stores[i].line == line
                && cm_emptying_gives(self, caller, &caller->stores[i], to);
    }
    return found;
}

static void
take_from_caller(struct origin *self, struct cm_aliases *all,
                 const struct cm_code *caller, const struct cm_alias *to,
                 bool *called)
{
    const struct cm_holding *holding = self->holding;
    for (uint32_t i = 0; !self->unknown && i < caller->store_count; i++) {
        const struct cm_store *store = &caller->stores[i];
        if (cm_emptying_gives(holding, caller, store, to)) {
            take(self, all, caller, store);
            *called = true;
        }
        else if (cm_repeat_calls(holding, caller, store, to->code)) {
            self->unknown |= !gives_there(holding, caller, store->line, to);
        }
    }
}

static void
take_from_callers(struct origin *self, struct cm_aliases *all,
                  const struct cm_alias *to)
{
    const struct cm_holding *holding = self->holding;
    bool called = false;
    for (size_t i = 0; i < holding->code_count; i++) {
        const struct cm_code *caller =
            cm_records_code(holding->records, holding->codes[i]);
        if (!caller->library) {
            take_from_caller(self, all, caller, to, &called);
        }
    }
    self->unknown |= !called;
}

/* x[k] = y */
static bool
sets_item(const struct cm_store *store, struct cm_text_id x)
{
    return store->kind == CM_STORE_ITEM && store->name.index == 0
           && cm_text_same(store->owner, x);
}

/* rows[i] = cat(rows[i], y): the line reads what it sets. */
static bool
reads_item(const struct cm_code *code, const struct cm_store *store)
{
    bool reads = false;
    for (uint32_t i = 0; !reads && i < code->store_count; i++) {
        const struct cm_store *other = &code->stores[i];
        reads = other->kind == CM_STORE_READ && other->line == store->line
                && cm_text_same(other->owner, store->owner);
    }
    return reads;
}

/* The code makes the rows longer that it goes over: rows = [cat(x, y) for x in
 * rows], rows[i] = cat(rows[i], y).  Of an attribute all but __init__ may. */
static bool
makes_longer(const struct cm_code *code, struct cm_text_id rows)
{
    bool found = false;
    for (uint32_t i = 0; !found && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool anew = store->carried
                    || (store->kind != CM_STORE_LOCAL && store->repeated);
        found = (cm_text_same(store->name, rows) && is_variable(store)
                 && !store->turn && anew)
                || (sets_item(store, rows) && reads_item(code, store));
    }
    return found;
}

static bool
sets_attribute(const struct cm_holding *self, struct cm_text_id rows)
{
    bool found = false;
    for (size_t i = 0; !found && i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        found = !code->library && !cm_way_is(self, code->name, "__init__")
                && cm_repeat_has(code, CM_STORE_ATTRIBUTE, rows);
    }
    return found;
}

/* Also where callers hand them on. */
static bool
grow_in_loop(const struct cm_holding *self, const struct cm_code *code,
             struct cm_text_id rows)
{
    struct cm_aliases all = {.count = rows.index != 0,
                             .items = {{code, rows}}};
    bool longer = false;
    for (size_t i = 0; !longer && i < all.count; i++) {
        const struct cm_alias variable = all.items[i];
        longer = makes_longer(variable.code, variable.name)
                 || sets_attribute(self, variable.name);
        cm_emptying_add_callers(self, &variable, &all);
    }
    return longer;
}

/* `for NAME in ...` */
static bool
is_turn_of(const struct origin *self, const struct cm_aliases *all,
           const struct cm_code *code, const struct cm_store *store)
{
    return (all == &self->data
            && !grow_in_loop(self->holding, code, store->within))
           || (all == &self->turns
               && is_turn_again(self->holding, code, store));
}

/* A variable's store, and behind it what it is a second name of. */
static void
take_from_line(struct origin *self, struct cm_aliases *all,
               const struct cm_code *code, uint32_t at)
{
    const struct cm_store *store = &code->stores[at];
    bool second = at + 1 < code->store_count
                  && code->stores[at + 1].kind == CM_STORE_ALIAS
                  && cm_text_same(code->stores[at + 1].name, store->name);
    if (store->turn) {
        self->unknown |= !is_turn_of(self, all, code, store);
        self->found = true;
    }
    else if (second) {
        take(self, all, code, &code->stores[at + 1]);
    }
    else {
        self->unknown |= !store->constant;
    }
}

static bool
has_new_items(const struct cm_alias *variable)
{
    bool found = false;
    for (uint32_t i = 0; !found && i < variable->code->store_count; i++) {
        found = sets_item(&variable->code->stores[i], variable->name);
    }
    return found;
}

/* All lines that set it. */
static void
take_all(struct origin *self, struct cm_aliases *all,
         const struct cm_alias *variable)
{
    bool set = false;
    self->unknown |= all == &self->data && has_new_items(variable);
    for (uint32_t i = 0; !self->unknown && i < variable->code->store_count;
         i++) {
        const struct cm_store *store = &variable->code->stores[i];
        bool parameter = store->kind == CM_STORE_PARAMETER;
        if (!cm_text_same(store->name, variable->name)
            || (!parameter && !is_variable(store))) {
            continue;
        }
        set = true;
        if (!parameter) {
            take_from_line(self, all, variable->code, i);
        }
        else if ((all == &self->items || all == &self->turns)
                 && is_index(self->holding, variable->code, store)) {
            self->found = true;
        }
        else {
            take_from_callers(self, all, variable);
        }
    }
    self->unknown |= !set;
}

static void
take_each(struct origin *self, struct cm_aliases *all)
{
    for (size_t i = 0; !self->unknown && i < all->count; i++) {
        const struct cm_alias variable = all->items[i];
        take_all(self, all, &variable);
    }
}

/* ---- containers that grow while a loop goes over them */

/* It is an item of something, or may be: a parameter, what a loop goes over,
 * or z = y[k]. */
static bool
may_be_item(const struct cm_code *code, struct cm_text_id name)
{
    bool item = name.index == 0;
    for (uint32_t i = 0; !item && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        item = cm_text_same(store->name, name)
               && (store->kind == CM_STORE_PARAMETER || store->turn
                   || (store->kind == CM_STORE_ALIAS
                       && store->within.index != 0));
    }
    return item;
}

/* for k, x in ...: rows[k] = ... */
static bool
sets_anew(const struct cm_code *code, const struct cm_store *item)
{
    uint32_t turns = 0, line = 0;
    if (item->kind != CM_STORE_ITEM || item->sized || item->key.index == 0) {
        return false;
    }
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool key = store->turn && cm_text_same(store->name, item->key);
        line = key ? store->line : line;
    }
    for (uint32_t i = 0; line != 0 && i < code->store_count; i++) {
        turns += code->stores[i].turn && code->stores[i].line == line;
    }
    return turns > 1;
}

/* Another container than the memo, or rows[len(rows)] = x. */
static bool
fills_item(const struct cm_holding *self, const struct cm_code *code,
           const struct cm_store *store)
{
    struct cm_name memo = cm_way_name_of(self, self->at);
    bool longer = store->sized && cm_text_same(store->key, store->owner);
    bool other = store->name.index == 0 && may_be_item(code, store->owner)
                 && !cm_way_is(self, store->owner, memo.text);
    return store->kind == CM_STORE_ITEM && (longer || other);
}

static bool
lets_items_grow(const struct cm_holding *self, const struct cm_code *code)
{
    bool grow = false;
    for (uint32_t i = 0; !grow && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        const char *name = cm_way_text(self, store->owner);
        grow = (cm_emptying_adds(self, store, name)
                && may_be_item(code, store->owner))
               || fills_item(self, code, store) || sets_anew(code, store);
    }
    return grow;
}

static bool
any_lets_items_grow(const struct cm_holding *self)
{
    bool grow = false;
    for (size_t i = 0; !grow && i < self->code_count + self->helper_count;
         i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        grow = !code->library && lets_items_grow(self, code);
    }
    return grow;
}

bool
cm_key_always_comes_again(const struct cm_holding *self,
                          const struct cm_code *code, struct cm_text_id name)
{
    struct origin origin = {.holding = self};
    expect(&origin, &origin.turns, code, name);
    take_each(&origin, &origin.turns);
    return origin.found && !origin.unknown;
}

bool
cm_key_is_size(const struct cm_holding *self, const struct cm_code *code,
               struct cm_text_id name)
{
    struct origin origin = {.holding = self};
    expect(&origin, &origin.sizes, code, name);
    take_each(&origin, &origin.sizes);
    take_each(&origin, &origin.data);
    return origin.found && !origin.unknown && !any_lets_items_grow(self);
}

bool
cm_key_is_of_data(const struct cm_holding *self, const struct cm_code *code,
                  struct cm_text_id name)
{
    struct origin origin = {.holding = self};
    expect(&origin, &origin.data, code, name);
    take_each(&origin, &origin.data);
    return origin.found && !origin.unknown && !any_lets_items_grow(self);
}

bool
cm_key_is_item(const struct cm_holding *self, const struct cm_code *code,
               struct cm_text_id name)
{
    struct origin origin = {.holding = self};
    expect(&origin, &origin.items, code, name);
    take_each(&origin, &origin.items);
    return origin.found && !origin.unknown;
}
