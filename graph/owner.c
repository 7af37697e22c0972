/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "owner.h"

#include "emptying.h"
#include "name.h"
#include "repeat.h"
#include "way.h"

/* What a person calls an owner, and how a line sets that. */
struct owner {
    const char *name;
    enum cm_store_kind kind;
};

/* `self.store = wrap(self.store)` */
static bool
is_made_of_itself(const struct cm_holding *self, const struct cm_code *code,
                  const struct cm_store *made)
{
    const char *name = cm_way_text(self, made->name);
    bool found = false;
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        found |=
            store->line == made->line && store != made
            && (store->kind == CM_STORE_CALL || store->kind == CM_STORE_HAND)
            && cm_emptying_is_about(self, store, name);
    }
    return found;
}

/* What callers hand may be a module's variable, or one that they share. */
static bool
is_set_by(const struct cm_store *store, const struct owner *owner)
{
    return store->kind == owner->kind
           || (owner->kind == CM_STORE_LOCAL
               && (store->kind == CM_STORE_GLOBAL
                   || store->kind == CM_STORE_CELL));
}

static bool
makes_again(const struct cm_holding *self, const struct cm_code *code,
            const struct owner *owner)
{
    bool again = false;
    for (uint32_t i = 0; !code->library && !again && i < code->store_count;
         i++) {
        const struct cm_store *store = &code->stores[i];
        again = is_set_by(store, owner)
                && cm_way_is(self, store->name, owner->name) && store->made
                && !is_made_of_itself(self, code, store)
                && cm_repeat_runs(self, code, store);
    }
    return again;
}

static bool
any_makes_again(const struct cm_holding *self, const struct owner *owner)
{
    bool again = false;
    for (size_t i = 0; !again && i < self->code_count; i++) {
        again = makes_again(
            self, cm_records_code(self->records, self->codes[i]), owner);
    }
    return again;
}

/* Epoch(n).run() */
static bool
calls_on_new(const struct cm_holding *self, const struct cm_code *caller,
             struct cm_text_id method, const char *type)
{
    bool again = false;
    for (uint32_t i = 0; !caller->library && !again && i < caller->store_count;
         i++) {
        const struct cm_store *store = &caller->stores[i];
        again = store->kind == CM_STORE_CALL && store->owner.index == 0
                && store->key.index != 0 && cm_way_is(self, store->key, type)
                && cm_text_same(store->name, method)
                && cm_repeat_runs(self, caller, store);
    }
    return again;
}

/* The self of a method. */
static bool
is_called_on_new(const struct cm_holding *self,
                 const struct cm_alias *variable, const char *type)
{
    bool again = false;
    bool own = cm_way_is(self, variable->name, "self");
    for (size_t i = 0; own && !again && i < self->code_count; i++) {
        again =
            calls_on_new(self, cm_records_code(self->records, self->codes[i]),
                         variable->code->name, type);
    }
    return again;
}

/* A variable of a function is set by that; a parameter by who calls it. */
static bool
variable_is_made_again(const struct cm_holding *self, struct cm_code_id code,
                       struct cm_text_id name, const char *type)
{
    struct cm_aliases all = {.count = 0};
    bool again = false;
    cm_aliases_add(&all, cm_records_code(self->records, code), name);
    for (size_t i = 0; !again && i < all.count; i++) {
        const struct cm_alias variable = all.items[i];
        struct owner owner = {cm_way_text(self, variable.name),
                              CM_STORE_LOCAL};
        again = makes_again(self, variable.code, &owner)
                || is_called_on_new(self, &variable, type);
        cm_emptying_add_callers(self, &variable, &all);
    }
    return again;
}

/* The id of what the code calls this; none: it does not. */
static struct cm_text_id
name_in(const struct cm_holding *self, struct cm_code_id id, const char *name)
{
    const struct cm_code *code = cm_records_code(self->records, id);
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        if ((store->kind == CM_STORE_LOCAL || store->kind == CM_STORE_CELL
             || store->kind == CM_STORE_PARAMETER)
            && cm_way_is(self, store->name, name)) {
            return store->name;
        }
    }
    return (struct cm_text_id){0};
}

static bool
is_another(const struct cm_holding *self, size_t at)
{
    const struct cm_holding_step *step = cm_way_step(self, at);
    struct cm_code_id frame = cm_way_step(self, at - 1)->code;
    struct cm_name name = cm_way_name_of(self, at);
    if (!cm_way_is_variable(step)) {
        return false;
    }
    if (step->role == CM_LOCAL) {
        struct cm_name type = cm_name_of_type(self->records, step->type);
        return variable_is_made_again(
            self, frame, name_in(self, frame, name.text), type.text);
    }
    bool global = at == 1 && cm_way_step(self, 0)->species == CM_MODULE;
    struct owner owner = {name.text, global ? CM_STORE_GLOBAL
                                     : step->role == CM_ATTRIBUTE
                                         ? CM_STORE_ATTRIBUTE
                                         : CM_STORE_CELL};
    return any_makes_again(self, &owner);
}

/* What a class has is one for all of its objects, however many are made. */
static size_t
first_owner(const struct cm_holding *self)
{
    size_t first = 1;
    for (size_t at = 1; at < self->at; at++) {
        first = cm_way_step(self, at)->species == CM_TYPE ? at : first;
    }
    return first;
}

bool
cm_owner_is_another(const struct cm_holding *self)
{
    bool another = false;
    for (size_t at = first_owner(self); !another && at < self->at; at++) {
        another = is_another(self, at);
    }
    return another;
}
