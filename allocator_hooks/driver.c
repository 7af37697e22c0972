/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Two copies of the subscription may be in a process, and CUPTI serves one:
 * where the driver loaded ours, that one is used. */

#include "driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "subscription.h"

/* What start() chose; NULL before. */
static const struct cm_hook_kind *_Atomic chosen;
static const struct cm_driver_api *_Atomic chosen_api; /* NULL: this copy */

/* Borrowed; NULL: the driver loaded none, or one of another version. */
static const struct cm_driver_api *
find_injected(void)
{
    void *library = dlopen(CM_DRIVER_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = library != NULL ? dlsym(library, CM_DRIVER_ATTACH) : NULL;
    cm_driver_attach *attach;
    if (symbol == NULL) {
        return NULL;
    }
    memcpy(&attach, &symbol, sizeof(symbol));
    const struct cm_driver_api *api = attach(CM_DRIVER_VERSION);
    return api != NULL && api->event_bytes == sizeof(struct cm_event) ? api
                                                                      : NULL;
}

static bool
start(const struct cm_sink *sink, const char *where, const char **why)
{
    const struct cm_driver_api *api = find_injected();
    const struct cm_hook_kind *kind =
        api != NULL ? api->hook : &cm_subscription;
    if (api != NULL) {
        cm_caller_ask(api->library_name);
    }
    if (!kind->start(sink, where, why)) {
        return false;
    }
    atomic_store(&chosen_api, api);
    atomic_store(&chosen, kind);
    return true;
}

static void
stop(void)
{
    const struct cm_hook_kind *kind = atomic_load(&chosen);
    if (kind != NULL) {
        kind->stop();
    }
}

static void
flush(void)
{
    const struct cm_hook_kind *kind = atomic_load(&chosen);
    if (kind != NULL) {
        kind->flush();
    }
}

static uint64_t
lost(void)
{
    const struct cm_hook_kind *kind = atomic_load(&chosen);
    return kind != NULL ? kind->lost() : 0;
}

const char *
cm_driver_trouble(void)
{
    const struct cm_driver_api *api = atomic_load(&chosen_api);
    return api != NULL ? api->trouble() : cm_subscription_trouble();
}

const struct cm_hook_kind cm_driver = {
    .name = "driver",
    .start = start,
    .stop = stop,
    .flush = flush,
    .lost = lost,
};
