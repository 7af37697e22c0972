/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "attribute.h"

#include "name.h"
#include "place.h"
#include "way.h"

enum { FEWEST = 4 }; /* of one line, that an object's attributes pile up */

static bool
is_edge(const struct cm_holding *self, const char *edge)
{
    return cm_way_is(self, cm_way_step(self, self->at)->edge, edge);
}

static bool
sets_any(const struct cm_place_search *search, const struct cm_store *store)
{
    const char *name = cm_place_text(search, store->name);
    return store->kind == CM_STORE_CALL
           && (strcmp(name, "setattr") == 0
               || strcmp(name, "register_buffer") == 0
               || strcmp(name, "register_parameter") == 0);
}

/* One of many attributes is what the way leads to: of a name that the program
 * makes up, since else its others lead on to what has more. */
static bool
is_one_of_many(const struct cm_holding *self)
{
    struct cm_place places[CM_MAX_PLACES];
    const struct cm_holding_step *last = cm_way_step(self, self->count - 1);
    return self->at > 1 && self->at + 1 == self->count
           && self->through >= FEWEST && self->autograd_depth == 0
           && last->role == CM_ATTRIBUTE && cm_way_is_tensor(last)
           && cm_way_find(self, sets_any, NULL, places) != 0;
}

/* What torch keeps a module's in. */
static const char *
kind_of(const struct cm_holding *self)
{
    bool counted = self->at > 1 && cm_way_step(self, self->at)->counted;
    return counted && is_edge(self, "._buffers")      ? "buffer"
           : counted && is_edge(self, "._parameters") ? "parameter"
           : is_one_of_many(self)                     ? "attribute"
                                                      : NULL;
}

bool
cm_attribute_piles_up(const struct cm_holding *self)
{
    return self->grows && self->count > 1 && kind_of(self) != NULL;
}

char *
cm_attribute_say(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name_at(self, self->at - 1, &name);
    return cm_sentence("%s gets one more %s each time: give it one name that "
                       "is set anew, or delete old ones with delattr()",
                       name.text, kind_of(self));
}

uint32_t
cm_attribute_made(const struct cm_holding *self,
                  struct cm_place places[CM_MAX_PLACES])
{
    return cm_attribute_piles_up(self)
               ? cm_way_find(self, sets_any, NULL, places)
               : 0;
}
