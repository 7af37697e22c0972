/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "summed.h"

#include <string.h>

#include "kept.h"
#include "name.h"
#include "place.h"
#include "way.h"

static bool
adds_to_itself(const struct cm_store *store)
{
    return store->kind == CM_STORE_ATTRIBUTE && store->name.index != 0
           && cm_text_same(store->key, store->name);
}

static bool
is_added_to(const struct cm_code *code, struct cm_text_id name)
{
    for (uint32_t i = 0; i < code->store_count; i++) {
        if (adds_to_itself(&code->stores[i])
            && cm_text_same(code->stores[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* That the attribute is made of in this code. */
static struct cm_text_id
sum_in(const struct cm_holding *self, const struct cm_code *code,
       const char *name)
{
    struct cm_text_id none = {0};
    for (uint32_t i = 0; !code->library && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        if (store->kind == CM_STORE_ATTRIBUTE && !adds_to_itself(store)
            && cm_way_is(self, store->name, name)
            && is_added_to(code, store->key)) {
            return store->key;
        }
    }
    return none;
}

static bool
is_attribute_with_graph(const struct cm_holding *self)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    return self->autograd_depth != 0 && place->role == CM_ATTRIBUTE
           && cm_way_is_tensor(place);
}

struct cm_text_id
cm_summed_in(const struct cm_holding *self)
{
    struct cm_text_id sum = {0};
    if (!is_attribute_with_graph(self)) {
        return sum;
    }
    struct cm_name name = cm_way_name_of(self, self->at);
    for (size_t i = 0; sum.index == 0 && i < self->code_count; i++) {
        sum = sum_in(self, cm_records_code(self->records, self->codes[i]),
                     name.text);
    }
    return sum;
}

/* ---- what is said */

/* Not `total /= n` behind the loop, nor, of an attribute, in another function
 * than `+=`. */
static bool
is_mixed(const struct cm_holding *self, const struct cm_code *own,
         const struct cm_store *store)
{
    bool once = store->kind == CM_STORE_LOCAL
                || cm_way_is(self, own->name, "<module>");
    bool mixed = store->repeated || !once;
    for (size_t i = 0; mixed && i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        for (uint32_t k = 0; k < code->store_count; k++) {
            const struct cm_store *other = &code->stores[k];
            bool beside = code == own && other->repeated == store->repeated;
            mixed &= beside || other->scaled || !adds_to_itself(other)
                     || !cm_text_same(other->name, store->name);
        }
    }
    return mixed;
}

/* Of one name a variable and an attribute are two. */
static bool
scales(const struct cm_holding *self, const struct cm_code *code,
       const char *name)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    bool of_module =
        self->at == 1 && cm_way_step(self, 0)->species == CM_MODULE;
    bool attribute = place->role == CM_ATTRIBUTE && !of_module;
    bool found = false;
    for (uint32_t i = 0; !code->library && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        found |= store->scaled
                 && (store->kind == CM_STORE_ATTRIBUTE) == attribute
                 && cm_way_is(self, store->name, name)
                 && is_mixed(self, code, store);
    }
    return found;
}

/* Of a local, the function that has it; 0: any. */
static uint32_t
own_code(const struct cm_holding *self)
{
    return cm_way_step(self, self->at)->role == CM_LOCAL
               ? cm_way_step(self, self->at - 1)->code.index
               : 0;
}

static bool
is_scaled(const struct cm_holding *self, const char *name)
{
    uint32_t only = own_code(self);
    bool found = false;
    for (size_t i = 0; i < self->code_count; i++) {
        struct cm_code_id id = self->codes[i];
        found |= (only == 0 || only == id.index)
                 && scales(self, cm_records_code(self->records, id), name);
    }
    return found;
}

/* What this code's lines add to it: a text, "(...)" of several; NULL: no line
 * does. */
static const char *
added_in(const struct cm_holding *self, const struct cm_code *code,
         const char *name)
{
    const char *added = NULL;
    for (uint32_t i = 0; !code->library && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        const char *one = cm_way_text(self, store->added);
        if (store->added.index != 0 && cm_way_is(self, store->name, name)) {
            added = added == NULL || strcmp(added, one) == 0 ? one : "(...)";
        }
    }
    return added;
}

static const char *
added_to(const struct cm_holding *self, const char *name)
{
    uint32_t only = own_code(self);
    const char *added = NULL;
    for (size_t i = 0; added == NULL && i < self->code_count; i++) {
        struct cm_code_id id = self->codes[i];
        if (only == 0 || only == id.index) {
            added = added_in(self, cm_records_code(self->records, id), name);
        }
    }
    return added != NULL ? added : cm_kept_name(self, "loss");
}

char *
cm_summed_say(const struct cm_holding *self)
{
    struct cm_way_name place, written;
    struct cm_text_id sum = cm_summed_in(self);
    const char *name = cm_way_text(self, sum);
    cm_way_name(self, &place);
    written = place;
    cm_way_code(self, &written);
    if (is_scaled(self, sum.index != 0 ? name : place.text)) {
        return cm_sentence("mix in numbers (`.item()`), or detach() what is "
                           "mixed in: %s keeps the graph of every iteration",
                           sum.index != 0 ? name : place.text);
    }
    if (sum.index != 0) {
        return cm_sentence(
            "write `%s += %s.item()`, or detach() what is added: "
            "it keeps the graph of every iteration, and %s is "
            "made of it",
            name, added_to(self, name), place.text);
    }
    return cm_sentence(
        "write `%s += %s.item()`, or detach() what is added: %s "
        "keeps the graph of every iteration",
        written.text, added_to(self, cm_way_name_of(self, self->at).text),
        place.text);
}

static bool
adds_to_it(const struct cm_place_search *search, const struct cm_store *store)
{
    return adds_to_itself(store)
           && strcmp(cm_place_text(search, store->name), search->name) == 0;
}

/* ---- sums by name: sums[name] = sums[name] + x, sums[name] += x */

/* The dict that has them, of which the place may be one item; 0: none. */
static size_t
dict_of(const struct cm_holding *self)
{
    const struct cm_holding_step *last = cm_way_step(self, self->count - 1);
    size_t at = self->at;
    bool scalar = self->autograd_depth > 0 && cm_way_is_tensor(last)
                  && strstr(cm_way_text(self, last->annotation), " []");
    if (at > 1 && cm_way_is_tensor(cm_way_step(self, at))
        && cm_way_step(self, at)->role == CM_VALUE) {
        at--;
    }
    const struct cm_holding_step *dict = cm_way_step(self, at);
    return scalar && dict->counted && dict->species == CM_DICT
                   && cm_way_is_variable(dict)
               ? at
               : 0;
}

static bool
is_of_key(const struct cm_store *store, const struct cm_store *item)
{
    return store->kind == CM_STORE_READ && store->line == item->line
           && cm_text_same(store->owner, item->owner)
           && cm_text_same(store->key, item->key);
}

/* The line of this code that puts there what it has read there; NULL: none. */
static const struct cm_store *
line_by_key(const struct cm_holding *self, const struct cm_code *code,
            const char *name)
{
    for (uint32_t i = 0; !code->library && i < code->store_count; i++) {
        const struct cm_store *item = &code->stores[i];
        bool its = item->kind == CM_STORE_ITEM && item->name.index == 0
                   && item->key.index != 0
                   && cm_way_is(self, item->owner, name);
        for (uint32_t k = 0; its && k < code->store_count; k++) {
            if (is_of_key(&code->stores[k], item)) {
                return item;
            }
        }
    }
    return NULL;
}

static const struct cm_store *
find_by_key(const struct cm_holding *self, struct cm_place *place)
{
    size_t dict = self->count > 1 ? dict_of(self) : 0;
    struct cm_name name = cm_way_name_of(self, dict);
    struct cm_code_id only = {0};
    const struct cm_store *line = NULL;
    if (dict != 0 && cm_way_step(self, dict)->role == CM_LOCAL) {
        only = cm_way_step(self, dict - 1)->code;
    }
    for (size_t i = 0; dict != 0 && line == NULL && i < self->code_count;
         i++) {
        struct cm_code_id id = self->codes[i];
        if (only.index == 0 || only.index == id.index) {
            line = line_by_key(self, cm_records_code(self->records, id),
                               name.text);
            *place = (struct cm_place){.code = id,
                                       .line = line != NULL ? line->line : 0,
                                       .certain = true};
        }
    }
    return line;
}

bool
cm_summed_by_key(const struct cm_holding *self)
{
    struct cm_place place;
    return find_by_key(self, &place) != NULL;
}

char *
cm_summed_say_by_key(const struct cm_holding *self)
{
    struct cm_way_name name;
    struct cm_place place;
    const struct cm_store *line = find_by_key(self, &place);
    cm_way_name_at(self, dict_of(self), &name);
    cm_way_code(self, &name);
    return cm_sentence("add numbers (`.item()`) to `%s[%s]`, or detach() what "
                       "is added: it keeps the graph of every iteration",
                       name.text, cm_way_text(self, line->key));
}

static bool
adds_there(const struct cm_holding *self, const struct cm_place *place,
           const char *name)
{
    const struct cm_code *code = cm_records_code(self->records, place->code);
    bool found = false;
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        found |= store->line == place->line && adds_to_itself(store)
                 && cm_way_is(self, store->name, name);
    }
    return found;
}

static bool
is_scalar_attribute(const struct cm_holding *self)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    return is_attribute_with_graph(self)
           && strstr(cm_way_text(self, place->annotation), " []") != NULL;
}

/* Of several lines that set the attribute, those that make it of itself. */
static uint32_t
own_lines(const struct cm_holding *self, struct cm_place places[CM_MAX_PLACES])
{
    struct cm_way_name name;
    uint32_t count = 0;
    cm_way_name(self, &name);
    bool known = name.place_count != 0 && name.places[0].certain;
    for (uint32_t i = 0; !known && i < name.place_count; i++) {
        if (adds_there(self, &name.places[i], name.text)) {
            places[count++] = name.places[i];
        }
    }
    if (count == 1) {
        places[0].certain = true;
    }
    return count;
}

uint32_t
cm_summed_made(const struct cm_holding *self,
               struct cm_place places[CM_MAX_PLACES])
{
    struct cm_text_id sum = cm_summed_in(self);
    if (find_by_key(self, &places[0]) != NULL) {
        return 1;
    }
    if (sum.index != 0) {
        return cm_way_find(self, adds_to_it, cm_way_text(self, sum), places);
    }
    return is_scalar_attribute(self) ? own_lines(self, places) : 0;
}
