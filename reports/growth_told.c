/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Faults are few: they are looked up one by one. */
#include "growth_told.h"

#include "../detector/alloc.h"
#include "growth.h"

void
cm_growth_told_release(struct cm_growth_told *self)
{
    cm_free(self->items);
    *self = (struct cm_growth_told){0};
}

static struct cm_growth_told_entry *
find(const struct cm_growth_told *self, uint64_t fingerprint)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->items[i].fingerprint == fingerprint) {
            return &self->items[i];
        }
    }
    return NULL;
}

/* NULL: it is not to be told now, or *status says why it cannot be. */
static struct cm_growth_told_entry *
entry_of(struct cm_growth_told *self, const struct cm_leak_growth *growth,
         enum cm_status *status)
{
    struct cm_growth_told_entry *entry = find(self, growth->fingerprint);

    if (entry != NULL) {
        return growth->bytes / 2 >= entry->bytes ? entry : NULL;
    }
    if (self->count == CM_GROWTH_TOLD_MAX) {
        return NULL;
    }
    *status = cm_grow((void **)&self->items, &self->capacity, self->count + 1,
                      sizeof(self->items[0]));
    if (*status != CM_OK) {
        return NULL;
    }
    entry = &self->items[self->count++];
    entry->fingerprint = growth->fingerprint;
    return entry;
}

enum cm_status
cm_growth_announce(struct cm_growth_told *self, const struct cm_leak *leak,
                   struct cm_ledger_news *news)
{
    enum cm_status status = CM_OK;

    for (size_t i = 0; status == CM_OK && i < leak->growth_count; i++) {
        const struct cm_leak_growth *growth = &leak->growth[i];
        struct cm_growth_told_entry *entry;

        if (!cm_growth_is_fault(cm_growth_verdict(leak, growth))) {
            continue;
        }
        status = cm_grow((void **)&news->fingerprints, &news->capacity,
                         news->count + 1, sizeof(news->fingerprints[0]));
        entry = status == CM_OK ? entry_of(self, growth, &status) : NULL;
        if (entry != NULL) {
            news->fingerprints[news->count++] = growth->fingerprint;
            entry->bytes = growth->bytes > 0 ? growth->bytes : 1;
        }
    }
    return status;
}

bool
cm_growth_has_fault(const struct cm_leak *leak)
{
    for (size_t i = 0; i < leak->growth_count; i++) {
        if (cm_growth_is_fault(cm_growth_verdict(leak, &leak->growth[i]))) {
            return true;
        }
    }
    return false;
}
