/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "saved.h"

#include "name.h"
#include "place.h"
#include "way.h"

#define BACKWARD "Backward"

/* torch names the type of ctx after the Function's class. */
static struct cm_name
context_of(const struct cm_holding *self)
{
    return cm_name_of_type(self->records, cm_way_step(self, 1)->type);
}

/* That it is dead is seen as soon as nothing else has such a graph. */
static bool
is_by_nobody(const struct cm_holding *self)
{
    return cm_way_is_root(self, CM_HOLDING_CPP)
           || cm_way_is_root(self, CM_HOLDING_DEAD);
}

bool
cm_saved_on_context(const struct cm_holding *self)
{
    return self->count == 3 && is_by_nobody(self)
           && cm_name_ends_with(context_of(self).text, BACKWARD)
           && cm_way_step(self, 2)->role == CM_ATTRIBUTE
           && cm_way_is_tensor(cm_way_step(self, 2));
}

char *
cm_saved_say(const struct cm_holding *self)
{
    struct cm_name context = context_of(self);
    int length = (int)(strlen(context.text) - strlen(BACKWARD));
    return cm_sentence("keep what %.*s.backward() needs by "
                       "ctx.save_for_backward(), not as attributes of ctx",
                       length, context.text);
}

uint32_t
cm_saved_made(const struct cm_holding *self,
              struct cm_place places[CM_MAX_PLACES])
{
    if (!cm_saved_on_context(self)) {
        return 0;
    }
    struct cm_name name = cm_way_name_of(self, 2);
    return cm_way_find(self, cm_place_sets_attribute, name.text, places);
}
