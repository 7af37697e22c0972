/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SLOPE_H
#define CM_SLOPE_H

/* The slope of points that one outlier in five does not move. */

#include <stddef.h>

enum { CM_SLOPE_POINTS = 64 };

/* Before: x rises strictly; count <= CM_SLOPE_POINTS.  After: 0 for fewer than
 * two points.  Cost: quadratic in count; no allocation. */
double cm_slope(const double *x, const double *y, size_t count);

#endif
