/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "view.h"

#include "../detector/size.h"
#include "name.h"
#include "way.h"

enum { SMALL = 4 }; /* so many times smaller than its memory */

/* Of each memory one; where all rows of an output are kept, copies would be as
 * large. */
static bool
has_one_of_each(const struct cm_holding *self)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    return self->at != 0 && place->counted
           && place->items < 2 * (uint64_t)self->through;
}

bool
cm_view_is_kept(const struct cm_holding *self)
{
    const struct cm_holding_step *last = cm_way_step(self, self->count - 1);
    return self->grows && self->autograd_depth == 0 && has_one_of_each(self)
           && cm_way_is_tensor(last) && last->shown_bytes != 0
           && last->shown_bytes <= last->memory_bytes / SMALL;
}

char *
cm_view_say(const struct cm_holding *self)
{
    char size[CM_SIZE_TEXT_BYTES];
    struct cm_way_name name;
    cm_way_name(self, &name);
    cm_size_format(cm_way_step(self, self->count - 1)->memory_bytes, size);
    return cm_sentence("put copies in %s (`x.clone()`): each is a view, and "
                       "keeps all of its memory, %s",
                       name.text, size);
}
