/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "site_use.h"

#include <string.h>

#include "alloc.h"
#include "hot.h"

enum { MOST_SITES = 1 << 22 };

void
cm_site_uses_release(struct cm_site_uses *self)
{
    cm_free(self->places);
    cm_free(self->changed);
    *self = (struct cm_site_uses){0};
}

static struct cm_site_place *
grow(struct cm_site_uses *self, size_t index)
{
    if (index >= MOST_SITES
        || cm_grow_zeroed((void **)&self->places, &self->capacity, index + 1,
                          sizeof(*self->places))
               != CM_OK) {
        self->lost++;
        return NULL;
    }
    return &self->places[index];
}

CM_HOT struct cm_site_place *
cm_site_uses_touch(struct cm_site_uses *self, struct cm_site_id site)
{
    struct cm_site_place *place = site.index < self->capacity
                                      ? &self->places[site.index]
                                      : grow(self, site.index);
    if (place == NULL || place->turn == self->turn + 1) {
        return place;
    }
    if (cm_grow((void **)&self->changed, &self->changed_capacity,
                self->changed_count + 1, sizeof(*self->changed))
        != CM_OK) {
        self->lost++; /* known again at the next change */
        return place;
    }
    self->changed[self->changed_count++] = site.index;
    place->turn = self->turn + 1;
    return place;
}

struct cm_site_use
cm_site_uses_of(const struct cm_site_uses *self, struct cm_site_id site)
{
    struct cm_site_use use = {.site = site};
    if (site.index < self->capacity) {
        use.bytes = self->places[site.index].bytes;
        use.count = self->places[site.index].count;
    }
    return use;
}

enum cm_status
cm_site_uses_take(struct cm_site_uses *self, struct cm_site_use **result,
                  size_t *count)
{
    struct cm_site_use *uses =
        cm_calloc(self->changed_count + 1, sizeof(*uses));
    *result = uses;
    *count = 0;
    if (uses == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < self->changed_count; i++) {
        uses[i] = cm_site_uses_of(
            self, (struct cm_site_id){.index = self->changed[i]});
    }
    *count = self->changed_count;
    self->changed_count = 0;
    self->turn++;
    return CM_OK;
}
