/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Faults are few: they are looked up one by one. */
#include "growth_told.h"

#include "../detector/alloc.h"
#include "fault.h"
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

/* What was told of one of the fault's lines last; 0: nothing. */
static uint64_t
told_bytes(const struct cm_growth_told *self,
           const struct cm_leak_growth *first)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < cm_fault_lines(first); i++) {
        const struct cm_growth_told_entry *entry =
            find(self, first[i].fingerprint);

        most = entry != NULL && entry->bytes > most ? entry->bytes : most;
    }
    return most;
}

/* False: it was not known, and there is no room, or no memory. */
static bool
remember(struct cm_growth_told *self, uint64_t fingerprint, uint64_t bytes,
         enum cm_status *status)
{
    struct cm_growth_told_entry *entry = find(self, fingerprint);

    if (entry == NULL) {
        if (self->count == CM_GROWTH_TOLD_MAX) {
            return false;
        }
        *status = cm_grow((void **)&self->items, &self->capacity,
                          self->count + 1, sizeof(self->items[0]));
        if (*status != CM_OK) {
            return false;
        }
        entry = &self->items[self->count++];
        entry->fingerprint = fingerprint;
    }
    entry->bytes = bytes;
    return true;
}

/* All of its lines are known from then on, so that none is told alone when
 * another one has most of the bytes, or is gone. */
static bool
remember_all(struct cm_growth_told *self, const struct cm_leak_growth *first,
             uint64_t bytes, enum cm_status *status)
{
    bool known = true;

    for (uint32_t i = 0; *status == CM_OK && i < cm_fault_lines(first); i++) {
        known = remember(self, first[i].fingerprint, bytes, status) && known;
    }
    return known;
}

static enum cm_status
announce(struct cm_growth_told *self, const struct cm_leak_growth *first,
         struct cm_ledger_news *news)
{
    uint64_t bytes = cm_fault_sum(first).bytes;
    uint64_t told = told_bytes(self, first);
    bool is_news = told == 0 || bytes / 2 >= told;
    enum cm_status status =
        cm_grow((void **)&news->fingerprints, &news->capacity, news->count + 1,
                sizeof(news->fingerprints[0]));

    bytes = bytes > 0 ? bytes : 1;
    if (status == CM_OK
        && remember_all(self, first, is_news ? bytes : told, &status)
        && is_news) {
        news->fingerprints[news->count++] = first->fingerprint;
    }
    return status;
}

enum cm_status
cm_growth_announce(struct cm_growth_told *self, const struct cm_leak *leak,
                   struct cm_ledger_news *news)
{
    enum cm_status status = CM_OK;
    size_t i = 0;

    while (status == CM_OK && i < leak->growth_count) {
        const struct cm_leak_growth *first = &leak->growth[i];

        if (cm_growth_is_fault(cm_growth_verdict(leak, first))) {
            status = announce(self, first, news);
        }
        i += cm_fault_lines(first);
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
