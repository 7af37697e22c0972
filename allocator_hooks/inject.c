/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The root of libcumem_driver.so, which is not the extension because a
 * process may use CUDA before Python does, or without it.  The driver loads it
 * inside the first cuInit; it subscribes at once and waits for the extension
 * to attach.  It is never unloaded (linked with -z nodelete). */

#include "driver.h"
#include "subscription.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int InitializeInjection(void);
EXPORTED const struct cm_driver_api *cumem_driver_attach(uint32_t version);

static const struct cm_driver_api api = {
    .event_bytes = sizeof(struct cm_event),
    .hook = &cm_subscription,
    .trouble = cm_subscription_trouble,
    .library_name = cm_caller_name,
    .process_use = cm_process_use,
};

const struct cm_driver_api *
cumem_driver_attach(uint32_t version)
{
    cm_caller_be_second();
    return version == CM_DRIVER_VERSION ? &api : NULL;
}

/* Its answer is that the library is fine: a program must not lose CUDA because
 * another profiler was first.  The extension asks again and says why not. */
int
InitializeInjection(void)
{
    const char *why = NULL;
    cm_caller_be_second();
    (void)cm_subscription_early(NULL, &why);
    return 1;
}
