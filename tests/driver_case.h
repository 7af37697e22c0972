/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DRIVER_CASE_H
#define CM_DRIVER_CASE_H

/* Calls of the driver, told by the stand-in for CUPTI. */

#include <stddef.h>
#include <stdint.h>

#include "fake_cupti.h"

#include "../allocator_hooks/driver_layout.h"

static const struct fake_cupti *cupti; /* set by the test */

static inline void
fire(const char *name, int when, const void *params)
{
    cupti->fire(name, when, params, 0, cupti->context_of(0));
}

static inline void
allocate_on(int device, uint64_t address, size_t bytes)
{
    struct cm_mem_alloc call = {&address, bytes};
    void *context = cupti->context_of(device);
    cupti->fire("cuMemAlloc_v2", CM_CUPTI_ENTER, &call, 0, context);
    cupti->fire("cuMemAlloc_v2", CM_CUPTI_EXIT, &call, 0, context);
}

static inline void
free_address(uint64_t address)
{
    struct cm_mem_free call = {address};
    fire("cuMemFree_v2", CM_CUPTI_ENTER, &call);
    fire("cuMemFree_v2", CM_CUPTI_EXIT, &call);
}

#endif
