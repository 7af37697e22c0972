/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* By the module of its type.  O(steps). */

#include "metric.h"

#include "name.h"
#include "way.h"

/* The last one on the way whose state it is; 0: none. */
static size_t
metric_of(const struct cm_holding *self)
{
    size_t found = 0;
    for (size_t i = 1; i < self->count && i < self->at; i++) {
        bool metric = cm_way_is_of(cm_way_module(self, i), "torchmetrics");
        found = metric ? i : found;
    }
    return found;
}

bool
cm_metric_is(const struct cm_holding *self)
{
    return self->count > 1 && metric_of(self) != 0;
}

char *
cm_metric_say(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name_at(self, metric_of(self), &name);
    return cm_sentence("call %s.reset() at the end of each epoch: update() "
                       "adds to its state, and compute() takes nothing away",
                       name.text);
}
