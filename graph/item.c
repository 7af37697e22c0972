/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Told from a container that is filled by the lines that were running at the
 * allocation: one of them sets an attribute (or a key) of something that is
 * not `self`, by a name that stands on the way below an item, and none of them
 * fills the container. */

#include "item.h"

#include "bound.h"
#include "emptying.h"
#include "name.h"
#include "place.h"
#include "way.h"

static bool
is_name(const struct cm_place_search *search, struct cm_text_id id)
{
    return strcmp(cm_place_text(search, id), search->name) == 0;
}

static bool
gives(const struct cm_place_search *search, const struct cm_store *store)
{
    bool sets = store->kind == CM_STORE_ATTRIBUTE
                || (store->kind == CM_STORE_ITEM && store->within.index == 0);
    return sets && !store->constant && is_name(search, store->name)
           && store->owner.index != 0
           && strcmp(cm_place_text(search, store->owner), "self") != 0
           && strcmp(cm_place_text(search, store->owner), search->within) != 0;
}

/* container.append(...), container[key] = ... */
static bool
fills(const struct cm_place_search *search, const struct cm_store *store)
{
    return cm_place_fills(search, store)
           && (is_name(search, store->owner)
               || strcmp(cm_place_text(search, store->within), search->name)
                      == 0);
}

static void
look(const struct cm_holding *self, const char *name, const char *container,
     bool (*wanted)(const struct cm_place_search *search,
                    const struct cm_store *store),
     struct cm_place_search *search)
{
    struct cm_cycle cycle = {.records = self->records};
    *search = (struct cm_place_search){.cycle = &cycle,
                                       .name = name,
                                       .within = container,
                                       .is_wanted = wanted};
    cm_way_look_on_stack(self, search);
    search->cycle = NULL;
}

/* By a method of whose attribute it is: `self.rows.append(row)`. */
static bool
is_filled_by_owner(const struct cm_holding *self, const char *name)
{
    const struct cm_type *type =
        cm_records_type(self->records, cm_way_step(self, self->at - 1)->type);
    struct cm_cycle cycle = {.records = self->records};
    struct cm_place_search search = {
        .cycle = &cycle, .name = name, .is_wanted = fills};
    for (uint32_t i = 0; i < type->method_count; i++) {
        cm_place_look_in_code(&search, type->methods[i]);
    }
    return search.count != 0;
}

/* The step that is given, with the lines; 0: none. */
static size_t
find(const struct cm_holding *self, struct cm_place_search *search)
{
    *search = (struct cm_place_search){0};
    if (self->count < 2 || self->at == 0
        || !cm_way_step(self, self->at)->counted
        || !cm_way_is_named(self, self->at)) {
        return 0;
    }
    struct cm_name container = cm_way_name_of(self, self->at);
    if (is_filled_by_owner(self, container.text)) {
        return 0;
    }
    look(self, container.text, "", fills, search);
    for (size_t i = self->count - 1; search->count == 0 && i > self->at + 1;
         i--) {
        if (cm_way_is_named(self, i)) {
            look(self, cm_way_name_of(self, i).text, container.text, gives,
                 search);
        }
        if (search->count != 0) {
            return i;
        }
    }
    return 0;
}

bool
cm_item_is_given(const struct cm_holding *self)
{
    struct cm_place_search search;
    return find(self, &search) != 0;
}

char *
cm_item_say(const struct cm_holding *self)
{
    struct cm_place_search search;
    struct cm_name name = cm_way_name_of(self, find(self, &search));
    struct cm_way_name container;
    cm_way_name(self, &container);
    const char *kept = self->kept != NULL ? self->kept : name.text;
    return self->autograd_depth > 0
               ? cm_sentence(
                   "each item of %s keeps its %s and the graph "
                   "behind it: keep `%s.detach()`, or delete it when "
                   "it has been used",
                   container.text, name.text, kept)
               : cm_sentence("each item of %s keeps its %s: delete that when "
                             "it has been used, or keep less in it (%s)",
                             container.text, name.text, cm_way_less(self));
}

/* container > item > .attribute: behind an object or a tuple there they could
 * be a chain. */
static bool
is_attribute_of_item(const struct cm_holding *self)
{
    size_t at = self->at;
    return self->count == at + 3 && cm_way_step(self, at)->counted
           && cm_way_step(self, at + 1)->species == CM_OBJECT
           && cm_way_step(self, at + 2)->role == CM_ATTRIBUTE
           && cm_way_is_tensor(cm_way_step(self, at + 2));
}

/* Not a few of them beside what piles up elsewhere. */
static bool
are_all_there(const struct cm_holding *self)
{
    return self->through + self->through / 8 + 2 >= self->targets;
}

bool
cm_item_fills(const struct cm_holding *self)
{
    return self->count > 2 && are_all_there(self) && self->at != 0
           && is_attribute_of_item(self)
           && cm_way_step(self, self->at)->items >= self->through
           && self->autograd_depth == 0 && !self->chained && self->chain == 0
           && !cm_way_is_category(self, CM_HOLDING_LARGER)
           && !cm_item_is_given(self);
}

/* Those that are over: how many are there at a time is not known. */
static bool
are_taken_out(const struct cm_holding *self)
{
    struct cm_name name = cm_way_name_of(self, self->at);
    bool taken = false;
    for (size_t i = 0; i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        for (uint32_t k = 0; !taken && k < code->store_count; k++) {
            taken = cm_emptying_removes(self, &code->stores[k], name.text);
        }
    }
    return taken;
}

bool
cm_item_has_bound_alone(const struct cm_holding *self)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    struct cm_holding above = *self;
    above.count = self->at + 1;
    return place->counted && place->items < self->through
           && (place->keys == CM_KEYS_UNKNOWN
               || cm_holding_keys_count(place->keys))
           && !are_taken_out(self) && !cm_bound_is_known(&above)
           && !cm_bound_is_emptied(&above);
}

uint32_t
cm_item_made(const struct cm_holding *self,
             struct cm_place places[CM_MAX_PLACES])
{
    struct cm_place_search search;
    struct cm_cycle cycle = {.records = self->records};
    (void)find(self, &search);
    search.cycle = &cycle;
    return cm_place_take(&search, places);
}
