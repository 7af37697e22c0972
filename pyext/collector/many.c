/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* At most half full. */

#include "many.h"

#include "../../detector/alloc.h"

enum { FIRST = 64 };

void
cm_many_release(struct cm_many *self)
{
    cm_free(self->counts);
    *self = (struct cm_many){0};
}

static void
put(struct cm_many *self, const struct cm_many_count *count)
{
    struct cm_many_count *place =
        &self->counts[cm_many_place(self, count->object)];
    self->count += place->object == NULL;
    *place = *count;
}

static enum cm_status
grow(struct cm_many *self)
{
    size_t capacity = self->capacity == 0 ? FIRST : 2 * self->capacity;
    struct cm_many larger = {
        .counts = cm_calloc(capacity, sizeof(*larger.counts)),
        .capacity = capacity,
    };
    if (larger.counts == NULL)
        return CM_NO_MEMORY;
    for (size_t i = 0; i < self->capacity; i++) {
        if (self->counts[i].object != NULL)
            put(&larger, &self->counts[i]);
    }
    cm_many_release(self);
    *self = larger;
    return CM_OK;
}

enum cm_status
cm_many_set(struct cm_many *self, const PyObject *object, int64_t left)
{
    if (2 * self->count >= self->capacity && grow(self) != CM_OK)
        return CM_NO_MEMORY;
    put(self, &(struct cm_many_count){object, left});
    return CM_OK;
}
