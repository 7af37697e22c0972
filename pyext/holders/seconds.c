/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "seconds.h"

#include "../../detector/alloc.h"

void
cm_seconds_release(struct cm_seconds *self)
{
    cm_free(self->items);
    *self = (struct cm_seconds){0};
}

enum cm_status
cm_seconds_add(struct cm_seconds *self, uint32_t node)
{
    enum cm_status status = cm_grow((void **)&self->items, &self->capacity,
                                    self->count + 1, sizeof(*self->items));
    if (status == CM_OK) {
        self->items[self->count++] = (struct cm_second){.node = node};
    }
    return status;
}

/* NULL: it was not added. */
static struct cm_second *
find(const struct cm_seconds *self, uint32_t node)
{
    size_t low = 0, high = self->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool below = self->items[middle].node < node;
        low = below ? middle + 1 : low;
        high = below ? high : middle;
    }
    bool found = low < self->count && self->items[low].node == node;
    return found ? &self->items[low] : NULL;
}

void
cm_seconds_set(struct cm_seconds *self, uint32_t node, uint32_t parent)
{
    struct cm_second *second = find(self, node);
    if (second != NULL) {
        second->parent = parent;
    }
}

uint32_t
cm_seconds_get(const struct cm_seconds *self, uint32_t node)
{
    const struct cm_second *second = find(self, node);
    return second != NULL ? second->parent : 0;
}
