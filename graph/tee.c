/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "tee.h"

#include "name.h"
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
    struct cm_holding iterator = *self;
    struct cm_way_name name;
    iterator.at = block_of(self) - 1;
    cm_way_name(&iterator, &name);
    return cm_sentence(
        "take from %s as often as from its twin, or do without it: "
        "itertools.tee() keeps all that the slower one has not taken",
        name.text);
}
