/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* By the step behind the place, which is one of its items, and by the one
 * before it, whose dict it is.  O(1). */

#include "kept.h"

#include <string.h>

#include "name.h"

static const struct cm_holding_step *
place_of(const struct cm_holding *self)
{
    return cm_way_step(self, self->at);
}

/* On the line that fills the place: of `rows.append(x)` the name x, NULL where
 * that is no variable. */
struct append {
    bool found, named;
    const char *name;
};

static struct append
append_of(const struct cm_holding *self, const struct cm_way_name *place)
{
    struct append append = {0};
    if (place->place_count == 0) {
        return append;
    }
    const struct cm_code *code =
        cm_records_code(self->records, place->places[0].code);
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool there = store->line == place->places[0].line
                     && cm_way_is(self, store->name, "append");
        append.found |= there && store->kind == CM_STORE_CALL;
        if (there && store->kind == CM_STORE_HAND && !store->constant) {
            append.named = true;
            append.name = store->owner.index != 0
                              ? cm_way_text(self, store->owner)
                              : append.name;
        }
    }
    return append;
}

const char *
cm_kept_argument(const struct cm_holding *self,
                 const struct cm_way_name *place)
{
    return append_of(self, place).name;
}

bool
cm_kept_is_expression(const struct cm_holding *self,
                      const struct cm_way_name *place)
{
    struct append append = append_of(self, place);
    return self->kept == NULL && append.found && !append.named;
}

/* It is the place that has many, and not something below it. */
static bool
has_items(const struct cm_holding *self)
{
    bool most = place_of(self)->counted && self->at + 2 < self->count;
    for (size_t i = self->at + 1; most && i < self->count; i++) {
        const struct cm_holding_step *step = cm_way_step(self, i);
        most = !step->counted || step->items <= place_of(self)->items;
    }
    return most;
}

static const struct cm_holding_step *
item_of(const struct cm_holding *self)
{
    return cm_way_step(self, self->at + 1);
}

static struct cm_way_name
name_of_place(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name(self, &name);
    return name;
}

/* The code has a variable of that name. */
static bool
knows(const struct cm_holding *self, const struct cm_code *code,
      const char *name)
{
    bool found = false;
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool variable =
            store->kind >= CM_STORE_LOCAL && store->kind <= CM_STORE_GLOBAL;
        found |= (variable || store->kind == CM_STORE_PARAMETER)
                 && cm_way_is(self, store->name, name);
        found |= store->kind == CM_STORE_HAND
                 && cm_way_is(self, store->owner, name);
    }
    return found;
}

/* The code that puts it there; NULL: it is not known, or is given it by who has
 * the name. */
static const struct cm_code *
code_of_place(const struct cm_holding *self, const struct cm_way_name *place)
{
    return place->place_count != 0 && place->step >= self->at
               ? cm_records_code(self->records, place->places[0].code)
               : NULL;
}

/* The one that the code is given besides self; NULL: none, or several. */
static const char *
sole_parameter(const struct cm_holding *self, const struct cm_code *code)
{
    const char *sole = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        const char *name = cm_way_text(self, store->name);
        if (store->kind == CM_STORE_PARAMETER && strcmp(name, "self") != 0
            && strcmp(name, "cls") != 0) {
            sole = name;
            count++;
        }
    }
    return count == 1 ? sole : NULL;
}

/* A variable of another function's is not what that line calls it. */
const char *
cm_kept_name(const struct cm_holding *self, const char *otherwise)
{
    struct cm_way_name place = name_of_place(self);
    const struct cm_code *code = code_of_place(self, &place);
    bool there = code != NULL && knows(self, code, otherwise);
    bool named = self->kept != NULL && strcmp(self->kept, place.text) != 0;
    if (named && (code == NULL || knows(self, code, self->kept))) {
        return self->kept;
    }
    if (named && !there) {
        const char *given = sole_parameter(self, code);
        return given != NULL ? given : self->kept;
    }
    bool invented = strcmp(otherwise, "loss") == 0 && code != NULL && !there;
    return invented ? "x" : otherwise;
}

/* "Session" of "Session", "app.Session". */
static struct cm_name
type_of(const struct cm_holding *self, size_t step)
{
    return cm_name_of_type(self->records, cm_way_step(self, step)->type);
}

bool
cm_kept_are_methods(const struct cm_holding *self)
{
    return has_items(self) && item_of(self)->species == CM_BOUND_METHOD
           && cm_way_step(self, self->at + 2)->role == CM_BOUND_SELF;
}

char *
cm_kept_say_methods(const struct cm_holding *self)
{
    const char *method = cm_way_text(self, item_of(self)->annotation);
    struct cm_way_name name = name_of_place(self);
    struct cm_name owner = type_of(self, self->at + 2);
    method += strncmp(method, "method ", 7) == 0 ? 7 : 0;
    return cm_sentence("take %s of each %s out of %s when that is done, or "
                       "put weakref.WeakMethod(self.%s) there: a method keeps "
                       "its object",
                       method, owner.text, name.text, method);
}

bool
cm_kept_are_tasks(const struct cm_holding *self)
{
    if (!has_items(self)
        || (place_of(self)->species != CM_SET
            && place_of(self)->species != CM_LIST)) {
        return false;
    }
    const char *module = cm_way_module(self, self->at + 1);
    return (strcmp(module, "_asyncio") == 0
            || strcmp(module, "asyncio.tasks") == 0)
           && strcmp(type_of(self, self->at + 1).text, "Task") == 0;
}

char *
cm_kept_say_tasks(const struct cm_holding *self)
{
    bool set = place_of(self)->species == CM_SET;
    struct cm_way_name name = name_of_place(self);
    cm_way_code(self, &name);
    return cm_sentence("take each task out when it is done: "
                       "`task.add_done_callback(%s.%s)`",
                       name.text, set ? "discard" : "remove");
}

bool
cm_kept_by_weak_keys(const struct cm_holding *self)
{
    return place_of(self)->counted && self->at > 1
           && cm_way_is(self, place_of(self)->edge, ".data")
           && cm_way_is(self, cm_way_step(self, self->at - 1)->annotation,
                        "weakref.WeakKeyDictionary");
}

char *
cm_kept_say_weak_keys(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name_at(self, self->at - 1, &name);
    return cm_sentence("let no value in %s refer to its key, or delete old "
                       "entries: one goes by itself only when nothing else "
                       "has its key",
                       name.text);
}

static bool
is_type(const struct cm_holding *self, size_t i, const char *name)
{
    const char *what = cm_way_text(self, cm_way_step(self, i)->annotation);
    return cm_way_begins(what, name) && strchr(" ", what[strlen(name)]);
}

/* A library's queue: what it keeps its items in is its own affair. */
bool
cm_kept_in_queue(const struct cm_holding *self)
{
    size_t owner = self->at - (self->at > 0);
    const char *module = cm_way_module(self, owner);
    return owner > 0 && cm_way_step(self, self->at)->role == CM_ATTRIBUTE
           && (strcmp(module, "queue") == 0
               || strcmp(module, "asyncio.queues") == 0);
}

bool
cm_kept_in_deque(const struct cm_holding *self)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    return is_type(self, self->at, "collections.deque") && place->counted
           && !place->bounded && name_of_place(self).step == self->at;
}

char *
cm_kept_say_queue(const struct cm_holding *self)
{
    size_t owner = name_of_place(self).step;
    return cm_sentence("take as much out of %s as is put in, or give it a "
                       "maxsize, so that put() waits",
                       owner < self->at ? name_of_place(self).text
                                        : "the queue");
}

char *
cm_kept_say_deque(const struct cm_holding *self)
{
    return cm_sentence("give %s a bound: `collections.deque(maxlen=...)`",
                       name_of_place(self).text);
}
