/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ALIAS_H
#define CM_ALIAS_H

/* What something goes by: names, each in a code, in the order in which they
 * were found, each once.  Who goes through them may add more meanwhile; those
 * that come when there are many are left out, so that this ends. */

#include <stddef.h>

#include "../detector/records.h"

enum { CM_MOST_ALIASES = 16 };

struct cm_aliases {
    size_t count;
    struct cm_alias {
        const struct cm_code *code;
        struct cm_text_id name;
    } items[CM_MOST_ALIASES];
};

static inline void
cm_aliases_add(struct cm_aliases *self, const struct cm_code *code,
               struct cm_text_id name)
{
    size_t i = 0;
    while (i < self->count
           && (self->items[i].code != code
               || self->items[i].name.index != name.index)) {
        i++;
    }
    if (i == self->count && i < CM_MOST_ALIASES) {
        self->items[self->count++] = (struct cm_alias){code, name};
    }
}

#endif
