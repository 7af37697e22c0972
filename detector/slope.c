/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Theil (1950), Sen (1968): the median of the slopes of pairs.  Only of pairs
 * a third of the points apart and more: the near ones say little and are half
 * of the work. */

#include "slope.h"

static void
swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* The median of `count` numbers, which are reordered (Hoare 1961). */
static double
median(double *numbers, ptrdiff_t count)
{
    ptrdiff_t low = 0, high = count - 1, middle = count / 2;
    while (low < high) {
        double pivot = numbers[low + (high - low) / 2];
        ptrdiff_t i = low, j = high;
        while (i <= j) {
            while (numbers[i] < pivot) {
                i++;
            }
            while (numbers[j] > pivot) {
                j--;
            }
            if (i <= j) {
                swap(&numbers[i++], &numbers[j--]);
            }
        }
        low = middle >= i ? i : low;
        high = middle <= j ? j : high;
        if (middle > j && middle < i) {
            break;
        }
    }
    return numbers[middle];
}

double
cm_slope(const double *x, const double *y, size_t count)
{
    double slopes[CM_SLOPE_POINTS * (CM_SLOPE_POINTS - 1) / 2];
    ptrdiff_t pairs = 0;
    size_t apart = count >= 3 ? count / 3 : 1;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + apart; j < count; j++) {
            slopes[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
        }
    }
    return pairs > 0 ? median(slopes, pairs) : 0;
}
