/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "growth_anew.h"

static bool
is_told(const struct cm_growth_state *state)
{
    return state->leaked || state->kept
           || state->verdict == CM_VERDICT_LINGERING;
}

static void
begin(struct cm_growth_state *state, struct cm_series *series,
      int64_t iteration)
{
    *series = (struct cm_series){.number = series->number,
                                 .goes_on = state->count != 0};
    *state = (struct cm_growth_state){
        .bytes = state->bytes,
        .count = state->count,
        .peak_bytes = state->bytes,
        .owned_bytes = state->owned_bytes,
        .other_bytes = state->other_bytes,
        .least_other = state->least_other,
        .owns = state->owns,
        .suspected = true, /* its series is empty */
    };
    if (state->count != 0) {
        cm_series_add(series, iteration, state->count, state->bytes);
    }
}

static void
begin_all(struct cm_growth *self, int64_t iteration, bool told)
{
    size_t count = cm_series_table_count(&self->table);
    for (size_t i = 0; i < count && i < self->state_capacity; i++) {
        uint32_t site, device;
        struct cm_series *series =
            cm_series_table_at(&self->table, i, &site, &device);
        if (told || !is_told(&self->states[i])) {
            begin(&self->states[i], series, iteration);
        }
    }
    self->suspect_count = 0;
    self->forward_noted = false;
}

void
cm_growth_begin_anew(struct cm_growth *self, int64_t iteration)
{
    begin_all(self, iteration, true);
    cm_growth_heard(self);
}

void
cm_growth_begin_slices(struct cm_growth *self, int64_t iteration)
{
    begin_all(self, iteration, false);
}
