/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SOUGHT_H
#define CM_SOUGHT_H

/* Addresses that may lie inside blocks, sorted, so that one walk over all
 * blocks answers for all of them. */

#include <stddef.h>
#include <stdint.h>

struct cm_sought {
    uint64_t address;
    size_t index; /* where its answer goes */
};

/* As many are sorted without an allocation. */
#define CM_SOUGHT_FEW 256

void cm_sought_sort(struct cm_sought *all, size_t count);
/* The first that is not below `address`, `count` when all are.  Before:
 * sorted. */
size_t cm_sought_from(const struct cm_sought *all, size_t count,
                      uint64_t address);

#endif
