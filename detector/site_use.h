/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SITE_USE_H
#define CM_SITE_USE_H

/* What each allocation site holds by now, kept with every allocation and free,
 * and which sites changed since somebody asked: so the end of an iteration
 * looks at these alone.  Not thread-safe.  Memory: 16 bytes for each site up
 * to the highest number, 4 for each that changed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "records.h"
#include "status.h"

struct cm_site_use {
    struct cm_site_id site;
    uint64_t bytes, count; /* live by now */
};

struct cm_site_place {
    uint64_t bytes;
    uint32_t count;
    uint32_t turn; /* in which it changed last, plus 1 */
};

struct cm_site_uses {
    struct cm_site_place *places; /* owned; by the site's number */
    size_t capacity;
    uint32_t *changed; /* owned: numbers of sites */
    size_t changed_count, changed_capacity;
    uint32_t turn; /* goes up when somebody asks */
    uint64_t lost; /* changes that there was no memory for */
};

void cm_site_uses_release(struct cm_site_uses *self);
/* Its place, marked as changed; NULL: no memory. */
struct cm_site_place *cm_site_uses_touch(struct cm_site_uses *self,
                                         struct cm_site_id site);

static inline struct cm_site_place *
cm_site_uses_place(struct cm_site_uses *self, struct cm_site_id site)
{
    bool marked = site.index < self->capacity
                  && self->places[site.index].turn == self->turn + 1;
    return marked ? &self->places[site.index] : cm_site_uses_touch(self, site);
}

static inline void
cm_site_uses_add(struct cm_site_uses *self, struct cm_site_id site,
                 uint64_t bytes)
{
    struct cm_site_place *place = cm_site_uses_place(self, site);
    if (place != NULL) {
        place->bytes += bytes;
        place->count++;
    }
}

static inline void
cm_site_uses_subtract(struct cm_site_uses *self, struct cm_site_id site,
                      uint64_t bytes)
{
    struct cm_site_place *place = cm_site_uses_place(self, site);
    if (place != NULL && place->count != 0) { /* 0: its start was lost */
        place->bytes -= bytes <= place->bytes ? bytes : place->bytes;
        place->count--;
    }
}

/* The sites that changed since the last call, in no order; *result is the
 * caller's to free with cm_free().  CM_NO_MEMORY: they stay changed. */
enum cm_status cm_site_uses_take(struct cm_site_uses *self,
                                 struct cm_site_use **result, size_t *count)
    CM_CHECKED;
/* All zero for a site that was never seen. */
struct cm_site_use cm_site_uses_of(const struct cm_site_uses *self,
                                   struct cm_site_id site);

#endif
