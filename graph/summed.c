/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "summed.h"

#include <string.h>

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

struct cm_text_id
cm_summed_in(const struct cm_holding *self)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    struct cm_text_id sum = {0};
    if (self->autograd_depth == 0 || place->role != CM_ATTRIBUTE
        || !cm_way_is_tensor(place)) {
        return sum;
    }
    struct cm_name name = cm_way_name_of(self, self->at);
    for (size_t i = 0; sum.index == 0 && i < self->code_count; i++) {
        sum = sum_in(self, cm_records_code(self->records, self->codes[i]),
                     name.text);
    }
    return sum;
}

static bool
adds_to_it(const struct cm_place_search *search, const struct cm_store *store)
{
    return adds_to_itself(store)
           && strcmp(cm_place_text(search, store->name), search->name) == 0;
}

uint32_t
cm_summed_made(const struct cm_holding *self,
               struct cm_place places[CM_MAX_PLACES])
{
    struct cm_text_id sum = cm_summed_in(self);
    return sum.index != 0
               ? cm_way_find(self, adds_to_it, cm_way_text(self, sum), places)
               : 0;
}
