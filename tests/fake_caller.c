/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A library that asks the driver for memory: built under the names of some. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "fake_cupti.h"

#include "../allocator_hooks/driver_layout.h"

void fake_allocate(int device, uint64_t address, uint64_t bytes);
void fake_free(uint64_t address);
void fake_finalize(void);
void fake_refuse(int result);
int fake_subscribers(void);
void fake_churn(uint64_t first, int count, int rounds);

static const struct fake_cupti *
find(void)
{
    void *library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD);
    return dlsym(library, "fake_cupti");
}

void
fake_allocate(int device, uint64_t address, uint64_t bytes)
{
    struct cm_mem_alloc call = {&address, bytes};
    const struct fake_cupti *cupti = find();
    cupti->fire("cuMemAlloc_v2", CM_CUPTI_EXIT, &call, 0,
                cupti->context_of(device));
}

void
fake_free(uint64_t address)
{
    struct cm_mem_free call = {address};
    const struct fake_cupti *cupti = find();
    cupti->fire("cuMemFree_v2", CM_CUPTI_ENTER, &call, 0,
                cupti->context_of(0));
}

/* As another tool that shuts CUPTI down. */
void
fake_finalize(void)
{
    find()->finalize();
}

void
fake_refuse(int result)
{
    find()->refuse(result);
}

int
fake_subscribers(void)
{
    return find()->subscribers();
}

void
fake_churn(uint64_t first, int count, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        for (int at = 0; at < count; at++) {
            fake_allocate(0, first + (uint64_t)at * 512, 512);
        }
        for (int at = 0; at < count; at++) {
            fake_free(first + (uint64_t)at * 512);
        }
    }
}
