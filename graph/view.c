/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "view.h"

#include "../detector/size.h"
#include "name.h"
#include "way.h"

enum { SMALL = 4 }; /* so many times smaller than its memory */

static bool
are_most_of_it(const struct cm_holding *self)
{
    const struct cm_holding_step *place = cm_way_step(self, self->at);
    return self->at != 0 && place->counted
           && place->items < 2 * (uint64_t)self->through;
}

/* Where all rows of an output are kept, copies of them would be as large. */
static bool
would_be_less(const struct cm_holding *self, uint64_t shown)
{
    return self->targets != 0
           && shown <= self->bytes_behind / SMALL / self->targets;
}

bool
cm_view_is_kept(const struct cm_holding *self)
{
    const struct cm_holding_step *last = cm_way_step(self, self->count - 1);
    return self->grows && self->autograd_depth == 0 && are_most_of_it(self)
           && cm_way_is_tensor(last) && last->shown_bytes != 0
           && last->shown_bytes <= last->memory_bytes / SMALL
           && would_be_less(self, last->shown_bytes);
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
