/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Told from its tables by a line of the program that calls add_param_group():
 * an optimizer of the program's own may fill them itself. */

#include "optimizer.h"

#include "name.h"
#include "place.h"
#include "way.h"

static bool
is_table(const struct cm_holding *self)
{
    return self->at > 0 && cm_way_step(self, self->at)->counted
           && cm_way_is_optimizer_table(self, self->at);
}

static bool
adds_group(const struct cm_place_search *search, const struct cm_store *store)
{
    return store->kind == CM_STORE_CALL
           && strcmp(cm_place_text(search, store->name), "add_param_group")
                  == 0;
}

uint32_t
cm_optimizer_made(const struct cm_holding *self,
                  struct cm_place places[CM_MAX_PLACES])
{
    return is_table(self) ? cm_way_find(self, adds_group, NULL, places) : 0;
}

bool
cm_optimizer_is_given(const struct cm_holding *self)
{
    struct cm_place places[CM_MAX_PLACES];
    return self->count > 1 && cm_optimizer_made(self, places) != 0;
}

char *
cm_optimizer_say(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name_at(self, self->at - 1, &name);
    return cm_sentence("make %s anew without the parameters that are not "
                       "needed any more, or take these out of its "
                       "param_groups and its state: add_param_group() only "
                       "adds",
                       name.text);
}
