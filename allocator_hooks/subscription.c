/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A callback runs on the thread that called the driver, inside the call.
 *
 * Cost of a call of the driver that is not about memory: none, CUPTI looks at
 * its own table.  Of one that is: a few microseconds, for the caller's
 * name. */

#include "subscription.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "caller.h"
#include "callbacks.h"
#include "driver_call.h"
#include "tally.h"

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER; /* start, stop */
/* Guarded by `control`. */
static enum { OFF, EARLY, LISTENING } phase; /* EARLY: nobody listens */
static pid_t subscribed_pid;

static atomic_bool taken_away;
static _Thread_local bool inside;

/* Written before the subscription is made, then read only. */
static const struct cm_driver_entry *entries[CM_CUPTI_MAX_IDS];
static uint32_t probe_id; /* of an entry that is always enabled */

/* -- callbacks -- */

static void
on_call(uint32_t id, const struct cm_cupti_call *data)
{
    const struct cm_driver_entry *entry =
        id < CM_CUPTI_MAX_IDS ? entries[id] : NULL;
    bool at_exit = data->site == CM_CUPTI_EXIT;
    if (entry == NULL || data->params == NULL || at_exit != entry->at_exit) {
        return;
    }
    if (at_exit && (data->result == NULL || *(const int *)data->result != 0)) {
        return;
    }
    struct cm_driver_call call = {.stream = CM_STREAM_UNKNOWN, .device = -1};
    if (!entry->read(data->params, &call)) {
        return;
    }
    if (call.device < 0) {
        call.device = cm_callbacks_device(data->context);
    }
    cm_tally_call(entry->action, &call, (uintptr_t)data->context);
}

static void
on_callback(void *user_data, int domain, uint32_t id, const void *data)
{
    (void)user_data;
    if (inside || data == NULL) {
        return;
    }
    inside = true;
    if (domain == CM_CUPTI_DRIVER_API) {
        on_call(id, data);
    }
    else if (domain == CM_CUPTI_RESOURCE
             && id == CM_CUPTI_CONTEXT_DESTROY_STARTING) {
        const struct cm_cupti_resource *resource = data;
        struct cm_driver_call call = {.context = (uintptr_t)resource->context};
        cm_tally_call(CM_DRIVER_CONTEXT_GONE, &call, 0);
    }
    else if (domain == CM_CUPTI_STATE && id == CM_CUPTI_FATAL_ERROR) {
        atomic_store(&taken_away, true);
    }
    inside = false;
}

/* -- life -- */

/* Whether the calls without which nothing is known have numbers. */
static bool
find_entries(void)
{
    bool can_allocate = false, can_free = false;
    for (uint32_t id = 1; id < CM_CUPTI_MAX_IDS; id++) {
        const char *name = cm_callbacks_name(id);
        entries[id] = name != NULL ? cm_driver_entry_named(name) : NULL;
        if (entries[id] == cm_driver_entry_named("cuMemAlloc_v2")
            && entries[id] != NULL) {
            can_allocate = true;
            probe_id = id;
        }
        can_free |= entries[id] != NULL
                    && entries[id] == cm_driver_entry_named("cuMemFree_v2");
    }
    return can_allocate && can_free;
}

static bool
enable(bool allocating)
{
    for (uint32_t id = 1; id < CM_CUPTI_MAX_IDS; id++) {
        if (entries[id] != NULL
            && (entries[id]->action == CM_DRIVER_ALLOCATE) == allocating
            && !cm_callbacks_enable(CM_CUPTI_DRIVER_API, id)) {
            return false;
        }
    }
    return true;
}

/* One after the other, while other threads call the driver: frees before
 * allocations, or what comes and goes meanwhile would seem to stay. */
static bool
enable_all(void)
{
    if (!enable(false) || !enable(true)) {
        return false;
    }
    /* What an older CUPTI may lack. */
    (void)cm_callbacks_enable(CM_CUPTI_RESOURCE,
                              CM_CUPTI_CONTEXT_DESTROY_STARTING);
    (void)cm_callbacks_enable(CM_CUPTI_STATE, CM_CUPTI_FATAL_ERROR);
    return true;
}

/* CUPTI's own locks may be held there by threads that are not there. */
static bool
is_forked_child(void)
{
    return subscribed_pid != getpid();
}

/* Before: `control` is held.  No other lock of ours is: CUPTI may wait for a
 * callback that waits for it. */
static void
end_subscription(void)
{
    if (atomic_load(&taken_away) || is_forked_child()) {
        cm_callbacks_forget();
    }
    cm_callbacks_end();
    cm_tally_close();
    phase = OFF;
    atomic_store(&taken_away, false);
}

/* Before: the phase is OFF and `control` is held.  After: it is EARLY, or OFF
 * as before. */
static bool
subscribe(const char *where, const char **why)
{
    if (cm_caller_start() != CM_OK || cm_tally_open() != CM_OK) {
        *why = "driver: no memory";
        return false;
    }
    atomic_store(&taken_away, false);
    subscribed_pid = getpid();
    if (!cm_callbacks_load(where, why)) {
        goto failed;
    }
    *why = "driver: this libcupti names none of the driver's memory calls";
    if (!find_entries() || !cm_callbacks_begin(on_callback, why)) {
        goto failed;
    }
    if (!enable_all()) {
        *why = "driver: CUPTI gives no callbacks for the driver's memory "
               "calls";
        goto failed;
    }
    phase = EARLY;
    return true;
failed:
    end_subscription();
    return false;
}

/* Before: `control` is held. */
static bool
start_listening(const struct cm_sink *sink, const char *where,
                const char **why)
{
    bool was_off = phase == OFF;
    if (!was_off && is_forked_child()) {
        *why = "driver: a forked child cannot use CUDA, nor CUPTI";
        return false;
    }
    if (phase == LISTENING) {
        *why = "driver: it is started already";
        return false;
    }
    if (was_off && !subscribe(where, why)) {
        return false;
    }
    inside = true; /* should the sink call the driver after all */
    bool told = cm_tally_listen(sink) == CM_OK;
    inside = false;
    if (told) {
        phase = LISTENING;
        return true;
    }
    *why = "driver: no memory";
    if (was_off) {
        end_subscription();
    }
    return false;
}

/* Two threads that start and stop at once are a mistake of the caller's; a
 * child forked meanwhile finds `control` held for ever, and must not wait. */
static bool
take_control(const char **why)
{
    *why = "driver: another thread is starting or stopping it";
    return pthread_mutex_trylock(&control) == 0;
}

static bool
start(const struct cm_sink *sink, const char *where, const char **why)
{
    if (!take_control(why)) {
        return false;
    }
    bool started = start_listening(sink, where, why);
    pthread_mutex_unlock(&control);
    return started;
}

bool
cm_subscription_early(const char *where, const char **why)
{
    if (!take_control(why)) {
        return false;
    }
    *why = "driver: it is started already";
    bool started = phase == OFF && subscribe(where, why);
    pthread_mutex_unlock(&control);
    return started;
}

static void
stop(void)
{
    const char *why;
    if (!take_control(&why)) {
        return;
    }
    if (phase != OFF) {
        end_subscription();
    }
    pthread_mutex_unlock(&control);
}

/* Nothing is kept back; a good moment to see whether events still come. */
static void
flush(void)
{
    const char *why;
    if (!take_control(&why)) {
        return;
    }
    if (phase != OFF && !is_forked_child() && !atomic_load(&taken_away)
        && !cm_callbacks_enabled(CM_CUPTI_DRIVER_API, probe_id)) {
        atomic_store(&taken_away, true);
    }
    pthread_mutex_unlock(&control);
}

const char *
cm_subscription_trouble(void)
{
    return atomic_load(&taken_away)
               ? "driver: CUPTI was shut down by another tool "
                 "(torch.profiler does so with TEARDOWN_CUPTI=1): what the "
                 "driver has allocated or freed since is not known"
               : NULL;
}

const struct cm_hook_kind cm_subscription = {
    .name = "driver",
    .start = start,
    .stop = stop,
    .flush = flush,
    .lost = cm_tally_lost,
};
