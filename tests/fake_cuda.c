/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A libcuda that answers what a test has set. */
#include <string.h>

#include "fake_gpu.h"

extern struct fake_cuda fake_cuda;
struct fake_cuda fake_cuda;

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuCtxGetCurrent(void **context);
int cuCtxGetDevice(int *device);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);

int
cuInit(unsigned flags)
{
    (void)flags;
    fake_cuda.initialised++;
    return 0;
}

int
cuDeviceGetCount(int *count)
{
    *count = fake_cuda.devices;
    return fake_cuda.count_result;
}

int
cuDeviceGet(int *device, int ordinal)
{
    *device = 10 + ordinal;
    return ordinal < fake_cuda.devices ? 0 : 101;
}

int
cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    memset(uuid, 0xab, 16);
    uuid[0] = (unsigned char)(fake_cuda.first_uuid + device - 10);
    return 0;
}

int
cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = fake_cuda.primary_active;
    return device >= 10 ? 0 : 101;
}

int
cuCtxGetCurrent(void **context)
{
    *context = fake_cuda.current;
    return 0;
}

int
cuCtxGetDevice(int *device)
{
    *device = fake_cuda.current_device;
    return 0;
}

int
cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = fake_cuda.free;
    *total_bytes = fake_cuda.total;
    return 0;
}
