/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What empties a container is looked for in the program's own code that may
 * have filled it: a line that does it (emptying.h), x = x[-n:] where x is what
 * a person calls the place, or a line that sets it anew besides the one that
 * makes it. */

#include "bound.h"

#include <string.h>

#include "alias.h"
#include "container.h"
#include "emptying.h"
#include "given.h"
#include "helped.h"
#include "kept.h"
#include "memo.h"
#include "metric.h"
#include "name.h"
#include "owner.h"
#include "repeat.h"
#include "way.h"

/* history_size of them, each a list in the state of the first parameter. */
static bool
is_history_of_lbfgs(const struct cm_holding *self)
{
    static const char *const keys[] = {"['old_dirs']", "['old_stps']",
                                       "['ro']"};
    bool listed = false;
    const char *edge =
        self->count > 1 ? cm_way_text(self, cm_way_step(self, self->at)->edge)
                        : "";
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        listed |= strcmp(edge, keys[i]) == 0;
    }
    for (size_t i = 1; listed && i + 3 <= self->at; i++) {
        if (cm_way_is_of(cm_way_module(self, i), "torch.optim.lbfgs")) {
            return true;
        }
    }
    return false;
}

/* An array has as many places as it was made with, but the list at one of them
 * has no end. */
static bool
is_array_of_lists(const struct cm_holding *self, size_t at)
{
    bool list = false;
    for (size_t i = at + 1; i < self->count; i++) {
        const struct cm_holding_step *step = cm_way_step(self, i);
        list |= step->counted && step->species != CM_TUPLE
                && step->species != CM_DICT;
    }
    return list && cm_way_is_of(cm_way_module(self, at), "numpy");
}

/* ---- what is emptied */

/* What a person calls the place, and how a line sets that. */
struct place {
    const char *name;
    enum cm_store_kind kind;
    struct cm_code_id only; /* whose variable it is; 0: no one's alone */
};

static bool
sets(const struct cm_holding *self, const struct cm_store *store,
     const struct place *place)
{
    bool captured =
        place->kind == CM_STORE_LOCAL && store->kind == CM_STORE_CELL;
    return (store->kind == place->kind || captured)
           && cm_way_is(self, store->name, place->name);
}

/* Lines that empty it, make it in a method of that purpose, set it anew
 * elsewhere or to something else, put something at a place in it, or a new
 * container each turn; that add, or take one out. */
struct lines {
    uint32_t clear, trim, make, set, other, item, longer, part, add, taken;
    uint32_t filled;  /* at its places, not in __init__, */
    uint32_t cut;     /* of these, with a part of what was there */
    uint32_t moved;   /* there, by clone() or its like: not None */
    uint32_t settled; /* a sum that a backward() behind its loop takes */
    uint32_t loose;   /* pieces of code that set it, and none of them so */
};

/* A method of that name runs again and again, as a rule. */
static bool
begins_anew(const struct cm_holding *self, const struct cm_code *code)
{
    static const char *const words[] = {"reset", "clear", "epoch", "episode"};
    const char *name = cm_way_text(self, code->name);
    bool found = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        found |= strstr(name, words[i]) != NULL;
    }
    return found;
}

/* Of one class: "Scores.reset" and "Scores.begin". */
static bool
are_of_one_class(const struct cm_holding *self, const struct cm_code *a,
                 const struct cm_code *b)
{
    const char *one = cm_way_text(self, a->qualified_name);
    const char *other = cm_way_text(self, b->qualified_name);
    const char *dot = strrchr(one, '.'), *end = strrchr(other, '.');
    return dot != NULL && end != NULL && dot - one == end - other
           && strncmp(one, other, (size_t)(dot - one)) == 0;
}

/* run_epochs() runs all of them. */
static bool
begins_each(const struct cm_holding *self, const struct cm_code *code)
{
    const char *name = cm_way_text(self, code->name);
    return begins_anew(self, code) && strstr(name, "epochs") == NULL
           && strstr(name, "episodes") == NULL;
}

/* self.begin() in on_epoch_start(). */
static bool
is_called_anew(const struct cm_holding *self, const struct cm_code *code)
{
    bool found = false;
    for (size_t i = 0; !found && i < self->code_count; i++) {
        const struct cm_code *caller =
            cm_records_code(self->records, self->codes[i]);
        bool asked =
            begins_each(self, caller) && are_of_one_class(self, caller, code);
        for (uint32_t k = 0; asked && !found && k < caller->store_count; k++) {
            const struct cm_store *store = &caller->stores[k];
            found = store->kind == CM_STORE_CALL
                    && cm_text_same(store->name, code->name)
                    && cm_way_is(self, store->owner, "self");
        }
    }
    return found;
}

/* for name in ...: setattr(self, name, ...) in a method called reset(). */
static bool
resets_all(const struct cm_holding *self, const struct cm_code *code,
           const struct cm_store *store, const struct place *place)
{
    return place->kind == CM_STORE_ATTRIBUTE && store->kind == CM_STORE_CALL
           && store->repeated && cm_way_is(self, store->name, "setattr")
           && cm_way_is(self, store->owner, "self") && begins_anew(self, code);
}

/* self.outputs = [] in on_epoch_start(). */
static bool
resets(const struct cm_holding *self, const struct cm_code *code,
       const struct cm_store *store, bool set)
{
    return set && store->kind == CM_STORE_ATTRIBUTE && store->empty
           && (begins_anew(self, code) || is_called_anew(self, code));
}

/* The code sets it to a new container; else what it is a second name of is
 * added. */
static bool
sets_empty(const struct cm_code *code, struct cm_text_id name,
           struct cm_aliases *all)
{
    bool empty = false;
    for (uint32_t i = 0; !empty && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool its = cm_text_same(store->name, name);
        empty = its && store->kind <= CM_STORE_GLOBAL && store->empty;
        if (its && store->kind == CM_STORE_ALIAS) {
            cm_aliases_add(all, code, store->owner);
        }
    }
    return empty;
}

/* `kept = []`, which is filled from x, and then x = kept; x = y, and y = []. */
static bool
takes_new(const struct cm_holding *self, const struct cm_code *code,
          uint32_t at, const struct place *place)
{
    const struct cm_store *next = &code->stores[at + 1];
    struct cm_aliases all = {.count = 0};
    bool found = false;
    if (at + 1 == code->store_count || next->kind != CM_STORE_ALIAS
        || !cm_way_is(self, next->name, place->name)) {
        return false;
    }
    cm_aliases_add(&all, code, next->owner);
    for (size_t i = 0; !found && i < all.count; i++) {
        found = sets_empty(code, all.items[i].name, &all);
    }
    return found;
}

/* A variable that is deleted, or set to None, behind the loop that fills it has
 * grown until then. */
static uint32_t
sets_again(const struct cm_holding *self, const struct cm_code *code,
           const struct cm_store *store, bool anew)
{
    bool again = anew && cm_repeat_runs(self, code, store);
    bool once = store->constant && store->kind != CM_STORE_ATTRIBUTE;
    return anew && !(once && !again) ? 1 + again : 0;
}

/* `outputs = []` in a loop sets it twice; `self.x = None` makes nothing yet. */
static void
count_lines(const struct cm_holding *self, struct cm_code_id id,
            const struct place *place, struct lines *lines)
{
    const struct cm_code *code = cm_records_code(self->records, id);
    bool makes = cm_way_is(self, code->name, "__init__");
    for (uint32_t i = 0; !code->library && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool set = sets(self, store, place);
        /* Not `x = x + [y]`, which fills it. */
        bool anew = set
                    && (store->empty || store->constant
                        || takes_new(self, code, i, place));
        lines->clear += cm_emptying_is(self, code, i, place->name)
                        || resets_all(self, code, store, place)
                        || resets(self, code, store, set);
        /* `x = x[-n:]`, `x = last(x)`, again and again */
        bool once = makes
                    || (!store->repeated
                        && (store->kind == CM_STORE_LOCAL
                            || cm_way_is(self, code->name, "<module>")));
        lines->trim +=
            set && !once
            && (store->trimmed
                || cm_helped_leaves_part(self, code, i, place->name));
        lines->make += set && makes && !store->constant;
        lines->set += sets_again(self, code, store, anew && !makes);
        bool item = store->kind == CM_STORE_ITEM
                    && cm_emptying_is_about(self, store, place->name);
        lines->item += item;
        lines->moved += item && cm_helped_moves(self, store);
        lines->filled += item && !makes;
        lines->cut +=
            item && !makes && cm_helped_cuts_item(self, code, i, place->name);
        lines->longer += cm_emptying_extends(self, code, i, place->name);
        lines->part +=
            item && store->empty && cm_repeat_runs(self, code, store);
        lines->add += cm_emptying_adds(self, store, place->name);
        lines->taken += cm_emptying_removes(self, store, place->name);
        lines->other += set && !makes && !anew;
        lines->settled += set && cm_given_settles(self, code, store);
    }
}

/* The same code may come twice, by its owner and by the stack. */
static bool
came_before(const struct cm_holding *self, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (self->codes[i].index == self->codes[at].index) {
            return true;
        }
    }
    return false;
}

/* A variable of a function is emptied by that function's lines alone. */
static struct place
place_of(const struct cm_holding *self)
{
    const struct cm_holding_step *step = cm_way_step(self, self->at);
    const struct cm_holding_step *before = cm_way_step(self, self->at - 1);
    bool global = self->at == 1 && before->species == CM_MODULE;
    struct place place = {.kind =
                              global ? CM_STORE_GLOBAL : CM_STORE_ATTRIBUTE};
    if (step->role == CM_LOCAL) {
        place.kind = CM_STORE_LOCAL;
        place.only = before->code;
    }
    else if (step->role != CM_ATTRIBUTE
             && !cm_way_is_module_key(self, self->at)) {
        place.kind = CM_STORE_CELL;
    }
    return place;
}

/* A ModuleList's own dict: a program knows the list alone. */
static bool
is_of_modules(const struct cm_holding *self)
{
    return cm_way_is(self, cm_way_step(self, self->at)->edge, "._modules");
}

/* A variable, an attribute, or what torch has for one: model.queue, a buffer. */
static bool
goes_by_name(const struct cm_holding *self, size_t at)
{
    return cm_way_is_variable(cm_way_step(self, at))
           || cm_way_is_module_key(self, at);
}

/* A container, or a tensor that gets longer, that goes by a name. */
static bool
can_be_emptied(const struct cm_holding *self, const struct cm_holding *named)
{
    const struct cm_holding_step *step = cm_way_step(named, named->at);
    return (step->counted || cm_way_is_tensor(step) || is_of_modules(self))
           && goes_by_name(named, named->at);
}

/* An item of a container goes with that, which has a name. */
static struct cm_holding
named_place(const struct cm_holding *self)
{
    struct cm_holding named = *self;
    if (is_of_modules(self) && self->at > 1) {
        named.at--;
        return named;
    }
    while (named.at > 1 && !goes_by_name(&named, named.at)
           && cm_way_step(&named, named.at - 1)->counted) {
        named.at--;
    }
    return named;
}

/* [None] * n or {k: None for k in ...}, whose places are taken one after the
 * other; not `x += [y]`, nor where what has a place gets longer. */
static bool
has_places(const struct cm_holding *self, const struct lines *lines)
{
    const struct cm_holding_step *step = cm_way_step(self, self->at);
    bool places = step->species == CM_LIST
                  || (step->species == CM_DICT
                      && (step->keys == CM_KEYS_RESERVED
                          || (step->keys == CM_KEYS_WITH_GAPS
                              && lines->moved == lines->item)));
    uint32_t made = lines->make + lines->set > 0 ? 0 : 1;
    bool larger = cm_way_is_category(self, CM_HOLDING_LARGER);
    return places && step->items >= self->through && lines->item > 0
           && lines->add == 0 && lines->other <= made
           && !(larger && lines->longer > 0);
}

/* rows[epoch] = [] in each, and an old one is taken out. */
static bool
has_parts(const struct cm_holding *self, const struct lines *lines)
{
    return lines->part > 0 && lines->taken > 0
           && cm_way_step(self, self->at)->items < self->through;
}

/* A function that is made in that one, and has no variable of its own of that
 * name: it shares that one's. */
static bool
shares(const struct cm_holding *self, const struct place *place,
       struct cm_code_id id)
{
    static const char within[] = ".<locals>.";
    const struct cm_code *code = cm_records_code(self->records, id);
    const struct cm_code *maker = cm_records_code(self->records, place->only);
    const char *name = cm_way_text(self, code->qualified_name);
    const char *made = cm_way_text(self, maker->qualified_name);
    bool own = false;
    for (uint32_t i = 0; i < code->store_count; i++) {
        enum cm_store_kind kind = code->stores[i].kind;
        own |= (kind == CM_STORE_LOCAL || kind == CM_STORE_PARAMETER)
               && cm_way_is(self, code->stores[i].name, place->name);
    }
    return !own && cm_way_begins(name, made)
           && cm_way_begins(name + strlen(made), within)
           && cm_text_same(code->filename, maker->filename);
}

static bool
is_asked(const struct cm_holding *self, const struct place *place,
         struct cm_code_id id)
{
    return place->only.index == 0 || place->only.index == id.index
           || shares(self, place, id);
}

static struct lines
lines_of(const struct cm_holding *self)
{
    struct lines lines = {0};
    struct cm_name name = cm_way_name_of(self, self->at);
    struct place place = place_of(self);
    place.name = name.text;
    for (size_t i = 0; i < self->code_count; i++) {
        struct lines before = lines;
        if (is_asked(self, &place, self->codes[i]) && !came_before(self, i)) {
            count_lines(self, self->codes[i], &place, &lines);
        }
        lines.loose +=
            lines.other > before.other && lines.settled == before.settled;
    }
    return lines;
}

/* What is cut off a tensor stays in the graph behind it. */
static bool
is_in_graph(const struct cm_holding *self)
{
    return self->autograd_depth > 0
           && cm_way_is_tensor(cm_way_step(self, self->at));
}

static bool
is_drained_queue(const struct cm_holding *self)
{
    return cm_kept_in_queue(self)
           && cm_emptying_takes_all(self,
                                    cm_way_name_of(self, self->at - 1).text);
}

/* `own`: a variable of which each call has one: what sets it anew in another
 * call leaves it as it is. */
static bool
is_emptied_there(const struct cm_holding *self, bool own)
{
    struct cm_holding named = named_place(self);
    if (!can_be_emptied(self, &named)) {
        return false;
    }
    struct lines lines = lines_of(&named);
    bool trims =
        (named.at == self->at && lines.trim > 0)
        || (lines.cut > 0 && lines.cut == lines.filled
            && self->autograd_depth == 0 && cm_container_has_longer(self));
    if ((trims && !is_in_graph(self) && !self->chained) || cm_memo_fills(self)
        || is_drained_queue(self)) {
        return true;
    }
    /* Each epoch makes it longer from nothing. */
    bool anew = !own && lines.set > (lines.make > 0 ? 0 : 1);
    if (cm_way_is_tensor(cm_way_step(self, self->at))) {
        return is_in_graph(self) ? lines.settled > 0 && lines.loose == 0
                                 : anew && lines.other > 0;
    }
    return cm_way_step(self, self->at)->counted
           && (cm_owner_is_another(self) || lines.clear > 0 || anew
               || has_parts(&named, &lines) || has_places(self, &lines));
}

/* Of a dict of two metrics, each with its list: in these they pile up. */
static bool
is_emptied_below(const struct cm_holding *self)
{
    bool emptied = false;
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    for (size_t at = self->at + 1;
         place->items < self->through && !emptied && at + 1 < self->count;
         at++) {
        struct cm_holding below = *self;
        const struct cm_holding_step *step = cm_way_step(self, at);
        bool own = step->role == CM_CELL_CONTENTS || step->role == CM_LOCAL;
        below.at = at;
        emptied = step->counted && is_emptied_there(&below, own);
    }
    return emptied;
}

bool
cm_bound_is_emptied(const struct cm_holding *self)
{
    if (cm_metric_is(self)) {
        return true;
    }
    return self->count >= 2 && self->at != 0
           && (is_emptied_there(self, false) || is_emptied_below(self)
               || cm_memo_fills_cache(self));
}

bool
cm_bound_is_made_anew(const struct cm_holding *self)
{
    if (self->count < 2 || self->at == 0) {
        return false;
    }
    struct cm_holding named = named_place(self);
    struct lines lines = lines_of(&named);
    /* `x = [y.detach() for y in x]`, `x[-1] = y` */
    return lines.other > lines.trim + 1 || lines.item > 0
           || cm_emptying_adds_anew(self,
                                    cm_way_name_of(&named, named.at).text);
}

/* ---- a size */

/* rows = np.append(rows, x): each has a place more.  So has that of a frame of
 * pandas, by df.loc[len(df)] = x. */
static bool
is_array_made_longer(const struct cm_holding *self, size_t at)
{
    struct cm_holding array = *self;
    array.at = at;
    return cm_way_is_of(cm_way_module(self, at), "numpy")
           && ((at > 0 && cm_way_is_of(cm_way_module(self, at - 1), "pandas"))
               || (cm_way_is_variable(cm_way_step(self, at))
                   && lines_of(&array).add > 0));
}

/* The deque that each of these has is no bound of how many there are. */
static bool
is_of_each(const struct cm_holding *self, size_t at)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    return at > self->at && place->counted && place->items >= self->through;
}

/* A cached result that itself gets longer: its entries are few, it is not. */
static bool
is_cache_of_longer(const struct cm_holding *self, size_t i)
{
    return self->at > i && cm_way_lru_cache(self) == 0
           && cm_way_is_lru_cache(self, i);
}

bool
cm_bound_is_known(const struct cm_holding *self)
{
    for (size_t i = 0; i < self->count; i++) {
        const struct cm_holding_step *step = cm_way_step(self, i);
        if (step->bounded && !(step->full && self->chained)
            && !is_of_each(self, i) && !is_array_of_lists(self, i)
            && !is_array_made_longer(self, i)
            && !is_cache_of_longer(self, i)) {
            return true;
        }
    }
    return is_history_of_lbfgs(self);
}

/* ---- what a loop leaves */

bool
cm_bound_is_carried(const struct cm_records *records, struct cm_code_id id,
                    struct cm_text_id name)
{
    const struct cm_code *code = cm_records_code(records, id);
    bool carried = id.index == 0 || name.index == 0;
    for (uint32_t i = 0; !carried && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        carried = store->kind == CM_STORE_LOCAL && store->carried
                  && cm_text_same(store->name, name);
    }
    return carried;
}

bool
cm_bound_is_renewed(const struct cm_records *records, struct cm_code_id id,
                    struct cm_text_id name)
{
    const struct cm_code *code = cm_records_code(records, id);
    bool renewed = false;
    for (uint32_t i = 0; id.index != 0 && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        renewed |= store->kind == CM_STORE_LOCAL && store->repeated
                   && cm_text_same(store->name, name);
    }
    return renewed && !cm_bound_is_carried(records, id, name);
}

/* ---- what would empty it */

bool
cm_bound_is_uncalled(const struct cm_holding *self)
{
    return self->uncalled.index != 0;
}

char *
cm_bound_say_uncalled(const struct cm_holding *self)
{
    const struct cm_code *code =
        cm_records_code(self->records, self->uncalled);
    struct cm_way_name name;
    cm_way_name(self, &name);
    return cm_sentence(
        "call %s() where an epoch or a phase ends: it would "
        "empty %s, and no line calls it",
        cm_name_callable(cm_way_text(self, code->qualified_name)), name.text);
}
