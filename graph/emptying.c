/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "emptying.h"

#include <string.h>

#include "alias.h"
#include "name.h"
#include "repeat.h"
#include "way.h"

enum { GUARDED_LINES = 6 };

/* x.clear(), and x[key].clear() */
bool
cm_emptying_is_about(const struct cm_holding *self,
                     const struct cm_store *store, const char *name)
{
    return cm_way_is(self, store->owner, name)
           || cm_way_is(self, store->within, name);
}

static bool
calls_one_of(const struct cm_holding *self, const struct cm_store *store,
             const char *const *names)
{
    while (*names != NULL && !cm_way_is(self, store->name, *names)) {
        names++;
    }
    return store->kind == CM_STORE_CALL && *names != NULL;
}

/* x.clear(), x[:] = [], del x[:-n] */
static bool
clears(const struct cm_holding *self, const struct cm_store *store,
       const char *name)
{
    static const char *const calls[] = {"clear", "reset", NULL};
    return cm_emptying_is_about(self, store, name)
           && (((store->kind == CM_STORE_REMOVE
                 || store->kind == CM_STORE_ITEM)
                && store->trimmed)
               || calls_one_of(self, store, calls));
}

/* One item, which need not be as much as comes. */
bool
cm_emptying_removes(const struct cm_holding *self,
                    const struct cm_store *store, const char *name)
{
    static const char *const calls[] = {
        "pop",     "popitem",     "popleft",     "remove", "discard",
        "heappop", "heapreplace", "heappushpop", NULL};
    return cm_emptying_is_about(self, store, name)
           && (store->kind == CM_STORE_REMOVE
               || calls_one_of(self, store, calls));
}

/* Of losses, in losses.append(x), heappush(losses, x). */
bool
cm_emptying_adds(const struct cm_holding *self, const struct cm_store *store,
                 const char *name)
{
    static const char *const calls[] = {"append",     "appendleft", "add",
                                        "insert",     "extend",     "update",
                                        "setdefault", "heappush",   NULL};
    return cm_emptying_is_about(self, store, name)
           && calls_one_of(self, store, calls);
}

/* So many lines of a loop set it. */
static uint32_t
times_set(const struct cm_code *code, struct cm_text_id name)
{
    uint32_t times = 0;
    for (uint32_t i = 0; i < code->store_count; i++) {
        times += code->stores[i].kind == CM_STORE_LOCAL
                 && code->stores[i].repeated
                 && cm_text_same(code->stores[i].name, name);
    }
    return times;
}

/* x.append(h): what is handed on is added to this container. */
static bool
is_adding(const struct cm_holding *self, const struct cm_code *code,
          const struct cm_store *hand, const char *name)
{
    bool handed = hand->kind == CM_STORE_HAND && !hand->constant
                  && hand->owner.index != 0;
    bool adds = false;
    for (uint32_t i = 0; handed && !adds && i < code->store_count; i++) {
        adds = code->stores[i].line == hand->line
               && cm_emptying_adds(self, &code->stores[i], name)
               && cm_text_same(code->stores[i].name, hand->name);
    }
    return adds;
}

bool
cm_emptying_adds_anew(const struct cm_holding *self, const char *name)
{
    bool found = false;
    for (size_t i = 0; !found && i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        for (uint32_t k = 0; !code->library && k < code->store_count; k++) {
            const struct cm_store *store = &code->stores[k];
            found |= is_adding(self, code, store, name)
                     && times_set(code, store->owner) > 1;
        }
    }
    return found;
}

/* Or losses[k] = x. */
static bool
fills(const struct cm_holding *self, const struct cm_store *store,
      const char *name)
{
    return cm_emptying_adds(self, store, name)
           || (store->kind == CM_STORE_ITEM
               && cm_emptying_is_about(self, store, name));
}

static bool
measures(const struct cm_holding *self, const struct cm_store *store,
         const char *name)
{
    return store->kind == CM_STORE_MEASURE
           && cm_emptying_is_about(self, store, name);
}

/* Of those before store `end`, in this line or further below. */
static bool
has_measure(const struct cm_holding *self, const struct cm_code *code,
            uint32_t line, uint32_t end, const char *name)
{
    bool found = false;
    for (uint32_t i = 0; !found && i < end; i++) {
        found = code->stores[i].line >= line
                && measures(self, &code->stores[i], name);
    }
    return found;
}

/* A method of the program's that compares its length: self.is_full(). */
static bool
asks_length(const struct cm_holding *self, struct cm_text_id method,
            const char *name)
{
    for (size_t i = 0; i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        bool it = !code->library && cm_text_same(code->name, method);
        if (it && has_measure(self, code, 0, code->store_count, name)) {
            return true;
        }
    }
    return false;
}

/* `x.pop(0)`, where each has those before behind it. */
static bool
removes_in_vain(const struct cm_holding *self, const struct cm_store *store,
                const char *name)
{
    return self->chained && cm_emptying_removes(self, store, name);
}

/* `if len(x) < n: x.append(y)` and `if len(x) > n: x.pop()`, in either branch;
 * also where the branch is long, or leaves before the other one. */
static bool
is_guard(const struct cm_holding *self, const struct cm_code *code,
         uint32_t at, const char *name)
{
    const struct cm_store *measure = &code->stores[at];
    bool own = measures(self, measure, name);
    if (!own && measure->kind != CM_STORE_CALL) {
        return false;
    }
    for (uint32_t i = at + 1; i < code->store_count; i++) {
        if (code->stores[i].line > measure->line + GUARDED_LINES
            && i - at > measure->decides) {
            return false;
        }
        if (fills(self, &code->stores[i], name)
            || cm_emptying_removes(self, &code->stores[i], name)) {
            return (own || asks_length(self, measure->name, name))
                   && !removes_in_vain(self, &code->stores[i], name);
        }
    }
    return false;
}

/* `self.count += 1`, before the comparison. */
static bool
has_counted(const struct cm_code *code, uint32_t at)
{
    const struct cm_store *compare = &code->stores[at];
    bool counted = false;
    for (uint32_t i = 0; compare->trimmed && i < at; i++) {
        const struct cm_store *store = &code->stores[i];
        counted |= store->kind == CM_STORE_ATTRIBUTE && !store->constant
                   && compare->name.index != 0
                   && cm_text_same(store->name, compare->name)
                   && cm_text_same(store->key, store->name);
    }
    return counted;
}

/* `self.count += 1`, `self.count = min(self.count + 1, n)`; not
 * `self.best = loss`, which comes again and again. */
static bool
is_counted(const struct cm_holding *self, const struct cm_store *store)
{
    return store->kind == CM_STORE_ATTRIBUTE && !store->constant
           && store->name.index != 0
           && (cm_text_same(store->key, store->name)
               || cm_way_is(self, store->by, "min")
               || cm_way_is(self, store->by, "max")
               || cm_way_is(self, store->by, "int")
               || cm_way_is(self, store->by, "len"));
}

/* `if self.count < self.size: self.count += 1`, and an append there. */
static bool
counts(const struct cm_holding *self, const struct cm_code *code, uint32_t at,
       const char *name)
{
    const struct cm_store *compare = &code->stores[at];
    bool filled = false, counted = has_counted(code, at);
    for (uint32_t i = at + 1;
         compare->kind == CM_STORE_COMPARE && i < code->store_count
         && i - at <= compare->decides;
         i++) {
        const struct cm_store *store = &code->stores[i];
        filled |= fills(self, store, name);
        counted |= is_counted(self, store)
                   && (cm_text_same(store->name, compare->name)
                       || cm_text_same(store->name, compare->owner));
    }
    return filled && counted;
}

/* It runs while the container fills: the training loop may be its own. */
static bool
is_running(const struct cm_holding *self, const struct cm_code *code)
{
    const struct cm_site *site = cm_records_site(self->records, self->site);
    bool running = false;
    for (uint32_t i = 0; i < site->frame_count; i++) {
        running |=
            cm_records_code(self->records, site->frames[i].code) == code;
    }
    for (size_t i = 0; i < self->count; i++) {
        struct cm_code_id id = cm_way_step(self, i)->code;
        running |= id.index != 0 && cm_records_code(self->records, id) == code;
    }
    return running;
}

/* while len(x) > n: x.pop(0) */
static bool
is_measured(const struct cm_holding *self, const struct cm_code *code,
            uint32_t at, const char *name)
{
    uint32_t line = code->stores[at].line;
    return has_measure(self, code, line > 0 ? line - 1 : 0, at, name);
}

/* for ...: x[k] = y; for old in ...: del x[old] */
static bool
is_around(const struct cm_code *code, uint32_t fill, uint32_t removal)
{
    uint32_t depth = code->stores[fill].depth;
    bool around = depth > 0 && depth < code->stores[removal].depth;
    uint32_t first = fill < removal ? fill : removal;
    uint32_t last = fill < removal ? removal : fill;
    for (uint32_t i = first + 1; around && i < last; i++) {
        const struct cm_store *store = &code->stores[i];
        around =
            store->depth > depth || (store->depth == depth && !store->turn);
    }
    return around;
}

/* Items are taken out in a loop that puts none in: until it is small enough, not
 * until one is found that is handed out.  Where the same code puts one in, it
 * does so before that loop, or in each turn of one around it. */
static bool
drains(const struct cm_holding *self, const struct cm_code *code, uint32_t at,
       const char *name)
{
    bool filled = false;
    if (!code->stores[at].repeated || code->stores[at].found
        || !cm_emptying_removes(self, &code->stores[at], name)
        || (self->chained && is_measured(self, code, at, name))) {
        return false;
    }
    for (uint32_t i = 0; i < code->store_count; i++) {
        bool fill = fills(self, &code->stores[i], name);
        if (fill && code->stores[i].repeated
            && (self->without_inner || !is_around(code, i, at))) {
            return false;
        }
        filled |= fill;
    }
    return filled || !is_running(self, code);
}

/* Lines that ask how many a queue has, that take one out in a loop, and that may
 * end the loop before. */
struct takes {
    uint32_t ask, take, limit;
};

static void
count_takes(const struct cm_holding *self, const struct cm_code *code,
            const char *name, struct takes *takes)
{
    static const char *const asks[] = {"empty", "qsize", NULL};
    static const char *const gets[] = {"get", "get_nowait", NULL};
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool about = cm_emptying_is_about(self, store, name);
        takes->ask += about && calls_one_of(self, store, asks);
        takes->take +=
            about && store->repeated && calls_one_of(self, store, gets);
        takes->limit += store->kind == CM_STORE_MEASURE;
    }
}

bool
cm_emptying_takes_all(const struct cm_holding *self, const char *name)
{
    bool all = false;
    for (size_t i = 0; !all && i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        struct takes takes = {0};
        if (!code->library && !is_running(self, code)) {
            count_takes(self, code, name, &takes);
        }
        all = takes.ask > 0 && takes.take > 0 && takes.limit == 0;
    }
    return all;
}

static bool
empties(const struct cm_holding *self, const struct cm_code *code, uint32_t at,
        const char *name)
{
    return clears(self, &code->stores[at], name)
           || is_guard(self, code, at, name) || counts(self, code, at, name)
           || drains(self, code, at, name);
}

/* ---- under another name */

/* self of a method: what that is called on; id 0: it is none. */
static struct cm_text_id
receiver_of(const struct cm_holding *self, const struct cm_code *code)
{
    bool bound = code->store_count != 0
                 && code->stores[0].kind == CM_STORE_PARAMETER
                 && (cm_way_is(self, code->stores[0].name, "self")
                     || cm_way_is(self, code->stores[0].name, "cls"));
    return bound ? code->stores[0].name : (struct cm_text_id){0};
}

/* The parameter that argument `at` is; of a method that is called on an object,
 * or as a function. */
static struct cm_text_id
parameter_at(const struct cm_holding *self, const struct cm_code *code,
             uint32_t at, bool on_object)
{
    struct cm_text_id names[2] = {{0}, {0}};
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        if (store->kind == CM_STORE_PARAMETER && store->decides - at < 2) {
            names[store->decides - at] = store->name;
        }
    }
    return names[on_object && receiver_of(self, code).index != 0];
}

/* Of trim(items) and self.trim(items). */
struct cm_text_id
cm_emptying_parameter(const struct cm_holding *self,
                      const struct cm_code *code,
                      const struct cm_store *handed)
{
    return parameter_at(self, code, handed->decides, handed->made);
}

/* Who has the place is called by that name on the way to it. */
static bool
is_owner(const struct cm_holding *self, struct cm_text_id name)
{
    bool found = false;
    for (size_t i = 1; i < self->at && !found; i++) {
        found = cm_way_is(self, name, cm_way_name_of(self, i).text);
    }
    return found;
}

/* cache(x) of __call__(self, x), model(x) of forward(self, x). */
static struct cm_text_id
parameter_of_object(const struct cm_holding *self,
                    const struct cm_store *handed, const struct cm_code *code)
{
    bool called = cm_way_is(self, code->name, "__call__")
                  || cm_way_is(self, code->name, "forward");
    return called && is_owner(self, handed->name)
               ? parameter_at(self, code, handed->decides, true)
               : (struct cm_text_id){0};
}

bool
cm_emptying_gives(const struct cm_holding *self, const struct cm_code *caller,
                  const struct cm_store *store, const struct cm_alias *to)
{
    struct cm_text_id parameter = {0};
    if (store->kind == CM_STORE_HAND) {
        parameter = cm_text_same(store->name, to->code->name)
                        ? cm_emptying_parameter(self, to->code, store)
                        : parameter_of_object(self, store, to->code);
    }
    else if (store->kind == CM_STORE_CALL
             && cm_repeat_calls(self, caller, store, to->code)) {
        parameter = receiver_of(self, to->code);
    }
    return parameter.index != 0 && cm_text_same(parameter, to->name);
}

void
cm_emptying_add_callers(const struct cm_holding *self,
                        const struct cm_alias *to, struct cm_aliases *all)
{
    bool parameter = cm_repeat_has(to->code, CM_STORE_PARAMETER, to->name);
    for (size_t i = 0; parameter && i < self->code_count; i++) {
        const struct cm_code *caller =
            cm_records_code(self->records, self->codes[i]);
        for (uint32_t k = 0; !caller->library && k < caller->store_count;
             k++) {
            if (caller->stores[k].owner.index != 0
                && cm_emptying_gives(self, caller, &caller->stores[k], to)) {
                cm_aliases_add(all, caller, caller->stores[k].owner);
            }
        }
    }
}

void
cm_emptying_add_parameters(const struct cm_holding *self,
                           const struct cm_store *handed,
                           struct cm_aliases *all)
{
    for (size_t i = 0; i < self->code_count + self->helper_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        struct cm_text_id parameter = {0};
        if (!code->library && cm_text_same(code->name, handed->name)) {
            parameter = cm_emptying_parameter(self, code, handed);
        }
        if (parameter.index != 0) {
            cm_aliases_add(all, code, parameter);
        }
    }
}

/* `h = x`, trim(x). */
static void
follow(const struct cm_holding *self, const struct cm_code *code,
       const struct cm_store *store, const char *name, struct cm_aliases *all)
{
    if (store->constant || !cm_emptying_is_about(self, store, name)) {
        return;
    }
    if (store->kind == CM_STORE_ALIAS && !cm_way_is(self, store->name, name)) {
        cm_aliases_add(all, code, store->name);
    }
    else if (store->kind == CM_STORE_HAND) {
        cm_emptying_add_parameters(self, store, all);
    }
}

bool
cm_emptying_is(const struct cm_holding *self, const struct cm_code *code,
               uint32_t at, const char *name)
{
    struct cm_aliases all = {.count = 0};
    bool emptied = empties(self, code, at, name);
    follow(self, code, &code->stores[at], name, &all);
    for (size_t i = 0; !emptied && i < all.count; i++) {
        const struct cm_alias alias = all.items[i];
        const char *other = cm_way_text(self, alias.name);
        for (uint32_t k = 0; !emptied && k < alias.code->store_count; k++) {
            emptied = empties(self, alias.code, k, other);
            follow(self, alias.code, &alias.code->stores[k], other, &all);
        }
    }
    return emptied;
}

static bool
reads_item(const struct cm_holding *self, const struct cm_store *read,
           const struct cm_store *item, const char *name)
{
    return read->kind == CM_STORE_READ && cm_text_same(read->key, item->key)
           && read->line >= item->line
           && read->line <= item->line + GUARDED_LINES
           && cm_emptying_is_about(self, read, name);
}

bool
cm_emptying_extends(const struct cm_holding *self, const struct cm_code *code,
                    uint32_t at, const char *name)
{
    const struct cm_store *item = &code->stores[at];
    bool its = item->kind == CM_STORE_ITEM && item->key.index != 0
               && cm_emptying_is_about(self, item, name);
    bool extends = false;
    for (uint32_t i = 0; its && !extends && i < at; i++) {
        extends = reads_item(self, &code->stores[i], item, name);
    }
    return extends;
}
