/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FAKE_GPU_H
#define CM_FAKE_GPU_H

/* What tests tell the stand-ins for libcuda ("fake_cuda") and libnvidia-ml
 * ("fake_nvml"): plain variables that they answer with. */

#include <stdbool.h>
#include <stddef.h>

struct fake_cuda {
    int count_result, devices;
    int first_uuid; /* first byte of device 0's; device n: + n */
    void *current;
    int current_device, primary_active;
    size_t free, total;
    int initialised; /* how often cuInit or a context was asked for */
};

struct fake_nvml {
    int init_result, memory_result, processes_result;
    int inits;
    const char *kind; /* "GPU" or "MIG" */
    int first_uuid;   /* of the one device it knows */
    unsigned long long total, free, used;
    unsigned process_count;
    unsigned grow_by; /* processes that come while it is asked */
    unsigned pids[256];
    unsigned long long bytes[256];
};

#endif
