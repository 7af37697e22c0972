/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef GROWTH_FIT_H
#define GROWTH_FIT_H

/* Chooses the thresholds of verdict.h: one at a time, the best of a few
 * values, on one half of the simulated series only.  min_rises is not
 * among them: nine would be better (fewer false alarms) but is told after
 * more than ten iterations. */

#include "growth_run.h"

struct growth_knob {
    const char *name;
    size_t offset; /* in struct cm_verdict_rules */
    double values[5];
};

#define GROWTH_KNOB(name, ...)                                                \
    {                                                                         \
#name, offsetof(struct cm_verdict_rules, name),                       \
        {                                                                     \
            __VA_ARGS__                                                       \
        }                                                                     \
    }

static const struct growth_knob growth_knobs[] = {
    GROWTH_KNOB(min_z_noisy, 3, 3.5, 4, 4.5, 5),
    GROWTH_KNOB(max_spread, 0.12, 0.16, 0.2, 0.24, 0.28),
    GROWTH_KNOB(min_share, 0.40, 0.42, 0.44, 0.46, 0.48),
    GROWTH_KNOB(share_errors, 0.5, 1, 2, 3, 4),
    GROWTH_KNOB(walk_factor, 1, 1.4, 1.8, 2.2, 2.6),
    GROWTH_KNOB(slowing, 1.1, 1.2, 1.3, 1.5, 2),
};

/* A false alarm costs a user more than a leak that is not told, and each
 * doubling of the time until it is told as much as a fiftieth of them. */
static inline double
growth_cost(const struct cm_verdict_rules *rules, int series)
{
    static struct growth_total total;
    double cost = 0;
    growth_run(rules, 0, series, &total);
    for (size_t kind = 0; kind < GROWTH_KINDS; kind++) {
        struct growth_row *row = &total.rows[kind];
        enum growth_class class = growth_kinds[kind].class;
        if (class == GROWTH_GOOD) {
            cost += 3.0 * row->told;
        }
        else if (class != GROWTH_RAMP) {
            cost += row->series - row->told;
            cost += series / 50.0
                    * log2(1 + growth_median(row->delays, row->told));
        }
    }
    return cost;
}

static inline int
growth_fit(int series)
{
    struct cm_verdict_rules rules = cm_verdict_defaults;
    double best = growth_cost(&rules, series);
    for (int round = 0; round < 2; round++) {
        for (size_t k = 0; k < sizeof(growth_knobs) / sizeof(*growth_knobs);
             k++) {
            const struct growth_knob *knob = &growth_knobs[k];
            double *place = (double *)((char *)&rules + knob->offset);
            double chosen = *place;
            for (size_t i = 0; i < 5; i++) {
                *place = knob->values[i];
                double cost = growth_cost(&rules, series);
                printf("%-14s %5.2f cost %.1f\n", knob->name, *place, cost);
                fflush(stdout);
                chosen = cost < best ? *place : chosen;
                best = cost < best ? cost : best;
            }
            *place = chosen;
            printf("%-14s %5.2f chosen\n", knob->name, chosen);
        }
    }
    return 0;
}

#endif
