/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Many threads, one subscription; what it tells is in t_driver.c. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver_case.h"

#include "../allocator_hooks/subscription.h"

enum { THREADS = 4, ROUNDS = 3000 };

static atomic_long balance[THREADS]; /* allocations less frees */
static atomic_bool over;

static void
take_from_threads(void *context, const struct cm_event *event)
{
    (void)context;
    size_t thread = (size_t)(event->address >> 40) - 1;
    atomic_fetch_add(&balance[thread],
                     event->kind == CM_EVENT_ALLOCATE ? 1 : -1);
}

static void *
allocate_all_the_time(void *context)
{
    uint64_t base = (uint64_t)(uintptr_t)context << 40;
    for (uint64_t at = 0; at < ROUNDS; at++) {
        uint64_t address = base | (at % 64 + 1) << 9;
        allocate_on((int)(at % 3), address, 512);
        free_address(address);
    }
    return NULL;
}

static const struct cm_sink thread_sink = {.event = take_from_threads};

static void
threads_tell_in_order(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    const char *why = NULL;
    assert_true(cm_subscription.start(&thread_sink, NULL, &why));
    for (uintptr_t at = 0; at < THREADS; at++) {
        pthread_create(&threads[at], NULL, allocate_all_the_time,
                       (void *)(at + 1));
    }
    for (int at = 0; at < THREADS; at++) {
        pthread_join(threads[at], NULL);
        assert_int_equal(atomic_load(&balance[at]), 0);
    }
    cm_subscription.stop();
}

static void *
allocate_until_over(void *context)
{
    while (!atomic_load(&over)) {
        allocate_on(0, (uint64_t)(uintptr_t)context << 40, 512);
        free_address((uint64_t)(uintptr_t)context << 40);
    }
    return NULL;
}

static void
starts_and_stops_under_load(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    const char *why = NULL;
    atomic_store(&over, false);
    for (uintptr_t at = 0; at < THREADS; at++) {
        pthread_create(&threads[at], NULL, allocate_until_over,
                       (void *)(at + 1));
    }
    for (int at = 0; at < 200; at++) {
        assert_true(cm_subscription.start(&thread_sink, NULL, &why));
        cm_subscription.flush();
        usleep(200);
        cm_subscription.stop();
    }
    atomic_store(&over, true);
    for (int at = 0; at < THREADS; at++) {
        pthread_join(threads[at], NULL);
    }
}

static int
load(void **state)
{
    (void)state;
    cupti = dlsym(dlopen(FAKES "/libcupti.so.13", RTLD_NOW), "fake_cupti");
    return cupti == NULL;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_tell_in_order),
        cmocka_unit_test(starts_and_stops_under_load),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, load, NULL);
}
