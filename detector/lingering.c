/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "lingering.h"

enum { RUN = 3 };

bool
cm_lingers(const struct cm_series *series, int64_t now,
           const struct cm_verdict_rules *rules,
           struct cm_verdict_result *result)
{
    uint8_t run =
        rules->only_replaced ? series->replaced_run : series->forwards_run;
    struct cm_series_forward last = cm_series_forward(series, 0);
    int64_t stepped = rules->sliced != 0 ? rules->sliced : now;
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t back = 0; back < RUN && back < run; back++) {
        uint64_t bytes = cm_series_forward(series, back).bytes;
        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    bool gone =
        rules->sliced != 0 && cm_series_newest(series).bytes < least / 2;
    if (run < RUN || gone || least < rules->min_bytes || least < most / 2
        || (stepped > last.iteration
            && (uint64_t)stepped - (uint64_t)last.iteration > RUN)) {
        return false;
    }
    *result = (struct cm_verdict_result){
        .verdict = CM_VERDICT_LINGERING,
        .since_iteration = rules->only_replaced ? series->replaced_before
                                                : series->kept_before,
        .confidence = 1 - 1 / (1 + (double)run),
        .lingering_bytes = least,
    };
    return true;
}
