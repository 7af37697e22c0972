/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Where more hangs from the place than it has items, containers among these
 * are what has to be emptied, or to be taken out of it. */

#include "container.h"

#include <stdio.h>
#include <string.h>

#include "emptying.h"
#include "name.h"
#include "repeat.h"
#include "way.h"

enum { TOLD_AFTER = 10 }; /* iterations, at the earliest */

static const struct cm_holding_step *
place_of(const struct cm_holding *self)
{
    return cm_way_step(self, self->at);
}

/* The one of most items on the way; 0: none.  A tuple is never emptied, nor a
 * module of its layers. */
static size_t
container_inside(const struct cm_holding *self)
{
    const struct cm_holding_step *place = place_of(self);
    size_t found = 0;
    if (!place->counted || place->items >= self->through) {
        return 0;
    }
    for (size_t i = self->at + 1;
         i < self->count && !cm_way_is_module_table(self, i); i++) {
        const struct cm_holding_step *step = cm_way_step(self, i);
        if (step->counted && step->species != CM_TUPLE
            && (found == 0 || step->items > cm_way_step(self, found)->items)) {
            found = i;
        }
    }
    return found;
}

bool
cm_container_is_of_others(const struct cm_holding *self)
{
    return container_inside(self) != 0;
}

/* Many short ones in it, as those of requests that are over.  One that gets an
 * item in each iteration is not short any more when it is told. */
static bool
are_many(const struct cm_holding *self, size_t inside)
{
    const struct cm_holding_step *place = place_of(self);
    uint64_t items = cm_way_step(self, inside)->items;
    return inside == self->at + 1 && items < TOLD_AFTER && items < place->items
           && place->species != CM_TUPLE;
}

/* "list" of "list of 17", "Trial" of an object. */
static struct cm_name
kind_of(const struct cm_holding *self, size_t at)
{
    const struct cm_holding_step *step = cm_way_step(self, at);
    const char *type = cm_way_text(self, step->annotation);
    const char *end = strstr(type, " of ");
    struct cm_name kind = cm_name_of_type(self->records, step->type);
    if (step->counted) {
        snprintf(kind.text, sizeof kind.text, "%.*s",
                 (int)(end != NULL ? (size_t)(end - type) : strlen(type)),
                 type);
    }
    return kind;
}

/* runs[3]["frames"], trials[3].user_attrs */
static char *
say_each_named(const struct cm_holding *self, size_t inside, const char *place)
{
    return cm_sentence("clear %s of each %s in %s when it has been used, or "
                       "keep less in it (%s)",
                       cm_way_name_of(self, inside).text,
                       kind_of(self, self->at + 1).text, place,
                       cm_way_less(self));
}

char *
cm_container_say_each(const struct cm_holding *self)
{
    size_t inside = container_inside(self);
    bool many = are_many(self, inside);
    struct cm_way_name name;
    cm_way_name(self, &name);
    if (inside == self->at + 2 && cm_way_is_named(self, inside)) {
        return say_each_named(self, inside, name.text);
    }
    return cm_sentence(
        "%s each %s %s %s when it has been used, or keep less in it (%s)",
        many ? "remove" : "clear", kind_of(self, inside).text,
        many ? "from" : "in", name.text, cm_way_less(self));
}

/* Only __init__ fills or sets it. */
static bool
is_made_once(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name(self, &name);
    bool once = name.place_count != 0;
    for (uint32_t i = 0; i < name.place_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, name.places[i].code);
        once &= cm_way_is(self, code->name, "__init__");
    }
    return once;
}

/* An attribute of a module below the place. */
static bool
is_larger(const struct cm_holding *self, size_t at)
{
    const struct cm_holding_step *step = cm_way_step(self, at);
    return step->counted && step->species != CM_TUPLE
           && step->role == CM_ATTRIBUTE && !cm_way_is_module_table(self, at)
           && step->items > place_of(self)->items;
}

size_t
cm_container_of_modules(const struct cm_holding *self)
{
    bool modules = self->at > 1 && place_of(self)->counted
                   && cm_way_is(self, place_of(self)->edge, "._modules");
    size_t at = self->at + 1;
    while (modules && at < self->count && !is_larger(self, at)) {
        at++;
    }
    return modules && at < self->count && is_made_once(self) ? at : 0;
}

/* Of an object that is no tensor, whose .grad is another matter. */
static bool
is_set_on_object(const struct cm_holding *self, size_t at)
{
    const struct cm_holding_step *owner = cm_way_step(self, at - 1);
    return (cm_way_step(self, at)->role == CM_ATTRIBUTE
            && owner->species == CM_OBJECT && !owner->counted)
           || cm_way_is(self, owner->edge, "._buffers");
}

/* self.past = (k, v): the pair is what is set. */
static size_t
tensor_or_pair(const struct cm_holding *self)
{
    size_t at = self->count - 1;
    uint8_t species = at > 1 ? cm_way_step(self, at - 1)->species : 0;
    return species == CM_TUPLE || species == CM_LIST ? at - 1 : at;
}

size_t
cm_container_of_longer(const struct cm_holding *self)
{
    size_t at = tensor_or_pair(self);
    return cm_way_is_category(self, CM_HOLDING_LARGER) && self->at < at
                   && cm_way_is_tensor(cm_way_step(self, self->count - 1))
                   && is_set_on_object(self, at)
               ? at
               : 0;
}

bool
cm_container_has_longer(const struct cm_holding *self)
{
    const struct cm_holding_step *last = cm_way_step(self, self->count - 1);
    return cm_way_is_category(self, CM_HOLDING_LARGER)
           && place_of(self)->counted && self->at + 2 == self->count
           && cm_way_is_tensor(last) && last->role != CM_ATTRIBUTE;
}

bool
cm_container_is_set_longer(const struct cm_holding *self)
{
    struct cm_name name = cm_way_name_of(self, self->at);
    bool set = false;
    for (size_t i = 0;
         cm_container_has_longer(self) && !set && i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        for (uint32_t k = 0; !code->library && k < code->store_count; k++) {
            set |= code->stores[k].kind == CM_STORE_ITEM
                   && cm_emptying_is_about(self, &code->stores[k], name.text);
        }
    }
    return set;
}

char *
cm_container_say_longer(const struct cm_holding *self)
{
    struct cm_way_name name, code;
    cm_way_name(self, &name);
    code = name;
    cm_way_code(self, &code);
    return cm_sentence("give the tensors in %s a bound (keep the last N rows "
                       "of each: `%s[k][-N:]`, or `[:N]` where new ones come "
                       "first), or clear %s where an epoch or a sequence "
                       "ends%s",
                       name.text, code.text, name.text,
                       self->autograd_depth != 0
                           ? ", and detach() what is added: torch.cat keeps "
                             "the graph of every iteration"
                           : "");
}

/* What has the parameters, which are as many as before. */
static bool
is_of_optimizer(const struct cm_holding *self)
{
    bool found = false;
    for (size_t i = 1; i <= self->at; i++) {
        found |= cm_way_is_optimizer_table(self, i);
    }
    return found;
}

size_t
cm_container_of_hooks(const struct cm_holding *self)
{
    size_t at = cm_way_hooks_behind(self);
    const struct cm_holding_step *place = place_of(self);
    bool stays =
        at != 0
        && (!place->counted || cm_way_step(self, at)->items >= place->items
            || is_of_optimizer(self)
            || (cm_way_is(self, place->edge, "._modules")
                && is_made_once(self)));
    return stays ? at : 0;
}

size_t
cm_container_of_threads(const struct cm_holding *self)
{
    size_t at = self->at + 1;
    bool local =
        self->at != 0 && at + 1 < self->count
        && cm_way_is(self, place_of(self)->annotation, "_thread._local");
    return local && cm_way_step(self, at)->counted
                   && cm_way_step(self, at)->role == CM_ATTRIBUTE
               ? at
               : 0;
}

/* A function that is called again and again puts them there. */
static bool
is_filled_again(const struct cm_holding *self)
{
    struct cm_way_name name;
    bool again = false;
    cm_way_name(self, &name);
    for (uint32_t i = 0;
         name.step == self->at && !again && i < name.place_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, name.places[i].code);
        again = !code->library && !cm_way_is(self, code->name, "__init__")
                && cm_repeat_is_called(self, code);
    }
    return again;
}

bool
cm_container_has_objects(const struct cm_holding *self)
{
    size_t inside = container_inside(self);
    return inside > self->at + 1
           && cm_way_step(self, inside)->items <= place_of(self)->items
           && cm_way_step(self, self->at + 1)->species == CM_OBJECT
           && !cm_way_step(self, self->at + 1)->counted
           && is_filled_again(self);
}

char *
cm_container_say_objects(const struct cm_holding *self)
{
    struct cm_type_id type = cm_way_step(self, self->at + 1)->type;
    struct cm_way_name name;
    cm_way_name(self, &name);
    return cm_sentence("take each %s out of %s when it is done with: it keeps "
                       "its %s",
                       cm_name_of_type(self->records, type).text, name.text,
                       cm_way_name_of(self, container_inside(self)).text);
}

bool
cm_container_is_global(const struct cm_holding *self)
{
    size_t way = self->at;
    bool global =
        cm_way_step(self, 0)->species == CM_MODULE
        && (way == 1
            || (way == 2 && cm_way_step(self, 1)->species == CM_TYPE));
    return global && place_of(self)->species == CM_DICT
           && place_of(self)->counted;
}

char *
cm_container_say_bound(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name(self, &name);
    return cm_sentence("give %s a bound: delete old entries, or cache with "
                       "functools.lru_cache(maxsize=...)",
                       name.text);
}

bool
cm_container_grows(const struct cm_holding *self)
{
    return place_of(self)->counted;
}

/* An attribute of a library's is told by who has it. */
char *
cm_container_say(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name(self, &name);
    struct cm_name inside =
        cm_name_of_label(self->records, place_of(self)->edge);
    bool hidden = name.step != 0 && name.step < self->at
                  && place_of(self)->role == CM_ATTRIBUTE;
    bool tuple = place_of(self)->species == CM_TUPLE;
    if (name.step == 0) { /* a line is in the midst of making it */
        return cm_sentence("make it in parts, or keep less in it (%s)",
                           cm_way_less(self));
    }
    return hidden ? cm_sentence("keep less in %s, whose %s grows", name.text,
                                inside.text)
                  : cm_sentence("%s %s%s when it has been used, or keep less "
                                "in it (%s)",
                                tuple ? "set" : "clear", name.text,
                                tuple ? " = ()" : "", cm_way_less(self));
}

bool
cm_container_has_modules(const struct cm_holding *self)
{
    return place_of(self)->counted
           && cm_way_is(self, place_of(self)->edge, "._modules");
}

/* Where a library fills it: the key of the largest table of modules on the way. */
static struct cm_name
name_of_modules(const struct cm_holding *self)
{
    size_t largest = self->at;
    for (size_t i = self->at; i < self->count; i++) {
        const struct cm_holding_step *step = cm_way_step(self, i);
        if (cm_way_is(self, step->edge, "._modules")
            && step->items > cm_way_step(self, largest)->items) {
            largest = i;
        }
    }
    return cm_way_name_of(self, largest - 1);
}

char *
cm_container_say_modules(const struct cm_holding *self)
{
    struct cm_way_name place;
    cm_way_name(self, &place);
    bool librarys = self->at > 1 && strcmp(place.text, "_modules") == 0;
    struct cm_name key = {0};
    if (librarys) {
        key = name_of_modules(self);
    }
    return cm_sentence(
        "make the modules of %s once, or remove (`del`) those "
        "that are not needed any more%s",
        key.text[0] != '\0' ? key.text : place.text,
        self->stepped ? ", and make the optimizer anew: it has them too" : "");
}
