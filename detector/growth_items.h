/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_ITEMS_H
#define CM_GROWTH_ITEMS_H

/* Whether it is the items of a container that get more, or what each of them
 * has: that takes two looks.  And what the look before knew of its end. */

#include "site_growth.h"

/* Of items each of which gets it once: */
enum cm_growth_items {
    CM_GROWTH_MORE_ITEMS, /* or all have it as far as is known */
    CM_GROWTH_NEW_ITEMS,  /* no whole iteration since, or no more have it */
    CM_GROWTH_SAME_ITEMS, /* as many, of which more have it by now */
};
/* *lasts: whole iterations since there were fewest, or less than 1. */
enum cm_growth_items cm_growth_note_items(struct cm_growth *self, int device,
                                          struct cm_site_id site,
                                          const struct cm_growth_fill *fill,
                                          int64_t *lasts);

/* There are half as many items more, and eight, than when it was noted first,
 * or since each had another part of it, and each has as much as then.  *lasts:
 * iterations since. */
bool cm_growth_note_each(struct cm_growth *self, int device,
                         struct cm_site_id site,
                         const struct cm_growth_fill *fill, int64_t *lasts);

/* Whether what holds it now comes to an end by itself; answers what was noted
 * at the look before. */
bool cm_growth_note_bound(struct cm_growth *self, int device,
                          struct cm_site_id site, bool bounded);

#endif
