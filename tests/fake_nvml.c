/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A libnvidia-ml that knows one device. */
#include <stdio.h>
#include <string.h>

#include "fake_gpu.h"

extern struct fake_nvml fake_nvml;
struct fake_nvml fake_nvml = {.kind = "GPU"};

struct memory {
    unsigned long long total, free, used;
};

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instances[2];
};

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *result);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *result);

int
nvmlInit_v2(void)
{
    fake_nvml.inits++;
    return fake_nvml.init_result;
}

int
nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    char known[64];
    (void)snprintf(known, sizeof(known),
                   "%s-%02xababab-abab-abab-abab-abababababab", fake_nvml.kind,
                   (unsigned)fake_nvml.first_uuid);
    *device = &fake_nvml;
    return strcmp(uuid, known) == 0 ? 0 : 6;
}

int
nvmlDeviceGetMemoryInfo(void *device, struct memory *result)
{
    *result = (struct memory){fake_nvml.total, fake_nvml.free, fake_nvml.used};
    return device == &fake_nvml ? fake_nvml.memory_result : 2;
}

int
nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                        struct process *result)
{
    unsigned room = *count;
    (void)device;
    *count = fake_nvml.process_count;
    fake_nvml.process_count += fake_nvml.grow_by;
    if (fake_nvml.processes_result != 0 || *count > room) {
        return fake_nvml.processes_result != 0 ? fake_nvml.processes_result
                                               : 7;
    }
    for (unsigned at = 0; at < *count; at++) {
        result[at] = (struct process){.pid = fake_nvml.pids[at % 256],
                                      .bytes = fake_nvml.bytes[at % 256]};
    }
    return 0;
}
