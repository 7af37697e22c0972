/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What a tensor shows and what memory it keeps both stand in what a person
 * reads of it: "Tensor [256] float32 cpu 400 KiB". */

#include "view.h"

#include <stdlib.h>
#include <string.h>

#include "name.h"
#include "way.h"

enum { SMALL = 4 }; /* so many times smaller than its memory */

#define MOST_ELEMENTS (UINT64_C(1) << 48)

static const char *
annotation_of_last(const struct cm_holding *self)
{
    return cm_way_text(self, cm_way_step(self, self->count - 1)->annotation);
}

/* Of "[64, 512] float32": in bytes, 0 where it is not known. */
static uint64_t
bytes_shown(const char *shape)
{
    uint64_t elements = 1, bits;
    char *end = NULL;
    while (*shape != ']') {
        uint64_t size = strtoull(shape + 1, &end, 10);
        if (end == shape + 1 || size > MOST_ELEMENTS / elements) {
            return 0;
        }
        elements *= size;
        shape = *end == ',' ? end + 1 : end;
        if (elements == 0 || (*shape != ']' && *shape != ' ')) {
            return 0;
        }
    }
    if (strncmp(shape, "] bool", 6) == 0) {
        return elements;
    }
    shape += strcspn(shape, "0123456789");
    bits = strtoull(shape, NULL, 10);
    return bits <= 128 ? elements * bits / 8 : 0;
}

/* Of "... cuda:0 400 KiB", where that begins; NULL: it is not told. */
static const char *
memory_of(const char *text)
{
    const char *unit = strrchr(text, ' '), *size = unit;
    while (size != NULL && size > text && size[-1] != ' ') {
        size--;
    }
    return size != NULL && size > text && *size >= '0' && *size <= '9' ? size
                                                                       : NULL;
}

static uint64_t
bytes_of_memory(const char *size)
{
    static const char units[] = "BKMGT";
    char *end = NULL;
    uint64_t number = strtoull(size, &end, 10);
    const char *space = strchr(end, ' ');
    const char *unit = space != NULL ? strchr(units, space[1]) : NULL;
    return unit != NULL && *unit != '\0' && number < 1 << 20
               ? number << 10 * (unit - units)
               : 0;
}

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
    const char *text = annotation_of_last(self);
    const char *shape = strchr(text, '['), *memory = memory_of(text);
    if (!self->grows || self->autograd_depth != 0 || !has_one_of_each(self)
        || !cm_way_is_tensor(last) || shape == NULL || memory == NULL) {
        return false;
    }
    uint64_t shown = bytes_shown(shape);
    return shown != 0 && shown <= bytes_of_memory(memory) / SMALL;
}

char *
cm_view_say(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name(self, &name);
    return cm_sentence("put copies in %s (`x.clone()`): each is a view, and "
                       "keeps all of its memory, %s",
                       name.text, memory_of(annotation_of_last(self)));
}
