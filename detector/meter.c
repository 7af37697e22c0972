/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "meter.h"

#if defined(CM_METER_CLOCK)

__attribute__((visibility("default"))) uint64_t cm_meter_ticks[CM_METERS];
__attribute__((visibility("default"))) uint64_t cm_meter_counts[CM_METERS];

#elif defined(CM_METER_PASS)

__attribute__((visibility("default"))) unsigned int cm_meter_passing;

#else

typedef int cm_meter_is_off; /* C knows no empty file */

#endif
