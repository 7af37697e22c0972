/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "meter.h"

#ifdef CM_METER_ON

__attribute__((visibility("default"))) uint64_t cm_meter_ticks[CM_METERS];
__attribute__((visibility("default"))) uint64_t cm_meter_counts[CM_METERS];

#else

typedef int cm_meter_is_off; /* C knows no empty file */

#endif
