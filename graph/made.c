/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Each finder says which stores count, with one predicate over a store, lets
 * place.c search, and when nothing was found says what was looked for.
 * O(stores looked at); the pieces of code are bounded. */

#include "made.h"

#include <stdio.h>
#include <string.h>

#include "made_private.h"
#include "name.h"
#include "place.h"
#include "../detector/alloc.h"

void
cm_made_release(struct cm_made *self)
{
    cm_free(self->reason);
    *self = (struct cm_made){0};
}

const struct cm_code *
cm_made_code_of(const struct cm_cycle *cycle, struct cm_code_id code)
{
    return cm_records_code(cycle->records, code);
}

struct cm_made_line
cm_made_line_of(const struct cm_cycle *cycle, cm_made_finder *find,
                const struct cm_suspect *suspect)
{
    struct cm_made made = {.place_count = 0};
    struct cm_made_line line = {""};

    if (find(cycle, suspect, &made) == CM_OK && made.place_count > 0) {
        const struct cm_code *code =
            cm_made_code_of(cycle, made.places[0].code);
        const char *file = cm_records_text(cycle->records, code->filename);

        snprintf(line.text, sizeof line.text, "%s:%u", cm_name_basename(file),
                 made.places[0].line);
    }
    cm_made_release(&made);
    return line;
}

/* What a store looks like */

static bool
is_local_store(const struct cm_place_search *self,
               const struct cm_store *store)
{
    return (store->kind == CM_STORE_LOCAL || store->kind == CM_STORE_CELL
            || store->kind == CM_STORE_GLOBAL)
           && !store->constant
           && strcmp(cm_place_text(self, store->name), self->name) == 0;
}

/* A filling of the container that goes by this name, or of one in it. */
static bool
is_filling_of(const struct cm_place_search *self, const struct cm_store *store)
{
    return cm_place_fills(self, store)
           && (strcmp(cm_place_text(self, store->owner), self->name) == 0
               || strcmp(cm_place_text(self, store->within), self->name) == 0);
}

/* x['name'] = ... */
static bool
is_item_store(const struct cm_place_search *self, const struct cm_store *store)
{
    return store->kind == CM_STORE_ITEM
           && strcmp(cm_place_text(self, store->name), self->name) == 0;
}

/* x.__dict__ or vars(x) */
static bool
is_own_dict(const struct cm_place_search *self, struct cm_text_id name)
{
    const char *text = cm_place_text(self, name);

    return strcmp(text, "__dict__") == 0 || strcmp(text, "vars") == 0;
}

/* x.__dict__['name'] = ... */
static bool
is_dict_store(const struct cm_place_search *self, const struct cm_store *store)
{
    return is_item_store(self, store) && is_own_dict(self, store->owner);
}

/* setattr(x, name, ...), x.__dict__.update(...): of any name. */
static bool
sets_any_attribute(const struct cm_place_search *self,
                   const struct cm_store *store)
{
    const char *name = cm_place_text(self, store->name);

    if (store->kind == CM_STORE_ATTRIBUTE) {
        return !store->constant && strcmp(name, "__dict__") == 0;
    }
    return (store->kind == CM_STORE_CALL && strstr(name, "setattr") != NULL)
           || (cm_place_fills(self, store) && is_own_dict(self, store->owner));
}

static bool
is_making(const struct cm_place_search *self, const struct cm_store *store)
{
    return store->kind == CM_STORE_FUNCTION
           && strcmp(cm_place_text(self, store->name), self->name) == 0;
}

/* What is chosen */

void
cm_made_choose(struct cm_place_search *self, struct cm_made *result)
{
    cm_place_sort(self);
    for (uint32_t i = 0; i < self->count && i < CM_MAX_PLACES; i++) {
        result->places[i] = self->found[i].place;
        result->places[i].certain = self->count == 1;
        result->place_count++;
    }
    result->made = self->count > 0 && self->found[0].made;
}

void
cm_made_choose_only(struct cm_place place, struct cm_made *result)
{
    place.certain = true;
    result->places[0] = place;
    result->place_count = 1;
}

enum cm_status
cm_made_explain(struct cm_made *result, char *reason)
{
    result->reason = reason;
    return reason != NULL ? CM_OK : CM_NO_MEMORY;
}

/* The finders */

enum cm_status
cm_made_by_torch(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect, struct cm_made *result)
{
    (void)cycle;
    (void)suspect;
    return cm_made_explain(result,
                           cm_sentence("torch keeps what the pack hook of "
                                       "saved_tensors_hooks returned"));
}

enum cm_status
cm_made_nowhere(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
                struct cm_made *result)
{
    uint32_t edge = cm_cycle_next(cycle, 0, CM_ROLES_ALL);
    bool named = false;

    (void)suspect;
    for (; edge != 0 && !named;
         edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) {
        named = cm_cycle_edge(cycle, edge)->label.index != 0;
    }
    return cm_made_explain(
        result, cm_sentence(named ? "no rule knows this kind of cycle"
                                  : "the references of this cycle have no "
                                    "names"));
}

/* Two lambdas of one function share their qualified name: the line tells. */
struct cm_place
cm_made_place_of_function(const struct cm_cycle *cycle,
                          const struct cm_suspect *suspect)
{
    struct cm_code_id id = cm_cycle_node(cycle, suspect->maker)->code;
    const struct cm_code *code = cm_made_code_of(cycle, id);
    struct cm_place_search search = {.cycle = cycle, .is_wanted = is_making};
    struct cm_place own = {.code = id, .line = code->first_line};

    search.name = cm_place_text(&search, code->qualified_name);
    if (search.name[0] != '\0') {
        cm_place_look_around(&search, suspect->owner);
    }
    for (uint32_t i = 0; i < search.count; i++) {
        struct cm_place place = search.found[i].place;

        if (cm_text_same(cm_made_code_of(cycle, place.code)->filename,
                         code->filename)
            && (place.line == own.line || search.count == 1)) {
            return place;
        }
    }
    return own;
}

enum cm_status
cm_made_by_function(const struct cm_cycle *cycle,
                    const struct cm_suspect *suspect, struct cm_made *result)
{
    struct cm_place place = {.line = 0};

    if (suspect->maker != 0) {
        place = cm_made_place_of_function(cycle, suspect);
    }
    if (place.line == 0) {
        return cm_made_explain(
            result, cm_sentence("the code of the function is not known"));
    }
    cm_made_choose_only(place, result);
    return CM_OK;
}

/* Of an edge; "" for none. */
struct cm_name
cm_made_name_of(const struct cm_cycle *cycle, uint32_t edge)
{
    return edge != 0 ? cm_cycle_edge_name(cycle, edge) : (struct cm_name){""};
}

/* How many links of the cycle bear this name. */
static uint32_t
count_links(const struct cm_cycle *cycle, const char *name)
{
    uint32_t edge = 0, count = 0;
    struct cm_link link;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        if (cm_cycle_link(cycle, edge, &link)
            && strcmp(cm_made_name_of(cycle, edge).text, name) == 0) {
            count++;
        }
    }
    return count;
}

/* When one piece of code makes all the links of one name, the last of its
 * stores is the one that closes the cycle. */
static void
keep_closing_store(struct cm_place_search *self)
{
    cm_place_sort(self);
    for (uint32_t i = 1; i < self->count; i++) {
        if (self->found[i].place.code.index
            != self->found[0].place.code.index) {
            return;
        }
    }
    if (self->count > 1
        && self->count <= count_links(self->cycle, self->name)) {
        self->found[0] = self->found[self->count - 1];
        self->count = 1;
    }
}

static enum cm_status
explain_attribute(const struct cm_cycle *cycle,
                  const struct cm_suspect *suspect, const char *name,
                  bool generated, struct cm_made *result)
{
    struct cm_type_id type = cm_cycle_node(cycle, suspect->owner)->type;
    struct cm_name owner = cm_name_of_type(cycle->records, type);

    if (generated) {
        return cm_made_explain(result,
                               cm_sentence("an __init__ that a library made "
                                           "for %s stores .%s",
                                           owner.text, name));
    }
    return cm_made_explain(
        result, cm_sentence("no store of .%s in %s's methods or in the "
                            "functions that allocated the tensor",
                            name, owner.text));
}

/* Node(value, parent=self) */
static bool
is_call_of_class(const struct cm_place_search *self,
                 const struct cm_store *store)
{
    return store->kind == CM_STORE_HAND && store->owner.index != 0
           && strcmp(cm_place_text(self, store->name), self->name) == 0;
}

/* A class whose __init__ stands in no file: the lines that make its objects,
 * with another one as an argument. */
static void
look_for_calls(struct cm_place_search *self, uint32_t owner)
{
    struct cm_type_id type = cm_cycle_node(self->cycle, owner)->type;
    struct cm_name name = cm_name_of_type(self->cycle->records, type);
    struct cm_place_search calls = {.cycle = self->cycle,
                                    .is_wanted = is_call_of_class,
                                    .name = name.text};

    cm_place_look_around(&calls, owner);
    cm_place_sort(&calls);
    calls.name = self->name;
    if (!cm_place_is_library(&calls)) {
        *self = calls;
    }
}

static bool
leads_into_container(const struct cm_cycle *cycle, uint32_t edge)
{
    return cm_cycle_is_container(cycle, cm_cycle_edge(cycle, edge)->head);
}

enum cm_status
cm_made_by_attribute(const struct cm_cycle *cycle,
                     const struct cm_suspect *suspect, struct cm_made *result)
{
    static bool (*const stores[])(const struct cm_place_search *search,
                                  const struct cm_store *store) = {
        cm_place_sets_attribute, is_dict_store, sets_any_attribute};
    struct cm_name name = cm_made_name_of(cycle, suspect->held);
    struct cm_place_search search = {
        .cycle = cycle, .is_wanted = is_filling_of, .name = name.text};

    if (suspect->edge != suspect->held
        || leads_into_container(cycle, suspect->held)) {
        cm_place_look_around(&search, suspect->owner);
    }
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        if (search.count == 0) {
            search.is_wanted = stores[i];
            cm_place_look_around(&search, suspect->owner);
        }
    }
    keep_closing_store(&search);
    cm_place_prefer_callers(&search, suspect->owner);
    /* What a library does with names of its own says nothing about this one. */
    if (search.is_wanted == sets_any_attribute
        && cm_place_is_library(&search)) {
        search.count = 0;
    }
    bool generated = cm_place_is_generated(&search);
    if (generated) {
        look_for_calls(&search, suspect->owner);
    }
    if (!generated || !cm_place_is_generated(&search)) {
        cm_made_choose(&search, result);
    }
    return result->place_count > 0
               ? CM_OK
               : explain_attribute(cycle, suspect, name.text, generated,
                                   result);
}

enum cm_status
cm_made_by_link(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
                struct cm_made *result)
{
    bool function =
        suspect->maker != 0
        && cm_cycle_node(cycle, suspect->maker)->species == CM_FUNCTION;

    return function ? cm_made_by_function(cycle, suspect, result)
                    : cm_made_by_attribute(cycle, suspect, result);
}

/* x.NAME(self.method), where the attribute x is an object of a library's. */
static bool
is_handed_to(const struct cm_place_search *self, const struct cm_store *store)
{
    static const char *const calls[] = {
        "callback",     "push",         "push_async_callback",
        "add_callback", "connect",      "subscribe",
        "register",     "add_argument", NULL,
    };
    const char *name = cm_place_text(self, store->name);
    bool found = false;

    for (size_t i = 0; calls[i] != NULL && !found; i++) {
        found = strcmp(name, calls[i]) == 0;
    }
    return found && store->kind == CM_STORE_CALL
           && strcmp(cm_place_text(self, store->owner), self->name) == 0;
}

/* A future is called otherwise when it gets the method. */
static bool
is_given_to_future(const struct cm_place_search *self,
                   const struct cm_store *store)
{
    return store->kind == CM_STORE_CALL
           && strcmp(cm_place_text(self, store->name), "add_done_callback")
                  == 0;
}

/* The library's object was made before it was given the method. */
static void
look_for_handing_on(const struct cm_cycle *cycle,
                    const struct cm_suspect *suspect, struct cm_made *result)
{
    struct cm_name name = cm_made_name_of(cycle, suspect->held);
    struct cm_place_search search = {
        .cycle = cycle, .is_wanted = is_handed_to, .name = name.text};

    cm_place_look_around(&search, suspect->owner);
    if (search.count == 0) {
        search.is_wanted = is_given_to_future;
        cm_place_look_around(&search, suspect->owner);
    }
    cm_place_sort(&search);
    if (!cm_place_is_library(&search)) {
        cm_made_choose(&search, result);
    }
}

/* layer.forward = MethodType(function, layer), where nobody looks: the function
 * is the program's own. */
enum cm_status
cm_made_by_method(const struct cm_cycle *cycle,
                  const struct cm_suspect *suspect, struct cm_made *result)
{
    uint32_t method = cm_cycle_edge(cycle, suspect->edge)->tail;
    struct cm_code_id id = cm_cycle_node(cycle, method)->code;
    const struct cm_code *code = cm_made_code_of(cycle, id);
    enum cm_status status;

    if (suspect->handed_on) {
        look_for_handing_on(cycle, suspect, result);
    }
    if (result->place_count != 0) {
        return CM_OK;
    }
    status = cm_made_by_attribute(cycle, suspect, result);
    if (status == CM_OK && result->place_count == 0 && code->first_line != 0
        && !code->library) {
        cm_made_release(result);
        result->places[0] =
            (struct cm_place){.code = id, .line = code->first_line};
        result->place_count = 1;
    }
    return status;
}

/* A parameter is stored by no instruction: then the function's own line. */
static void
choose_frame(const struct cm_cycle *cycle, uint32_t frame,
             struct cm_made *result)
{
    const struct cm_node *node = cm_cycle_node(cycle, frame);
    const struct cm_code *code = cm_made_code_of(cycle, node->code);
    uint32_t line = code->first_line != 0 ? code->first_line : node->line;

    if (line != 0) {
        result->places[0] =
            (struct cm_place){.code = node->code, .line = line};
        result->place_count = 1;
    }
}

static void
look_in_maker(struct cm_place_search *self, uint32_t maker)
{
    if (maker == 0) {
        cm_place_look_at_members(self);
    }
    else {
        cm_place_look_in_code(self, cm_cycle_node(self->cycle, maker)->code);
    }
}

enum cm_status
cm_made_by_local(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect, struct cm_made *result)
{
    struct cm_name name = cm_made_name_of(cycle, suspect->held);
    struct cm_place_search search = {
        .cycle = cycle, .is_wanted = is_local_store, .name = name.text};

    /* What fills a list closes the cycle, not what makes it. */
    if (leads_into_container(cycle, suspect->held)) {
        search.is_wanted = is_filling_of;
        look_in_maker(&search, suspect->maker);
    }
    if (search.count == 0) {
        search.is_wanted = is_local_store;
        look_in_maker(&search, suspect->maker);
    }
    cm_made_choose(&search, result);
    if (result->place_count == 0 && suspect->maker != 0) {
        choose_frame(cycle, suspect->maker, result);
    }
    return result->place_count > 0
               ? CM_OK
               : cm_made_explain(result,
                                 cm_sentence("no store of %s in the code that "
                                             "stands in the cycle",
                                             name.text));
}

enum cm_status
cm_made_by_closure(const struct cm_cycle *cycle,
                   const struct cm_suspect *suspect, struct cm_made *result)
{
    return suspect->maker != 0 ? cm_made_by_function(cycle, suspect, result)
                               : cm_made_by_local(cycle, suspect, result);
}

/* By the key that the suspect edge shows (d['up'] = ...), by the name of the
 * container (pool.append(...)), else any filling. */
enum cm_status
cm_made_by_filling(const struct cm_cycle *cycle,
                   const struct cm_suspect *suspect, struct cm_made *result)
{
    struct cm_name key = cm_made_name_of(cycle, suspect->edge);
    struct cm_name name = cm_made_name_of(cycle, suspect->held);
    struct cm_place_search search = {
        .cycle = cycle, .is_wanted = is_item_store, .name = key.text};

    if (cm_cycle_edge(cycle, suspect->edge)->role == CM_VALUE) {
        cm_place_look_around(&search, suspect->owner);
    }
    if (search.count == 0 && suspect->held != 0) {
        search.is_wanted = is_filling_of;
        search.name = name.text;
        cm_place_look_around(&search, suspect->owner);
    }
    if (search.count == 0) {
        search.is_wanted = cm_place_fills;
        cm_place_look_around(&search, suspect->owner);
    }
    cm_made_choose(&search, result);
    return result->place_count > 0
               ? CM_OK
               : cm_made_explain(
                   result, cm_sentence("no call that fills a container in the "
                                       "functions that allocated the tensor"));
}

enum cm_status
cm_made_by_holder(const struct cm_cycle *cycle,
                  const struct cm_suspect *suspect, struct cm_made *result)
{
    uint8_t role = cm_cycle_edge(cycle, suspect->edge)->role;
    struct cm_link link;

    if (cm_cycle_link(cycle, suspect->edge, &link)) {
        struct cm_suspect attribute = *suspect;

        attribute.owner = link.owner;
        attribute.held = link.edge;
        return cm_made_by_attribute(cycle, &attribute, result);
    }
    return role == CM_LOCAL || role == CM_CELL_CONTENTS
               ? cm_made_by_local(cycle, suspect, result)
               : cm_made_by_filling(cycle, suspect, result);
}
