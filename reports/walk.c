/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "walk.h"

#include "fault.h"

bool
cm_leak_walk_next(struct cm_leak_walk *self, struct cm_leak_finding *result)
{
    const struct cm_leak *leak = self->leak;
    bool cycle = self->cycle < leak->cycle_count;
    bool growth = self->growth < leak->growth_count;

    if (cycle && growth) {
        growth = cm_fault_peak(&leak->growth[self->growth])
                 > leak->cycles[self->cycle].peak_bytes;
    }
    if (!cycle && !growth) {
        return false;
    }
    result->growth = growth;
    result->index = growth ? self->growth : self->cycle;
    if (growth) {
        self->growth += cm_fault_lines(&leak->growth[self->growth]);
    }
    else {
        self->cycle++;
    }
    return true;
}

bool
cm_fingerprint_is_among(uint64_t fingerprint, const uint64_t *fingerprints,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fingerprints[i] == fingerprint) {
            return true;
        }
    }
    return false;
}
