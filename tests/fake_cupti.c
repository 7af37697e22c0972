/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A libcupti without a GPU: callbacks for what is enabled, to one subscriber;
 * another one is kept out or let in as by CUDA 13.3.  The version is that of
 * $FAKE_CUPTI_VERSION, which counts when it is loaded.
 * Unsubscribing waits for callbacks that run, which is what could deadlock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cupti.h"

#include "../allocator_hooks/driver_layout.h"

enum { INVALID_PARAMETER = 1, NOT_INITIALIZED = 15, FIRST_ID = 200 };

extern const struct fake_cupti fake_cupti;

int cuptiSubscribe(void **result, cm_cupti_callback *callback, void *data);
int cuptiSubscribe_v2(void **result, cm_cupti_callback *callback, void *data,
                      struct cm_cupti_subscriber *parameters);
int cuptiGetVersion(uint32_t *version);
int cuptiUnsubscribe(void *old);
int cuptiEnableCallback(uint32_t enable, void *of, int domain, uint32_t id);
int cuptiGetCallbackState(uint32_t *enable, void *of, int domain, uint32_t id);
int cuptiGetCallbackName(int domain, uint32_t id, const char **name);
int cuptiGetDeviceId(void *context, uint32_t *device);
int cuptiGetResultString(int result, const char **text);

static const char *const names[] = {
    "cuMemAlloc", /* of CUDA 3 */
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemAllocManaged",
    "cuMemAllocPitch_v2",
    "cuMemAllocAsync",
    "cuMemAllocAsync_ptsz",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocFromPoolAsync_ptsz",
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemFreeAsync_ptsz",
    NULL,
    "cuMemCreate",
    "cuMemRetainAllocationHandle",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemHostAlloc",
    "cuArrayCreate_v2",
    "cuArray3DCreate_v2",
    "cuArrayDestroy",
    "cuMipmappedArrayCreate",
    "cuMipmappedArrayDestroy",
    "cuCtxDestroy_v2",
    "cuDevicePrimaryCtxReset_v2",
};

enum { NAMES = sizeof(names) / sizeof(names[0]), DOMAINS = 7, IDS = 256 };

/* Threads that call all the time must not keep a writer out. */
static pthread_rwlock_t lock =
    PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static struct {
    cm_cupti_callback *callback; /* NULL: nobody subscribed */
    void *user_data;
    int refusal, shared_refusal, refused_domain;
    int interface, other_interface; /* 1 or 2; 0: nobody's */
    const char *refused_name;
    bool renamed;
    unsigned char enabled[DOMAINS][IDS];
    char contexts[64];
} state;

/* Whether somebody who subscribed by `there` keeps out who comes by `comes`. */
static bool
keeps_out(int there, int comes)
{
    return there != 0 && (there == 1 || comes == 1);
}

static int
subscribe(void **result, cm_cupti_callback *callback, void *data,
          int interface)
{
    int status = state.refusal;
    pthread_rwlock_wrlock(&lock);
    if (status == 0
        && (state.callback != NULL
            || keeps_out(state.other_interface, interface))) {
        status = CM_CUPTI_MULTIPLE_SUBSCRIBERS;
    }
    if (status == 0) {
        state.callback = callback;
        state.user_data = data;
        state.interface = interface;
        *result = &state;
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

int
cuptiSubscribe(void **result, cm_cupti_callback *callback, void *data)
{
    return subscribe(result, callback, data, 1);
}

int
cuptiSubscribe_v2(void **result, cm_cupti_callback *callback, void *data,
                  struct cm_cupti_subscriber *parameters)
{
    if (parameters->struct_bytes != sizeof(*parameters)
        || parameters->allows_others != 1 || parameters->other_name != NULL
        || strlen(parameters->name) > 53) {
        return INVALID_PARAMETER;
    }
    return state.shared_refusal != 0 ? state.shared_refusal
                                     : subscribe(result, callback, data, 2);
}

int
cuptiGetVersion(uint32_t *version)
{
    const char *text = getenv("FAKE_CUPTI_VERSION");
    *version = text != NULL ? (uint32_t)atoi(text) : 130300;
    return 0;
}

static void
drop(void)
{
    pthread_rwlock_wrlock(&lock);
    state.callback = NULL;
    state.interface = 0;
    memset(state.enabled, 0, sizeof(state.enabled));
    pthread_rwlock_unlock(&lock);
}

int
cuptiUnsubscribe(void *old)
{
    if (old != &state || state.callback == NULL) {
        return INVALID_PARAMETER;
    }
    drop();
    return 0;
}

static const char *
name_of(int domain, uint32_t id)
{
    return domain == CM_CUPTI_DRIVER_API && id >= FIRST_ID
                   && id < FIRST_ID + NAMES
               ? names[id - FIRST_ID]
               : NULL;
}

int
cuptiEnableCallback(uint32_t enable, void *of, int domain, uint32_t id)
{
    const char *name = name_of(domain, id);
    if (of != &state || state.callback == NULL || domain < 1
        || domain >= DOMAINS || id >= IDS
        || (name != NULL && state.refused_name != NULL
            && strcmp(name, state.refused_name) == 0)
        || domain == state.refused_domain) {
        return INVALID_PARAMETER;
    }
    pthread_rwlock_wrlock(&lock);
    state.enabled[domain][id] = enable != 0;
    pthread_rwlock_unlock(&lock);
    return 0;
}

int
cuptiGetCallbackState(uint32_t *enable, void *of, int domain, uint32_t id)
{
    if (of != &state || state.callback == NULL) {
        return NOT_INITIALIZED;
    }
    *enable = state.enabled[domain][id];
    return 0;
}

int
cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    *name = name_of(domain, id);
    if (*name != NULL && state.renamed) {
        *name = "cuSomethingElse_v9";
    }
    return id >= FIRST_ID && id < FIRST_ID + NAMES ? 0 : INVALID_PARAMETER;
}

int
cuptiGetDeviceId(void *context, uint32_t *device)
{
    char *place = context;
    if (place < state.contexts || place >= state.contexts + 64) {
        return INVALID_PARAMETER;
    }
    *device = (uint32_t)(place - state.contexts);
    return 0;
}

int
cuptiGetResultString(int result, const char **text)
{
    *text = "CUPTI_ERROR_UNKNOWN";
    return result == 999 ? 0 : INVALID_PARAMETER;
}

/* -- what tests tell it -- */

static void
reset(void)
{
    drop();
    state.refusal = state.shared_refusal = 0;
    state.other_interface = 0;
    state.refused_domain = 0;
    state.refused_name = NULL;
    state.renamed = false;
}

static void
refuse(int result)
{
    state.refusal = result;
}

static void
refuse_shared(int result)
{
    state.shared_refusal = result;
}

static int
other_comes(int interface)
{
    if (keeps_out(state.interface, interface)) {
        return CM_CUPTI_MULTIPLE_SUBSCRIBERS;
    }
    state.other_interface = interface;
    return 0;
}

static void
other_goes(void)
{
    state.other_interface = 0;
}

static int
interface(void)
{
    return state.interface;
}

static void
refuse_name(const char *name)
{
    state.refused_name = name;
}

static void
refuse_domain(int domain)
{
    state.refused_domain = domain;
}

static void
rename_calls(bool renamed)
{
    state.renamed = renamed;
}

static int
subscribers(void)
{
    return state.callback != NULL;
}

static void
fire_raw(int domain, uint32_t id, const void *data)
{
    pthread_rwlock_rdlock(&lock);
    if (state.callback != NULL) {
        state.callback(state.user_data, domain, id, data);
    }
    pthread_rwlock_unlock(&lock);
}

static void
fire_enabled(int domain, uint32_t id, const void *data)
{
    pthread_rwlock_rdlock(&lock);
    if (state.callback != NULL && state.enabled[domain][id]) {
        state.callback(state.user_data, domain, id, data);
    }
    pthread_rwlock_unlock(&lock);
}

static void
fire(const char *name, int site, const void *params, int result, void *context)
{
    for (uint32_t at = 0; at < NAMES; at++) {
        if (names[at] == NULL || strcmp(names[at], name) != 0) {
            continue;
        }
        struct cm_cupti_call call = {
            .site = site,
            .function_name = name,
            .params = params,
            .result = &result,
            .context = context,
        };
        fire_enabled(CM_CUPTI_DRIVER_API, FIRST_ID + at, &call);
    }
}

static void
fire_resource(uint32_t id, void *context)
{
    struct cm_cupti_resource resource = {.context = context};
    fire_enabled(CM_CUPTI_RESOURCE, id, &resource);
}

static void
fire_state(uint32_t id)
{
    fire_enabled(CM_CUPTI_STATE, id, "what happened");
}

static void *
context_of(int device)
{
    return &state.contexts[device];
}

const struct fake_cupti fake_cupti = {
    .reset = reset,
    .refuse = refuse,
    .refuse_shared = refuse_shared,
    .other_comes = other_comes,
    .other_goes = other_goes,
    .interface = interface,
    .refuse_name = refuse_name,
    .refuse_domain = refuse_domain,
    .rename_calls = rename_calls,
    .finalize = drop,
    .subscribers = subscribers,
    .fire = fire,
    .fire_resource = fire_resource,
    .fire_state = fire_state,
    .fire_raw = fire_raw,
    .context_of = context_of,
};
