/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LINGERING_H
#define CM_LINGERING_H

/* What a site's memory is that is kept through forward passes which do not need
 * it, without growing: gradients that nobody cleared, a second copy that each
 * iteration makes anew. */

#include <stdbool.h>

#include "verdict.h"

/* Through each of the last three; in slices of time after a training, in which
 * none comes, of the training's last ones, while it is still there.  *result is
 * set where it is so. */
bool cm_lingers(const struct cm_series *series, int64_t now,
                const struct cm_verdict_rules *rules,
                struct cm_verdict_result *result);

#endif
