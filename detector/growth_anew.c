/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "growth_anew.h"

/* As if it had been there for ever. */
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
        .looked = state->looked,
        .forward_bytes = state->forward_bytes,
        .suspected = true, /* its series is empty */
    };
    if (state->count != 0) {
        cm_series_add(series, iteration, state->count, state->bytes);
    }
}

typedef bool is_wanted(const struct cm_growth_state *state,
                       const struct cm_series *series, int64_t since);

static size_t
begin_each(struct cm_growth *self, int64_t iteration, is_wanted *wanted,
           int64_t since)
{
    size_t count = cm_series_table_count(&self->table), left = 0;
    for (size_t i = 0; i < count && i < self->state_capacity; i++) {
        uint32_t site, device;
        struct cm_series *series =
            cm_series_table_at(&self->table, i, &site, &device);
        if (wanted(&self->states[i], series, since)) {
            begin(&self->states[i], series, iteration);
        }
        else {
            self->states[i].earlier = self->states[i].leaked;
            left++;
        }
    }
    self->suspect_count = 0;
    self->forward_noted = false;
    return left;
}

/* Or nobody hears that it has stopped. */
static void
remember_leak(struct cm_growth_state *state)
{
    state->leaked = state->earlier = true;
    state->verdict = state->told = CM_VERDICT_LEAK;
}

void
cm_growth_begin_anew(struct cm_growth *self, int64_t iteration, bool heard)
{
    size_t count = cm_series_table_count(&self->table);
    for (size_t i = 0; i < count && i < self->state_capacity; i++) {
        uint32_t site, device;
        struct cm_growth_state *state = &self->states[i];
        bool told = heard && state->leaked;
        begin(state, cm_series_table_at(&self->table, i, &site, &device),
              iteration);
        state->looked = false;
        state->forward_bytes = 0;
        if (told) {
            remember_leak(state);
        }
    }
    self->suspect_count = 0;
    self->forward_noted = false;
    cm_growth_heard(self);
}

static bool
is_untold(const struct cm_growth_state *state, const struct cm_series *series,
          int64_t since)
{
    (void)series;
    (void)since;
    return !state->leaked && !state->kept
           && state->verdict != CM_VERDICT_LINGERING;
}

bool
cm_growth_begin_slices(struct cm_growth *self, int64_t iteration)
{
    return begin_each(self, iteration, is_untold, 0) != 0;
}

static bool
came_since(const struct cm_growth_state *state, const struct cm_series *series,
           int64_t since)
{
    (void)state;
    return series->first_iteration > since;
}

static bool
came_untold(const struct cm_growth_state *state,
            const struct cm_series *series, int64_t since)
{
    return came_since(state, series, since) && !state->leaked;
}

void
cm_growth_end_slices(struct cm_growth *self, int64_t iteration, bool heard)
{
    (void)begin_each(self, iteration, heard ? came_untold : came_since,
                     self->sliced);
    if (!heard) {
        cm_growth_heard(self);
    }
}
