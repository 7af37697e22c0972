/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "state.h"

#include "way.h"

enum { MOST_PARTS = 8 }; /* of a state; what has more is a collection */

/* A tuple cannot pile up: it is made anew from its own graph. */
bool
cm_state_is_tuple(const struct cm_holding *self)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    return self->autograd_depth > 0 && place->species == CM_TUPLE
           && place->items <= MOST_PARTS && self->at + 1 < self->count
           && cm_way_is_tensor(cm_way_step(self, self->at + 1))
           && cm_way_is_named(self, self->at);
}

char *
cm_state_say_tuple(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name(self, &name);
    cm_way_code(self, &name);
    return cm_sentence("write `%s = tuple(x.detach() for x in %s)` between "
                       "the iterations: it keeps the graph of all that it was "
                       "made from",
                       name.text, name.text);
}

/* The next turn finds another container in the variable, and nothing is put in
 * that: `weights = {k: w - rate * g for ...}`. */
static bool
is_set_anew(const struct cm_holding *self, const struct cm_code *code,
            const char *name)
{
    bool anew = false;
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool fills = store->kind == CM_STORE_ITEM
                     || (store->kind == CM_STORE_CALL
                         && cm_way_is(self, store->name, "append"));
        if (fills && cm_way_is(self, store->owner, name)) {
            return false;
        }
        anew |= store->kind == CM_STORE_LOCAL && store->carried
                && !store->empty && !store->trimmed
                && cm_way_is(self, store->name, name);
    }
    return anew;
}

bool
cm_state_is_container(const struct cm_holding *self)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    struct cm_name name = cm_way_name_of(self, self->at);
    bool anew = false;
    bool fits = self->autograd_depth > 0 && place->counted
                && place->role == CM_LOCAL
                && (place->species == CM_DICT || place->species == CM_LIST)
                && self->at + 1 < self->count
                && cm_way_is_tensor(cm_way_step(self, self->at + 1));
    for (size_t i = 0; fits && !anew && i < self->code_count; i++) {
        anew = is_set_anew(
            self, cm_records_code(self->records, self->codes[i]), name.text);
    }
    return anew;
}

char *
cm_state_say_container(const struct cm_holding *self)
{
    const char *name = cm_way_name_of(self, self->at).text;
    bool dict = cm_way_step(self, self->at)->species == CM_DICT;
    return cm_sentence(
        "write `%s = %s%s%s` between the iterations (and "
        ".requires_grad_() where it is trained): each keeps the "
        "graph of all before it",
        name, dict ? "{k: x.detach() for k, x in " : "[x.detach() for x in ",
        name, dict ? ".items()}" : "]");
}
