/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "steady.h"

#include "hot.h"

/* One end in so many is looked at: a power of 2. */
static int64_t
each(uint32_t same)
{
    int64_t each = CM_STEADY_EACH;
    while (each < CM_STEADY_MOST && each * 16 <= same) {
        each *= 2;
    }
    return each;
}

CM_HOT bool
cm_steady_ends(struct cm_steady *self, struct cm_blocks *blocks,
               int64_t number)
{
    bool same = true;
    for (int i = 0; i < cm_blocks_devices(blocks); i++) {
        uint64_t total = cm_blocks_total(blocks, i);
        same = same && total == self->totals[i];
        self->totals[i] = total;
    }
    if (!same) {
        self->same = 0;
    }
    else if (self->same < CM_STEADY_MOST * 16) {
        self->same++;
    }
    return self->same >= CM_STEADY_AFTER && number % each(self->same) != 0;
}
