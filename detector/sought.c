/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "sought.h"

#include <stdbool.h>
#include <stdlib.h>

static int
by_address(const void *left, const void *right)
{
    uint64_t a = ((const struct cm_sought *)left)->address;
    uint64_t b = ((const struct cm_sought *)right)->address;
    return (a > b) - (a < b);
}

static void
insert_each(struct cm_sought *all, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct cm_sought one = all[i];
        size_t at = i;
        for (; at > 0 && all[at - 1].address > one.address; at--) {
            all[at] = all[at - 1];
        }
        all[at] = one;
    }
}

/* glibc's qsort() asks for memory from 1 KB on. */
void
cm_sought_sort(struct cm_sought *all, size_t count)
{
    if (count <= CM_SOUGHT_FEW) {
        insert_each(all, count);
    }
    else {
        qsort(all, count, sizeof(*all), by_address);
    }
}

size_t
cm_sought_from(const struct cm_sought *all, size_t count, uint64_t address)
{
    size_t low = 0;
    while (count > 0) {
        size_t half = count / 2;
        bool below = all[low + half].address < address;
        low += below ? half + 1 : 0;
        count = below ? count - half - 1 : half;
    }
    return low;
}
