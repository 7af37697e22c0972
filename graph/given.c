/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "given.h"

#include "repeat.h"

/* The caller takes what all its calls of this return, and does so again and
 * again. */
static bool
takes(const struct cm_holding *self, const struct cm_code *caller,
      const struct cm_code *code)
{
    bool all = true, again = false;
    for (uint32_t i = 0; all && i < caller->store_count; i++) {
        const struct cm_store *store = &caller->stores[i];
        if (cm_repeat_calls(self, caller, store, code)) {
            all = store->settled;
            again |= cm_repeat_runs(self, caller, store);
        }
    }
    return all && again;
}

static const struct cm_code *
code_at(const struct cm_holding *self, const struct cm_site *site, uint32_t i)
{
    return cm_records_code(self->records, site->frames[i].code);
}

/* A library may stand between them: a decorator's. */
static bool
is_taken(const struct cm_holding *self, const struct cm_code *code)
{
    const struct cm_site *site = cm_records_site(self->records, self->site);
    uint32_t i = 0;
    while (i < site->frame_count && code_at(self, site, i) != code) {
        i++;
    }
    do {
        i++;
    } while (i < site->frame_count && code_at(self, site, i)->library);
    return i < site->frame_count && takes(self, code_at(self, site, i), code);
}

bool
cm_given_settles(const struct cm_holding *self, const struct cm_code *code,
                 const struct cm_store *store)
{
    return store->settled || (store->given && is_taken(self, code));
}
