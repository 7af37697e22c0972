/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <Python.h>

#include "device_count.h"

#include <dlfcn.h>
#include <stdio.h>

/* Guarded by the GIL. */
static int known_count;    /* 0: not known yet */
static unsigned times_due; /* since nothing is known */

/* Asking costs a turn of the GIL, and a program may import a framework that it
 * never uses: after the first times, seldom. */
enum { FIRST_TIMES = 64, SELDOM = 8 };

/* cuDeviceGetCount() makes no context, and fails before cuInit(). */
static int
ask_driver(void)
{
    int count = 0;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == NULL) {
        return 0;
    }
    int (*get_count)(int *) = NULL;
    *(void **)&get_count = dlsym(driver, "cuDeviceGetCount");
    if (get_count == NULL || get_count(&count) != 0 || count < 0) {
        count = 0;
    }
    dlclose(driver);
    return count;
}

void
cm_device_count_notice(void)
{
    if (known_count != 0) {
        return;
    }
    unsigned time = times_due++;
    if (time < FIRST_TIMES || time % SELDOM == 0) {
        int count;
        Py_BEGIN_ALLOW_THREADS
        count = ask_driver();
        Py_END_ALLOW_THREADS
        known_count = count;
    }
}

void
cm_device_count_forget(void)
{
    known_count = 0;
    times_due = 0;
}

void
cm_cuda_name(long index, char *device, size_t room)
{
    if (index < 0 && known_count != 1) {
        snprintf(device, room, "cuda");
        return;
    }
    snprintf(device, room, "cuda:%ld", index < 0 ? 0 : index & 0xff);
}
