/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_VERDICT_H
#define CM_VERDICT_H

/* Does this series leak?  A pure function of a series, so every verdict can
 * be revoked: the next one may say otherwise.  Not for naming holders.
 *
 * Linear growth towards a bound (a replay buffer, a cache of a whole data
 * set) is the same series as a leak until the bound is reached; no statistic
 * can tell them apart.  So: what knows a bound says so (`bounded`), and then
 * growth is never a leak; what does not is told after the same ten iterations
 * as a leak, with a confidence that grows with its length, and is taken back
 * (settled) a few iterations after it stopped.  Waiting longer would only
 * move the limit, and lose the leaks that fill a device first. */

#include <stdbool.h>
#include <stdint.h>

#include "series.h"

enum cm_verdict {
    CM_VERDICT_OK,
    CM_VERDICT_GROWING,   /* seen early, or bounded, or slowing: not told */
    CM_VERDICT_LEAK,      /* warns */
    CM_VERDICT_LINGERING, /* kept through the next forward, not growing */
    CM_VERDICT_SETTLED,   /* grew and stopped */
};

struct cm_verdict_rules {
    int64_t warmup;     /* growth until this iteration is not looked at */
    uint64_t min_bytes; /* less growth, or less lingering, is not told */
    double min_bytes_per_iteration;
    /* The holder has a size that the program set, and is not full yet. */
    bool bounded;
    /* Lingering needs that the site allocates anew in each iteration; false
     * for gradients, which no forward needs. */
    bool only_replaced;
    bool slices;    /* iterations are those of time, which get longer, */
    int64_t sliced; /* after this one; before it were the program's own */

    double min_rises; /* of the level: so many that ten iterations suffice */

    /* Chosen by `t_verdict fit`, on one half of its simulations. */
    double min_z_noisy;  /* of the trend test, where the level also falls */
    double max_spread;   /* around the line, as a part of the growth */
    double min_share;    /* of the growth that is in the younger half */
    double share_errors; /* standard errors taken off that share */
    double walk_factor;  /* times what a random walk would do */
    double slowing;      /* growth before, as a multiple of growth now */
};

extern const struct cm_verdict_rules cm_verdict_defaults;

struct cm_verdict_result {
    enum cm_verdict verdict;
    double bytes_per_iteration, count_per_iteration; /* 0 unless growing */
    int64_t since_iteration; /* the last one before it grew, or lingered */
    double rises;      /* of the level since it grows; 0 unless growing */
    double confidence; /* 0..1, that the verdict is right */
    uint64_t lingering_bytes;
};

/* Cost: quadratic in CM_SERIES_POINTS, under 20 us; allocates nothing. */
void cm_verdict(const struct cm_series *series, int64_t now,
                const struct cm_verdict_rules *rules,
                struct cm_verdict_result *result);

/* A constant text: "leak". */
const char *cm_verdict_text(enum cm_verdict verdict);

#endif
