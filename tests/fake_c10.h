/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TEST_FAKE_C10_H
#define CM_TEST_FAKE_C10_H

#include <stdatomic.h>
#include <stdint.h>

/* As c10::Device lies in memory. */
struct fake_device {
    int8_t type, index;
};

/* How often the profiler's function was called (fake_c10.c). */
extern _Atomic uint64_t fake_reports;

#endif
