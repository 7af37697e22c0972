/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Names are tried from the place outwards.  For each, the pieces of code are
 * searched in their order, those that were running at the allocation first, a
 * person's before any library's; the first with such a line counts.
 * O(names * stores looked at). */

#include "way.h"

#include <stdio.h>

#include "attribute.h"
#include "gradient.h"
#include "item.h"
#include "name.h"
#include "optimizer.h"
#include "place.h"
#include "saved.h"
#include "summed.h"
#include "tee.h"

enum { MOST_NAMES = 4 };

static const char *
edge_of(const struct cm_holding *self, size_t i)
{
    return cm_way_text(self, cm_way_step(self, i)->edge);
}

struct cm_name
cm_way_name_of(const struct cm_holding *self, size_t i)
{
    return cm_name_of_label(self->records, cm_way_step(self, i)->edge);
}

/* ---- how a step is held */

static bool
is_key(const struct cm_holding *self, size_t i)
{
    return cm_way_step(self, i)->role == CM_VALUE
           && cm_way_begins(edge_of(self, i), "['");
}

bool
cm_way_is_module_key(const struct cm_holding *self, size_t i)
{
    struct cm_name name = cm_way_name_of(self, i);
    return is_key(self, i) && i > 1 && cm_way_is_module_table(self, i - 1)
           && cm_name_is_identifier(name.text, strlen(name.text));
}

static bool
is_context_variable(const struct cm_holding *self, size_t i)
{
    return cm_way_begins(edge_of(self, i), "contextvar ");
}

bool
cm_way_is_named(const struct cm_holding *self, size_t step)
{
    return cm_way_is_variable(cm_way_step(self, step)) || is_key(self, step)
           || is_context_variable(self, step);
}

/* The nearest step before `from` that has a name; 0: none. */
static size_t
named_before(const struct cm_holding *self, size_t from)
{
    size_t i = from;
    while (i > 0 && (--i > 0) && !cm_way_is_named(self, i)) {
    }
    return i;
}

/* ---- how it is written */

static void
add(struct cm_way_name *name, const char *text)
{
    size_t length = strlen(name->text);
    snprintf(name->text + length, sizeof name->text - length, "%s", text);
}

/* metrics of metrics['loss']: the last variable on the way to the step. */
static size_t
variable_before(const struct cm_holding *self, size_t step)
{
    while (is_key(self, step) && !cm_way_is_module_key(self, step)
           && named_before(self, step) != 0) {
        step = named_before(self, step);
    }
    return step;
}

/* From that variable on; what has no name is left out. */
static void
spell(const struct cm_holding *self, size_t step, struct cm_way_name *result)
{
    size_t first = variable_before(self, step);
    bool left_out = false;
    result->text[0] = '\0';
    for (size_t i = first; i <= step; i++) {
        if (is_key(self, i) && !cm_way_is_module_key(self, i)) {
            add(result, edge_of(self, i));
        }
        else if (cm_way_is_named(self, i)) {
            add(result, cm_way_name_of(self, i).text);
        }
        else if (!left_out) {
            add(result, "[...]");
        }
        left_out = !cm_way_is_named(self, i);
    }
}

/* ---- the lines that fill or set it */

static bool
is_named(const struct cm_place_search *search, struct cm_text_id id)
{
    return strcmp(cm_place_text(search, id), search->name) == 0;
}

static bool
is_within(const struct cm_place_search *search, const struct cm_store *store)
{
    return strcmp(cm_place_text(search, store->within), search->within) == 0;
}

/* losses.append(x) */
static bool
fills_it(const struct cm_place_search *search, const struct cm_store *store)
{
    return cm_place_fills(search, store) && store->within.index == 0
           && is_named(search, store->owner);
}

/* metrics['loss'].append(x) */
static bool
fills_item(const struct cm_place_search *search, const struct cm_store *store)
{
    return cm_place_fills(search, store) && store->within.index != 0
           && is_named(search, store->owner);
}

/* metrics[name].append(x) */
static bool
fills_any_item(const struct cm_place_search *search,
               const struct cm_store *store)
{
    return cm_place_fills(search, store) && store->owner.index == 0
           && is_within(search, store);
}

/* metrics.setdefault('loss', []).append(x) */
static bool
fills_default(const struct cm_place_search *search,
              const struct cm_store *store)
{
    return store->kind == CM_STORE_CALL
           && strcmp(cm_place_text(search, store->name), "setdefault") == 0
           && strcmp(cm_place_text(search, store->owner), search->within) == 0;
}

/* metrics['loss'] = x */
static bool
sets_item(const struct cm_place_search *search, const struct cm_store *store)
{
    return store->kind == CM_STORE_ITEM && is_named(search, store->name)
           && strcmp(cm_place_text(search, store->owner), search->within) == 0;
}

static bool
sets_variable(const struct cm_place_search *search,
              const struct cm_store *store)
{
    return (store->kind == CM_STORE_LOCAL || store->kind == CM_STORE_CELL
            || store->kind == CM_STORE_GLOBAL)
           && !store->constant && is_named(search, store->name);
}

/* trace.set(x) */
static bool
sets_context(const struct cm_place_search *search,
             const struct cm_store *store)
{
    return store->kind == CM_STORE_CALL && is_named(search, store->owner)
           && strcmp(cm_place_text(search, store->name), "set") == 0;
}

static bool
makes_finalizer(const struct cm_place_search *search,
                const struct cm_store *store)
{
    return store->kind == CM_STORE_CALL && store->decides >= 2
           && strcmp(cm_place_text(search, store->name), "finalize") == 0;
}

/* self[key] = x, self.append(x) */
static bool
fills_itself(const struct cm_place_search *search,
             const struct cm_store *store)
{
    return cm_place_fills(search, store) && store->within.index == 0
           && strcmp(cm_place_text(search, store->owner), "self") == 0;
}

static bool
registers_hook(const struct cm_place_search *search,
               const struct cm_store *store)
{
    const char *name = cm_place_text(search, store->name);
    return store->kind == CM_STORE_CALL && cm_way_begins(name, "register_")
           && strstr(name, "hook") != NULL;
}

void
cm_way_look_on_stack(const struct cm_holding *self,
                     struct cm_place_search *search)
{
    const struct cm_site *site = cm_records_site(self->records, self->site);
    for (uint32_t i = 0; i < site->frame_count && search->count == 0; i++) {
        struct cm_code_id id = site->frames[i].code;
        bool asked = search->only.index == 0 || search->only.index == id.index;
        if (asked && !cm_records_code(self->records, id)->library) {
            cm_place_look_in_frame(search, &site->frames[i]);
        }
    }
}

void
cm_way_look(const struct cm_holding *self, struct cm_place_search *search,
            cm_way_predicate *wanted)
{
    search->is_wanted = wanted;
    cm_way_look_on_stack(self, search);
    for (int library = 0; library < 2 && search->count == 0; library++) {
        for (size_t i = 0; i < self->code_count && search->count == 0; i++) {
            const struct cm_code *code =
                cm_records_code(self->records, self->codes[i]);
            if (code->library == (library != 0)) {
                cm_place_look_in_code(search, self->codes[i]);
            }
        }
    }
}

static void
look_for_key(const struct cm_holding *self, struct cm_place_search *search)
{
    cm_way_predicate *const wanted[] = {fills_item, fills_any_item,
                                        fills_default, sets_item};
    for (size_t i = 0;
         i < sizeof wanted / sizeof wanted[0] && search->count == 0; i++) {
        cm_way_look(self, search, wanted[i]);
    }
}

/* self.rows += [x], self.rows = self.rows + [x] */
static bool
adds_to_attribute(const struct cm_place_search *search,
                  const struct cm_store *store)
{
    return !store->empty && cm_place_sets_attribute(search, store);
}

static bool
adds_to_variable(const struct cm_place_search *search,
                 const struct cm_store *store)
{
    return !store->empty && !store->made && sets_variable(search, store);
}

/* A container of the program's own class, by a method of that. */
static void
look_in_its_methods(const struct cm_holding *self,
                    struct cm_place_search *search)
{
    const struct cm_type *type =
        cm_records_type(self->records, cm_way_step(self, self->at)->type);
    search->is_wanted = fills_itself;
    for (uint32_t i = 0; !type->library && i < type->method_count; i++) {
        cm_place_look_in_code(search, type->methods[i]);
    }
}

/* What fills a container comes before what makes it. */
static void
look_for_variable(const struct cm_holding *self, size_t step,
                  struct cm_place_search *search)
{
    bool of_module = step == 1 && cm_way_step(self, 0)->species == CM_MODULE;
    bool attribute =
        cm_way_is_module_key(self, step)
        || (cm_way_step(self, step)->role == CM_ATTRIBUTE && !of_module);
    if (cm_way_step(self, self->at)->counted) {
        cm_way_look(self, search, fills_it);
        search->within = search->name;
        if (search->count == 0) {
            cm_way_look(self, search, fills_any_item);
        }
        if (search->count == 0) {
            look_in_its_methods(self, search);
        }
        if (search->count == 0) {
            cm_way_look(self, search,
                        attribute ? adds_to_attribute : adds_to_variable);
        }
    }
    if (search->count == 0) {
        cm_way_look(self, search,
                    attribute ? cm_place_sets_attribute : sets_variable);
    }
}

static bool
is_librarys(const struct cm_holding *self, const struct cm_place *places,
            uint32_t count)
{
    return count != 0
           && cm_records_code(self->records, places[0].code)->library;
}

/* An attribute of a library's object. */
static bool
is_in_library(const struct cm_holding *self, size_t step)
{
    const struct cm_type *owner =
        cm_records_type(self->records, cm_way_step(self, step - 1)->type);
    return step > 1 && cm_way_step(self, step)->role == CM_ATTRIBUTE
           && cm_way_step(self, step - 1)->species == CM_OBJECT
           && owner->library;
}

/* One that the library's own code sets: a person's `self.queue` is another. */
static bool
is_set_in_library(const struct cm_holding *self, size_t step)
{
    struct cm_name name = cm_way_name_of(self, step);
    bool found = false;
    for (size_t i = 0;
         is_in_library(self, step) && !found && i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        for (uint32_t k = 0; code->library && !found && k < code->store_count;
             k++) {
            found = code->stores[k].kind == CM_STORE_ATTRIBUTE
                    && cm_way_is(self, code->stores[k].name, name.text);
        }
    }
    return found;
}

/* Its places are no line of the program's: who has the object is asked. */
static bool
goes_on(const struct cm_holding *self, size_t step,
        const struct cm_way_name *name)
{
    return is_librarys(self, name->places, name->place_count)
           || (name->place_count == 0 && is_in_library(self, step))
           || is_set_in_library(self, step);
}

static void
try_name(const struct cm_holding *self, size_t step,
         struct cm_way_name *result)
{
    struct cm_cycle nowhere = {.records = self->records};
    struct cm_name name = cm_way_name_of(self, step);
    struct cm_name within = cm_way_name_of(self, named_before(self, step));
    struct cm_place_search search = {
        .cycle = &nowhere, .name = name.text, .within = within.text};
    if (cm_way_step(self, step)->role == CM_LOCAL) {
        search.only = cm_way_step(self, step - 1)->code;
    }
    if (is_context_variable(self, step)) {
        cm_way_look(self, &search, sets_context);
    }
    else if (is_key(self, step) && !cm_way_is_module_key(self, step)) {
        look_for_key(self, &search);
        if (search.count == 0 && named_before(self, step) != 0
            && cm_way_step(self, self->at)->counted) {
            search.name = within.text;
            look_for_variable(self, named_before(self, step), &search);
        }
    }
    else {
        look_for_variable(self, step, &search);
    }
    *result = (struct cm_way_name){.step = step};
    result->place_count = cm_place_take(&search, result->places);
}

/* Of an attribute: a module has it in one of its tables. */
static size_t
owner_of(const struct cm_holding *self, size_t attribute)
{
    return attribute - (cm_way_is_module_key(self, attribute) ? 2 : 1);
}

/* A method of the class fills or sets the attribute. */
static bool
is_methods(const struct cm_holding *self, size_t attribute,
           const struct cm_code *code)
{
    const struct cm_holding_step *owner =
        cm_way_step(self, owner_of(self, attribute));
    struct cm_name type = cm_name_of_type(self->records, owner->type);
    const char *name = cm_way_text(self, code->qualified_name);
    const char *method = strrchr(name, '.');
    size_t length = strlen(type.text);
    return owner->species == CM_OBJECT && method != NULL
           && (size_t)(method - name) >= length
           && strncmp(method - length, type.text, length) == 0
           && (method - length == name
               || method[-(ptrdiff_t)length - 1] == '.');
}

/* "state" of the line `state.x = y`; empty: it says more, or is a method's
 * `self` that may be another thing. */
static const char *
owner_on_line(const struct cm_holding *self, size_t attribute,
              const struct cm_place *place)
{
    const struct cm_code *code = cm_records_code(self->records, place->code);
    struct cm_name name = cm_way_name_of(self, attribute);
    const char *owner = "";
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        if (store->kind == CM_STORE_ATTRIBUTE && store->line == place->line
            && cm_way_is(self, store->name, name.text)) {
            owner = cm_way_text(self, store->owner);
        }
    }
    return strcmp(owner, "self") == 0 ? "" : owner;
}

void
cm_way_code(const struct cm_holding *self, struct cm_way_name *name)
{
    size_t length = strlen(name->text);
    size_t first = name->step != 0 ? variable_before(self, name->step) : 0;
    const char *owner = "";
    if (first > 1 && name->place_count != 0
        && (cm_way_step(self, first)->role == CM_ATTRIBUTE
            || cm_way_is_module_key(self, first))) {
        owner =
            is_methods(self, first,
                       cm_records_code(self->records, name->places[0].code))
                ? "self"
                : owner_on_line(self, first, &name->places[0]);
    }
    size_t more = strlen(owner);
    if (more != 0 && length + more + 2 <= sizeof name->text) {
        memmove(name->text + more + 1, name->text, length + 1);
        memcpy(name->text, owner, more);
        name->text[more] = '.';
    }
}

void
cm_way_name(const struct cm_holding *self, struct cm_way_name *result)
{
    struct cm_way_name other;
    size_t step = self->count > 1 ? named_before(self, self->at + 1) : 0;
    *result = (struct cm_way_name){.text = "it"};
    if (step == 0) {
        return;
    }
    try_name(self, step, result);
    other = *result;
    for (int i = 0; i < MOST_NAMES && goes_on(self, step, &other); i++) {
        step = named_before(self, step);
        if (step == 0) {
            break;
        }
        try_name(self, step, &other);
        if (other.place_count != 0
            && !is_librarys(self, other.places, other.place_count)) {
            *result = other;
        }
    }
    spell(self, result->step, result);
}

void
cm_way_name_at(const struct cm_holding *self, size_t step,
               struct cm_way_name *result)
{
    struct cm_holding other = *self;
    other.at = step;
    cm_way_name(&other, result);
}

/* ---- where it was made */

uint32_t
cm_way_find(const struct cm_holding *self, cm_way_predicate *wanted,
            const char *name, struct cm_place places[CM_MAX_PLACES])
{
    struct cm_cycle nowhere = {.records = self->records};
    struct cm_place_search search = {.cycle = &nowhere, .name = name};
    struct cm_place found[CM_MAX_PLACES];
    cm_way_look(self, &search, wanted);
    uint32_t count = cm_place_take(&search, found);
    if (is_librarys(self, found, count)) {
        return 0;
    }
    memcpy(places, found, count * sizeof *places);
    return count;
}

/* The call in whose line the hook was made, else all of them. */
static uint32_t
find_hook_calls(const struct cm_holding *self, size_t function,
                struct cm_place places[CM_MAX_PLACES])
{
    struct cm_cycle nowhere = {.records = self->records};
    struct cm_place_search search = {.cycle = &nowhere};
    const struct cm_code *hook =
        cm_records_code(self->records, cm_way_step(self, function)->code);
    cm_way_look(self, &search, registers_hook);
    for (uint32_t i = 0; i < search.count; i++) {
        const struct cm_place *place = &search.found[i].place;
        const struct cm_code *code =
            cm_records_code(self->records, place->code);
        if (place->line == hook->first_line
            && cm_text_same(code->filename, hook->filename)) {
            search.found[0] = search.found[i];
            search.count = 1;
        }
    }
    struct cm_place found[CM_MAX_PLACES];
    uint32_t count = cm_place_take(&search, found);
    if (is_librarys(self, found, count)) {
        return 0;
    }
    memcpy(places, found, count * sizeof *places);
    return count;
}

/* torch fills its own tables for whoever uses it: nobody's line to edit. */
static bool
is_frameworks(const struct cm_holding *self, const struct cm_way_name *name)
{
    return is_librarys(self, name->places, name->place_count)
           && (cm_way_is_module_table(self, name->step)
               || cm_way_is_optimizer_table(self, name->step)
               || cm_gradient_lingers(self));
}

uint32_t
cm_holding_made(const struct cm_holding *self,
                struct cm_place places[CM_MAX_PLACES])
{
    struct cm_way_name name;
    size_t hooks = self->count > 1 ? cm_way_hooks(self) : 0;
    size_t cache = self->count > 1 ? cm_way_lru_cache(self) : 0;
    size_t lone = cm_way_lone_hook(self);
    if (hooks != 0 || lone != 0) {
        return find_hook_calls(self, hooks != 0 ? hooks + 1 : lone, places);
    }
    if (cache != 0) {
        return cm_way_decorator(self, cache, places);
    }
    if (cm_way_finalizer(self) != 0) {
        /* The line that fills the registry is weakref.py's. */
        return cm_way_find(self, makes_finalizer, NULL, places);
    }
    uint32_t added = self->count > 1 ? cm_optimizer_made(self, places) : 0;
    added = added != 0 ? added : cm_attribute_made(self, places);
    added = added != 0 ? added : cm_saved_made(self, places);
    added = added != 0 ? added : cm_tee_made_cycle(self, places);
    added = added != 0 ? added : cm_summed_made(self, places);
    if (added != 0) {
        return added;
    }
    if (cm_item_is_given(self)) {
        return cm_item_made(self, places);
    }
    cm_way_name(self, &name);
    if (is_frameworks(self, &name)) {
        return cm_gradient_made(self, places);
    }
    memcpy(places, name.places, name.place_count * sizeof *places);
    return name.place_count;
}
