/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TEST_FAKE_C10_H
#define CM_TEST_FAKE_C10_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* As c10::Device lies in memory. */
struct fake_device {
    int8_t type, index;
};

/* c10::reportMemoryUsageToProfiler(void *, int64_t, size_t, size_t, Device);
 * its totals were int64_t before. */
#ifdef FAKE_C10_OLDER
#define FAKE_REPORT _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE
#else
#define FAKE_REPORT _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#endif
void FAKE_REPORT(void *address, int64_t bytes, size_t allocated,
                 size_t reserved, struct fake_device device);

/* How often the profiler's function was called (fake_c10.c). */
extern _Atomic uint64_t fake_reports;

#endif
