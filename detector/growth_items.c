/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "growth_items.h"

enum { FEWEST_MORE = 8 };

/* Of less items there may be no more again. */
enum cm_growth_items
cm_growth_note_items(struct cm_growth *self, int device,
                     struct cm_site_id site, const struct cm_growth_fill *fill,
                     int64_t *lasts)
{
    struct cm_growth_state *state = cm_growth_known(self, device, site);
    *lasts = 0;
    if (state == NULL || fill->items == 0) {
        return CM_GROWTH_MORE_ITEMS;
    }
    if (state->items == 0 || fill->items < state->items) {
        state->items = fill->items;
        state->hung = fill->hung;
        state->items_at = fill->iterations + (fill->between ? 0 : 1);
    }
    *lasts = fill->iterations - state->items_at;
    bool room = fill->hung <= fill->items + fill->items / 8 + 2;
    bool same = fill->items == state->items && room;
    return same && *lasts > 0 && fill->hung > state->hung
               ? CM_GROWTH_SAME_ITEMS
           : same && fill->items > fill->hung ? CM_GROWTH_NEW_ITEMS
                                              : CM_GROWTH_MORE_ITEMS;
}

/* The newest has not all yet. */
static bool
has_as_much(const struct cm_growth_fill *fill,
            const struct cm_growth_fill *first)
{
    uint64_t wanted = first->hung * fill->items / first->items;
    uint64_t one = first->hung / first->items + 1;
    return fill->hung <= wanted + one && wanted <= fill->hung + one;
}

bool
cm_growth_note_each(struct cm_growth *self, int device, struct cm_site_id site,
                    const struct cm_growth_fill *fill, int64_t *lasts)
{
    struct cm_growth_state *state = cm_growth_known(self, device, site);
    *lasts = 0;
    if (state == NULL || fill->items == 0) {
        return false;
    }
    struct cm_growth_fill *first = &state->each;
    if (first->items == 0 || fill->items < first->items
        || !has_as_much(fill, first)) {
        *first = *fill;
    }
    *lasts = fill->iterations - first->iterations;
    return fill->items >= first->items + FEWEST_MORE
           && 2 * fill->items >= 3 * first->items;
}

bool
cm_growth_note_bound(struct cm_growth *self, int device,
                     struct cm_site_id site, bool bounded)
{
    struct cm_growth_state *state = cm_growth_known(self, device, site);
    bool before = state != NULL && state->bounded;
    if (state != NULL) {
        state->bounded = bounded;
    }
    return before;
}
