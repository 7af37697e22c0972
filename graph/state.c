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
    return cm_sentence("write `%s = tuple(x.detach() for x in %s)` between "
                       "the iterations: it keeps the graph of all that it was "
                       "made from",
                       name.text, name.text);
}
