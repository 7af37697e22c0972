/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef GROWTH_RUN_H
#define GROWTH_RUN_H

/* Runs simulated series as a job would: a value at each boundary where it
 * changed, a verdict where the series is suspect, and adds up what was told.
 * One half is for choosing thresholds, the other is held out. */

#include <stdio.h>
#include <stdlib.h>

#include "../detector/verdict.h"
#include "growth_case.h"

enum { GROWTH_MAX_SERIES = 200 }; /* of one kind, in one half */
/* Far from all that was looked at while the detector was written. */
#define GROWTH_HELD_OUT UINT64_C(1000001)

struct growth_told {
    int leak;    /* iteration of the first leak; -1: none */
    int growing; /* of the first growing, or leak */
    int revoked; /* the last iteration that was still told a leak */
    int asked;   /* verdicts, where the series was suspect */
    enum cm_verdict last;
};

struct growth_row {
    int series, told;
    int delays[GROWTH_MAX_SERIES]; /* from the start, or the ramp's end */
    int settled;
    long asked;
};

struct growth_total {
    struct growth_row rows[GROWTH_KINDS];
    double precision, recall, alarms; /* alarms: of the good ones */
    int steady_delay;
};

/* Leaks are left once they are told; what is good is followed to its end. */
static inline struct growth_told
growth_follow(const struct growth_case *made, enum growth_class class,
              const struct cm_verdict_rules *defaults)
{
    struct growth_told told = {.leak = -1, .growing = -1, .revoked = -1};
    struct cm_verdict_rules rules = *defaults;
    struct cm_series series = {0};
    rules.bounded = made->bounded;
    for (int t = 0; t < GROWTH_ITERATIONS; t++) {
        uint64_t bytes = growth_bytes(made, t);
        struct cm_verdict_result result = {.verdict = CM_VERDICT_OK};
        if (t == 0 || bytes != growth_bytes(made, t - 1)) {
            cm_series_add(&series, t, (uint64_t)(made->bytes[t] / made->unit),
                          bytes);
        }
        bool due = cm_series_suspect(&series, t) || told.revoked == t - 1
                   || t == GROWTH_ITERATIONS - 1;
        if (!due) {
            continue;
        }
        told.asked++;
        cm_verdict(&series, t, &rules, &result);
        told.last = result.verdict;
        if (result.verdict == CM_VERDICT_LEAK) {
            told.leak = told.leak < 0 ? t : told.leak;
            told.revoked = t;
            if (class != GROWTH_RAMP) {
                break;
            }
        }
        if (told.growing < 0
            && (told.leak >= 0 || result.verdict == CM_VERDICT_GROWING)) {
            told.growing = t;
        }
    }
    return told;
}

static inline void
growth_count(struct growth_row *row, enum growth_class class,
             const struct growth_case *made, const struct growth_told *told)
{
    row->series++;
    row->asked += told->asked;
    row->settled += told->last == CM_VERDICT_SETTLED;
    if (told->leak < 0) {
        return;
    }
    if (class == GROWTH_RAMP) {
        row->delays[row->told++] = told->revoked - made->end;
    }
    else if (class == GROWTH_GOOD || told->leak > made->start) {
        row->delays[row->told++] = told->leak - made->start;
    }
}

static inline int
growth_ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static inline int
growth_median(int *numbers, int count)
{
    if (count == 0) {
        return -1;
    }
    qsort(numbers, (size_t)count, sizeof(*numbers), growth_ascending);
    return numbers[count / 2];
}

static inline void
growth_add_up(struct growth_total *total)
{
    static int steady[GROWTH_KINDS * GROWTH_MAX_SERIES];
    int leaks = 0, found = 0, good = 0, alarms = 0, steadies = 0;
    for (size_t kind = 0; kind < GROWTH_KINDS; kind++) {
        const struct growth_row *row = &total->rows[kind];
        enum growth_class class = growth_kinds[kind].class;
        bool leak = class == GROWTH_STEADY || class == GROWTH_LEAK;
        leaks += leak ? row->series : 0;
        found += leak ? row->told : 0;
        good += class == GROWTH_GOOD ? row->series : 0;
        alarms += class == GROWTH_GOOD ? row->told : 0;
        for (int i = 0; class == GROWTH_STEADY && i < row->told; i++) {
            steady[steadies++] = row->delays[i];
        }
    }
    total->precision = found ? (double)found / (found + alarms) : 0;
    total->recall = leaks ? (double)found / leaks : 0;
    total->alarms = good ? (double)alarms / good : 0;
    total->steady_delay = growth_median(steady, steadies);
}

/* `half` 0: for choosing; 1: held out. */
static inline void
growth_run(const struct cm_verdict_rules *rules, int half, int series,
           struct growth_total *total)
{
    static struct growth_case made;
    uint64_t first = half ? GROWTH_HELD_OUT : 0;
    memset(total, 0, sizeof(*total));
    for (size_t kind = 0; kind < GROWTH_KINDS; kind++) {
        enum growth_class class = growth_kinds[kind].class;
        for (int i = 0; i < series; i++) {
            growth_make(&made, kind, (uint64_t)(2 * i) + first);
            struct growth_told told = growth_follow(&made, class, rules);
            growth_count(&total->rows[kind], class, &made, &told);
        }
    }
    growth_add_up(total);
}

/* No series tells them from leaks: they are in no figure above. */
static inline void
growth_print_ramps(const struct growth_total *total)
{
    int ramps = 0, told = 0, good = 0, alarms = 0;
    for (size_t kind = 0; kind < GROWTH_KINDS; kind++) {
        const struct growth_row *row = &total->rows[kind];
        enum growth_class class = growth_kinds[kind].class;
        ramps += class == GROWTH_RAMP ? row->series : 0;
        told += class == GROWTH_RAMP ? row->told : 0;
        good += class == GROWTH_GOOD ? row->series : 0;
        alarms += class == GROWTH_GOOD ? row->told : 0;
    }
    printf("# left out of these: ramps to a size that is not known, not to be "
           "told from a leak by the series alone: %d of %d (%.1f%%) told as "
           "leaks until they end; with them the false alarms are %.2f%%\n",
           told, ramps, ramps > 0 ? 100.0 * told / ramps : 0,
           good + ramps > 0 ? 100.0 * (alarms + told) / (good + ramps) : 0);
}

static inline void
growth_print(struct growth_total *total, const char *title)
{
    static const char *const classes[] = {"good", "leak", "leak", "ramp"};
    printf("# %s\n# %-28s %-5s %5s %6s %7s %6s %8s %6s\n", title, "kind", "",
           "n", "told", "median", "worst", "settled", "asked");
    for (size_t kind = 0; kind < GROWTH_KINDS; kind++) {
        struct growth_row *row = &total->rows[kind];
        int middle = growth_median(row->delays, row->told); /* sorts */
        printf("# %-28s %-5s %5d %5.1f%% %7d %6d %7.1f%% %6ld\n",
               growth_kinds[kind].name, classes[growth_kinds[kind].class],
               row->series, 100.0 * row->told / row->series, middle,
               row->told > 0 ? row->delays[row->told - 1] : -1,
               100.0 * row->settled / row->series, row->asked / row->series);
    }
    printf("# precision %.4f, recall %.4f, false alarms %.2f%% of the good, "
           "steady leaks told after %d iterations (median)\n",
           total->precision, total->recall, 100 * total->alarms,
           total->steady_delay);
    growth_print_ramps(total);
}

#endif
