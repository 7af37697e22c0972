/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* By the second interface (cuptiSubscribe_v2) where CUPTI serves several tools
 * that all use it: who comes then is not kept out.  By the first where it does
 * not, or refuses: the driver is too old, or a tool is there that uses the
 * first; a process cannot mix them.  Callbacks are enabled alike in both.
 *
 * The library is never closed, since a callback may be running in it. */

#include "callbacks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct {
    void *library; /* never closed */
    int (*subscribe)(void **subscriber, cm_cupti_callback *callback,
                     void *user_data);
    /* Of newer libraries; NULL: it serves one tool. */
    int (*subscribe_shared)(void **subscriber, cm_cupti_callback *callback,
                            void *user_data, void *parameters);
    int (*unsubscribe)(void *subscriber);
    int (*enable_callback)(uint32_t enable, void *subscriber, int domain,
                           uint32_t id);
    int (*get_callback_state)(uint32_t *enable, void *subscriber, int domain,
                              uint32_t id);
    int (*get_callback_name)(int domain, uint32_t id, const char **name);
    int (*get_device_id)(void *context, uint32_t *device);
    int (*get_result_string)(int result, const char **text);
} cupti;

static void *subscriber;
static char refusal[256];

/* The newest first; a process has one as a rule. */
static const char *const sonames[] = {"libcupti.so.13", "libcupti.so.12"};
enum { SONAMES = sizeof(sonames) / sizeof(sonames[0]) };

static void *
find_library(const char *where)
{
    void *library = NULL;
    for (int at = 0; at < SONAMES && library == NULL; at++) {
        library = dlopen(sonames[at], RTLD_LAZY | RTLD_NOLOAD);
    }
    if (library == NULL && where != NULL) {
        library = dlopen(where, RTLD_LAZY | RTLD_LOCAL);
    }
    for (int at = 0; at < SONAMES && library == NULL; at++) {
        library = dlopen(sonames[at], RTLD_LAZY | RTLD_LOCAL);
    }
    return library;
}

static bool
resolve(void *library)
{
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {
        {"cuptiSubscribe", &cupti.subscribe},
        {"cuptiUnsubscribe", &cupti.unsubscribe},
        {"cuptiEnableCallback", &cupti.enable_callback},
        {"cuptiGetCallbackState", &cupti.get_callback_state},
        {"cuptiGetCallbackName", &cupti.get_callback_name},
        {"cuptiGetDeviceId", &cupti.get_device_id},
        {"cuptiGetResultString", &cupti.get_result_string},
    };
    for (size_t at = 0; at < sizeof(wanted) / sizeof(wanted[0]); at++) {
        void *symbol = dlsym(library, wanted[at].name);
        if (symbol == NULL) {
            return false;
        }
        memcpy(wanted[at].slot, &symbol, sizeof(symbol));
    }
    return true;
}

/* What an older one lacks is left NULL. */
static void
resolve_shared(void *library)
{
    int (*get_version)(uint32_t * version) = NULL;
    uint32_t version = 0;
    void *symbol = dlsym(library, "cuptiGetVersion");
    memcpy(&get_version, &symbol, sizeof(symbol));
    if (get_version != NULL && get_version(&version) == CM_CUPTI_SUCCESS
        && version >= CM_CUPTI_SHARED_SINCE) {
        symbol = dlsym(library, "cuptiSubscribe_v2");
        memcpy(&cupti.subscribe_shared, &symbol, sizeof(symbol));
    }
}

bool
cm_callbacks_load(const char *where, const char **why)
{
    if (cupti.library != NULL) {
        return true;
    }
    void *library = find_library(where);
    if (library == NULL) {
        *why = "driver: no libcupti.so.13 or .12 was found; it comes with "
               "torch's CUDA wheels and with the CUDA toolkit";
        return false;
    }
    if (!resolve(library)) {
        *why = "driver: this libcupti lacks a function that is needed; one of "
               "CUDA 12 or 13 is wanted";
        return false;
    }
    resolve_shared(library);
    cupti.library = library;
    return true;
}

const char *
cm_callbacks_name(uint32_t id)
{
    const char *name = NULL;
    int result = cupti.get_callback_name(CM_CUPTI_DRIVER_API, id, &name);
    return result == CM_CUPTI_SUCCESS ? name : NULL;
}

static const char *
refuse(int result)
{
    if (result == CM_CUPTI_MULTIPLE_SUBSCRIBERS) {
        return "driver: another profiler holds CUPTI (Nsight, cuda-gdb, "
               "compute-sanitizer, or torch.profiler, which keeps it until "
               "the process ends); CUPTI serves one at a time: run without "
               "it, or start cumem first";
    }
    const char *text = NULL;
    if (cupti.get_result_string(result, &text) != CM_CUPTI_SUCCESS
        || text == NULL) {
        text = "an error without a name";
    }
    (void)snprintf(refusal, sizeof(refusal),
                   "driver: CUPTI refused: %s (%d); does the GPU's driver "
                   "fit this libcupti?",
                   text, result);
    return refusal;
}

static bool
begin_shared(cm_cupti_callback *callback, void **made)
{
    struct cm_cupti_subscriber parameters = {
        .struct_bytes = sizeof(parameters),
        .name = "cumem",
        .allows_others = 1,
    };
    return cupti.subscribe_shared != NULL
           && cupti.subscribe_shared(made, callback, NULL, &parameters)
                  == CM_CUPTI_SUCCESS;
}

bool
cm_callbacks_begin(cm_cupti_callback *callback, const char **why)
{
    void *made = NULL;
    int result = begin_shared(callback, &made)
                     ? CM_CUPTI_SUCCESS
                     : cupti.subscribe(&made, callback, NULL);
    if (result != CM_CUPTI_SUCCESS) {
        *why = refuse(result);
        return false;
    }
    subscriber = made;
    return true;
}

bool
cm_callbacks_enable(int domain, uint32_t id)
{
    return cupti.enable_callback(1, subscriber, domain, id)
           == CM_CUPTI_SUCCESS;
}

void
cm_callbacks_end(void)
{
    if (subscriber != NULL) {
        (void)cupti.unsubscribe(subscriber);
    }
    subscriber = NULL;
}

void
cm_callbacks_forget(void)
{
    subscriber = NULL;
}

bool
cm_callbacks_enabled(int domain, uint32_t id)
{
    uint32_t enabled = 0;
    return subscriber != NULL
           && cupti.get_callback_state(&enabled, subscriber, domain, id)
                  == CM_CUPTI_SUCCESS
           && enabled != 0;
}

int
cm_callbacks_device(void *context)
{
    uint32_t device = 0;
    if (context == NULL
        || cupti.get_device_id(context, &device) != CM_CUPTI_SUCCESS
        || device > INT16_MAX) {
        return -1;
    }
    return (int)device;
}
