/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* NVML numbers devices in its own way and knows nothing of
 * CUDA_VISIBLE_DEVICES or of slices of a device (MIG), so the device is found
 * by the UUID that CUDA gives.  CUDA is asked only where it is initialised
 * already: then these calls neither wait nor change anything.
 *
 * NVML numbers processes as the host does.  In a container with numbers of its
 * own we do not find ourselves, or somebody else seems to be us; there the
 * only process on a device where we have a context is taken for us, and of
 * several none. */

#include "process_use.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../detector/alloc.h"

enum { SUCCESS = 0 };
enum { NVML_TOO_SMALL = 7, MAX_PROCESSES = 4096, MAX_TRIES = 4 };
enum { CUDA_NOT_INITIALIZED = 3 };

struct uuid {
    unsigned char bytes[16];
};

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_process {
    unsigned pid;
    unsigned long long used_bytes; /* all ones: not known */
    unsigned gpu_instance, compute_instance;
};

struct symbol {
    const char *name;
    void *slot;
};

static struct {
    int (*init)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*memory)(void *device, struct nvml_memory *result);
    int (*processes)(void *device, unsigned *count,
                     struct nvml_process *result);
} nvml;

static struct {
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*uuid)(struct uuid *uuid, int device);
    int (*primary_state)(int device, unsigned *flags, int *active);
    int (*current)(void **context);
    int (*current_device)(int *device);
    int (*mem_info)(size_t *free, size_t *total);
} cuda;

static pthread_once_t nvml_once = PTHREAD_ONCE_INIT;
static const char *nvml_missing; /* written once: why it cannot be asked */
static pid_t nvml_pid;           /* whose NVML it is; written once */
static pthread_mutex_t cuda_mutex = PTHREAD_MUTEX_INITIALIZER;

static bool
resolve(void *library, const struct symbol *symbols, size_t count)
{
    for (size_t at = 0; at < count; at++) {
        void *symbol = dlsym(library, symbols[at].name);
        if (symbol == NULL) {
            return false;
        }
        memcpy(symbols[at].slot, &symbol, sizeof(symbol));
    }
    return true;
}

/* Initialised once and kept: making it anew takes far longer than asking. */
static void
load_nvml(void)
{
    static const struct symbol symbols[] = {
        {"nvmlInit_v2", &nvml.init},
        {"nvmlDeviceGetHandleByUUID", &nvml.by_uuid},
        {"nvmlDeviceGetMemoryInfo", &nvml.memory},
        {"nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes},
    };
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    nvml_pid = getpid();
    if (library == NULL) {
        nvml_missing = "NVML (libnvidia-ml.so.1) was not found; it comes with "
                       "the GPU's driver";
    }
    else if (!resolve(library, symbols,
                      sizeof(symbols) / sizeof(symbols[0]))) {
        nvml_missing = "this NVML is too old; the driver of CUDA 12 has "
                       "what is needed";
    }
    else if (nvml.init() != SUCCESS) {
        nvml_missing = "NVML could not be initialised";
    }
}

/* -- CUDA, where it is already -- */

static bool
load_cuda(void)
{
    static const struct symbol symbols[] = {
        {"cuDeviceGetCount", &cuda.device_count},
        {"cuDeviceGet", &cuda.device_get},
        {"cuDeviceGetUuid_v2", &cuda.uuid},
        {"cuDevicePrimaryCtxGetState", &cuda.primary_state},
        {"cuCtxGetCurrent", &cuda.current},
        {"cuCtxGetDevice", &cuda.current_device},
        {"cuMemGetInfo_v2", &cuda.mem_info},
    };
    static bool loaded;
    if (pthread_mutex_trylock(&cuda_mutex) != 0) {
        return false;
    }
    if (!loaded) {
        void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        loaded =
            library != NULL
            && resolve(library, symbols, sizeof(symbols) / sizeof(symbols[0]));
    }
    bool result = loaded;
    pthread_mutex_unlock(&cuda_mutex);
    return result;
}

/* What is asked about. */
struct device {
    int number; /* CUDA's handle */
    struct uuid uuid;
    bool has_context; /* of this process: its primary one */
};

/* A text; NULL: it was found. */
static const char *
find_in_cuda(int ordinal, struct device *result)
{
    unsigned flags;
    int count = 0, active = 0;
    if (!load_cuda()) {
        return "CUDA is not in use in this process";
    }
    int status = cuda.device_count(&count);
    if (status == CUDA_NOT_INITIALIZED) {
        return "CUDA is not initialised in this process yet";
    }
    if (status != SUCCESS || ordinal < 0 || ordinal >= count
        || cuda.device_get(&result->number, ordinal) != SUCCESS
        || cuda.uuid(&result->uuid, result->number) != SUCCESS) {
        return "CUDA has no such device in this process";
    }
    result->has_context =
        cuda.primary_state(result->number, &flags, &active) == SUCCESS
        && active != 0;
    return NULL;
}

/* What is free, from the context that is current on this thread, if it is one
 * of this device. */
static bool
ask_context(const struct device *device, struct cm_process_use *result)
{
    void *context = NULL;
    int current = -1;
    size_t free_bytes = 0, total_bytes = 0;
    if (cuda.current(&context) != SUCCESS || context == NULL
        || cuda.current_device(&current) != SUCCESS
        || current != device->number
        || cuda.mem_info(&free_bytes, &total_bytes) != SUCCESS
        || free_bytes > total_bytes) {
        return false;
    }
    result->total = total_bytes;
    result->free = free_bytes;
    result->used = total_bytes - free_bytes;
    return true;
}

/* -- NVML -- */

static void *
find_in_nvml(const struct uuid *uuid)
{
    static const char *const prefixes[] = {"GPU", "MIG"};
    const unsigned char *b = uuid->bytes;
    for (size_t at = 0; at < 2; at++) {
        char name[64];
        void *device = NULL;
        (void)snprintf(name, sizeof(name),
                       "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
                       "%02x%02x%02x%02x%02x%02x",
                       prefixes[at], b[0], b[1], b[2], b[3], b[4], b[5], b[6],
                       b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
                       b[15]);
        if (nvml.by_uuid(name, &device) == SUCCESS) {
            return device;
        }
    }
    return NULL;
}

/* Returns new; NULL: the list could not be had.  It grows while we ask. */
static struct nvml_process *
list_processes(void *device, unsigned *count)
{
    struct nvml_process *items = NULL;
    unsigned room = 64;
    int result = NVML_TOO_SMALL;
    for (int at = 0; at < MAX_TRIES && result == NVML_TOO_SMALL; at++) {
        cm_free(items);
        items = cm_calloc(room, sizeof(items[0]));
        if (items == NULL) {
            return NULL;
        }
        *count = room;
        result = nvml.processes(device, count, items);
        if (result == SUCCESS && *count <= room) {
            return items;
        }
        room = *count < MAX_PROCESSES ? *count + 16 : MAX_PROCESSES;
    }
    cm_free(items);
    return NULL;
}

/* Whether our process number is the host's: kthreadd is process 2 there, and
 * a process of a container never is. */
static bool
numbers_are_the_hosts(void)
{
    char name[16] = "";
    FILE *file = fopen("/proc/2/comm", "re");
    if (file == NULL) {
        return false;
    }
    bool read = fgets(name, sizeof(name), file) != NULL;
    fclose(file);
    return read && strcmp(name, "kthreadd\n") == 0;
}

struct sums {
    uint64_t own, all;
    bool found, unknown; /* us; what some process uses */
};

static struct sums
sum_of(const struct nvml_process *items, unsigned count, bool hosts)
{
    struct sums sums = {0};
    for (unsigned at = 0; at < count; at++) {
        bool is_ours = hosts && items[at].pid == (unsigned)getpid();
        sums.unknown |= items[at].used_bytes == CM_USE_UNKNOWN;
        sums.all += items[at].used_bytes;
        sums.own += is_ours ? items[at].used_bytes : 0;
        sums.found |= is_ours;
    }
    return sums;
}

/* A text; NULL: both parts are known. */
static const char *
add_up(const struct device *asked, const struct nvml_process *items,
       unsigned count, struct cm_process_use *result)
{
    bool hosts = numbers_are_the_hosts();
    struct sums sums = sum_of(items, count, hosts);
    if (sums.unknown) {
        return "NVML does not tell how much each process uses here";
    }
    if (!sums.found && asked->has_context && !hosts && count == 1) {
        sums.own = sums.all;
        sums.found = true;
    }
    if (!sums.found && (asked->has_context || !hosts)) {
        return "NVML does not list this process under its own number, as in "
               "a container that has numbers of its own (--pid=host gives it "
               "the host's)";
    }
    result->own = sums.own;
    result->others = sums.all - sums.own;
    return NULL;
}

static const char *
ask_processes(const struct device *asked, void *device,
              struct cm_process_use *result)
{
    unsigned count = 0;
    struct nvml_process *items = list_processes(device, &count);
    if (items == NULL) {
        return "NVML gives no list of processes";
    }
    const char *why = add_up(asked, items, count, result);
    cm_free(items);
    return why;
}

/* A text; NULL: all is known. */
static const char *
ask_nvml(const struct device *asked, struct cm_process_use *result)
{
    struct nvml_memory memory = {0};
    pthread_once(&nvml_once, load_nvml);
    if (nvml_missing != NULL) {
        return nvml_missing;
    }
    if (nvml_pid != getpid()) {
        return "a forked child cannot ask NVML";
    }
    void *device = find_in_nvml(&asked->uuid);
    if (device == NULL || nvml.memory(device, &memory) != SUCCESS) {
        return "NVML does not know this device";
    }
    result->total = memory.total;
    result->used = memory.used;
    result->free = memory.free;
    return ask_processes(asked, device, result);
}

bool
cm_process_use(int cuda_device, struct cm_process_use *result,
               const char **why)
{
    struct cm_process_use use = {CM_USE_UNKNOWN, CM_USE_UNKNOWN,
                                 CM_USE_UNKNOWN, CM_USE_UNKNOWN,
                                 CM_USE_UNKNOWN};
    struct device asked = {0};
    *why = find_in_cuda(cuda_device, &asked);
    if (*why != NULL) {
        return false;
    }
    *why = ask_nvml(&asked, &use);
    if (use.total == CM_USE_UNKNOWN && !ask_context(&asked, &use)) {
        return false;
    }
    *result = use;
    return true;
}
