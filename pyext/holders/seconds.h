/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SECONDS_H
#define CM_SECONDS_H

/* Of each node that a variable refers to directly, the first other object that
 * does so too: few of all nodes, so they stand apart, and are searched. */

#include <stddef.h>
#include <stdint.h>

#include "../../detector/status.h"

/* A zeroed value is valid and empty. */
struct cm_seconds {
    struct cm_second {
        uint32_t node, parent;
    } * items; /* owned; nodes ascend */
    size_t count, capacity;
};

void cm_seconds_release(struct cm_seconds *self);
/* Before: no node as large has been added. */
enum cm_status cm_seconds_add(struct cm_seconds *self, uint32_t node)
    CM_CHECKED;
/* Nothing is done for a node that was not added. */
void cm_seconds_set(struct cm_seconds *self, uint32_t node, uint32_t parent);
/* 0: none. */
uint32_t cm_seconds_get(const struct cm_seconds *self, uint32_t node);

#endif
