/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "tee.h"

#include "name.h"
#include "place.h"
#include "way.h"

/* The first block of the stream on the way; 0: none, or the pile is above. */
static size_t
block_of(const struct cm_holding *self)
{
    for (size_t i = 2; i < self->count && i <= self->at; i++) {
        const char *what = cm_way_text(self, cm_way_step(self, i)->annotation);
        if (cm_way_begins(what, "itertools._tee_dataobject")) {
            return i;
        }
    }
    return 0;
}

bool
cm_tee_lags(const struct cm_holding *self)
{
    return block_of(self) != 0;
}

char *
cm_tee_say(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name_at(self, block_of(self) - 1, &name); /* the iterator */
    return cm_sentence(
        "take from %s as often as from its twin, or do without it: "
        "itertools.tee() keeps all that the slower one has not taken",
        name.text);
}

/* Its list has no name. */
bool
cm_tee_is_cycle(const struct cm_holding *self)
{
    return self->at > 1 && cm_way_step(self, self->at)->species == CM_LIST
           && cm_way_is(self, cm_way_step(self, self->at - 1)->annotation,
                        "itertools.cycle");
}

char *
cm_tee_say_cycle(const struct cm_holding *self)
{
    (void)self;
    return cm_sentence("itertools.cycle() keeps every item of its first "
                       "round: begin the loop over the batches anew instead "
                       "(`while True: for x in batches:`)");
}

static bool
makes_cycle(const struct cm_place_search *search, const struct cm_store *store)
{
    return store->kind == CM_STORE_CALL
           && strcmp(cm_place_text(search, store->name), "cycle") == 0;
}

uint32_t
cm_tee_made_cycle(const struct cm_holding *self,
                  struct cm_place places[CM_MAX_PLACES])
{
    return self->count > 1 && cm_tee_is_cycle(self)
               ? cm_way_find(self, makes_cycle, NULL, places)
               : 0;
}
