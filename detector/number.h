/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_NUMBER_H
#define CM_NUMBER_H

/* Counts and bytes as leak.json can hold them: JSON's numbers are doubles,
 * whose whole numbers are exact up to 2^53. */

#include <stdint.h>

#define CM_MOST_NUMBER ((uint64_t)1 << 53)

static inline uint64_t
cm_number_capped(uint64_t number)
{
    return number < CM_MOST_NUMBER ? number : CM_MOST_NUMBER;
}

/* -1 for what is not known, as any negative number says. */
static inline int64_t
cm_number_known(int64_t number)
{
    return number < 0 ? -1 : (int64_t)cm_number_capped((uint64_t)number);
}

static inline uint64_t
cm_number_sum(uint64_t a, uint64_t b)
{
    return cm_number_capped(cm_number_capped(a) + cm_number_capped(b));
}

#endif
