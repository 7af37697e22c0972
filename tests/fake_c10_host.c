/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A stand-in for libc10's memory of the host: two functions that it exports,
 * and what stands for its allocator, which calls them. */

#include <stddef.h>
#include <stdlib.h>

#include "fake_c10.h"

/* c10::alloc_cpu(size_t), c10::free_cpu(void*) */
void *_ZN3c109alloc_cpuEm(size_t bytes);
void _ZN3c108free_cpuEPv(void *address);
void *fake_new_tensor(size_t bytes);
void fake_drop_tensor(void *address);

_Atomic uint64_t fake_host_calls;

void *
_ZN3c109alloc_cpuEm(size_t bytes)
{
    fake_host_calls++;
    return bytes == 0 ? NULL : malloc(bytes);
}

void
_ZN3c108free_cpuEPv(void *address)
{
    fake_host_calls++;
    free(address);
}

void *
fake_new_tensor(size_t bytes)
{
    return _ZN3c109alloc_cpuEm(bytes);
}

void
fake_drop_tensor(void *address)
{
    _ZN3c108free_cpuEPv(address);
}
