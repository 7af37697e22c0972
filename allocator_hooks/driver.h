/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DRIVER_H
#define CM_DRIVER_H

/* What cm_driver (hook.h) says beside its events, and how the extension finds
 * the copy of it that the GPU's driver loads by CUDA_INJECTION64_PATH: that
 * copy, libcumem_driver.so, has seen every allocation since cuInit. */

#include <stddef.h>
#include <stdint.h>

#include "caller.h"
#include "hook.h"
#include "process_use.h"

/* A constant text, for people: why events no longer come though it was
 * started; NULL: nothing is wrong.  flush() looks. */
const char *cm_driver_trouble(void);

#define CM_DRIVER_LIBRARY "libcumem_driver.so"
#define CM_DRIVER_ATTACH "cumem_driver_attach"

/* Grows only at its end. */
struct cm_driver_api {
    size_t event_bytes; /* of its struct cm_event */
    const struct cm_hook_kind *hook;
    const char *(*trouble)(void);
    cm_caller_names *library_name;
    bool (*process_use)(int cuda_device, struct cm_process_use *result,
                        const char **why);
};

enum { CM_DRIVER_VERSION = 1 }; /* of what is above */

/* NULL: it has another version. */
typedef const struct cm_driver_api *cm_driver_attach(uint32_t version);

#endif
