/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A stand-in for libc10: the function that the allocator reports to. */

#include <stddef.h>
#include <stdint.h>

#include "fake_c10.h"

_Atomic uint64_t fake_reports;

void
FAKE_REPORT(void *address, int64_t bytes, size_t allocated, size_t reserved,
            struct fake_device device)
{
    (void)address;
    (void)bytes;
    (void)allocated;
    (void)reserved;
    (void)device;
    fake_reports++;
}
