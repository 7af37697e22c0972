/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * libcumem_driver.so as the GPU's driver loads it, and the extension that
 * attaches later. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_cupti.h"

#include "../allocator_hooks/driver.h"
#include "../allocator_hooks/driver_layout.h"

enum { KEYS = 2000 };

static const struct fake_cupti *cupti;
static int (*initialize)(void);
static cm_driver_attach *attach;

static _Atomic int allocations, frees;
static atomic_int live[KEYS + 1]; /* at address n << 21 */
static atomic_bool disorder;
static _Atomic uint16_t last_library;

static void
take(void *context, const struct cm_event *event)
{
    (void)context;
    size_t key = (size_t)(event->address >> 21);
    bool allocates = event->kind == CM_EVENT_ALLOCATE;
    int now = atomic_fetch_add(&live[key], allocates ? 1 : -1);
    if (now != (allocates ? 0 : 1)) {
        atomic_store(&disorder, true);
    }
    atomic_fetch_add(allocates ? &allocations : &frees, 1);
    atomic_store(&last_library, event->library);
}

static const struct cm_sink sink = {.event = take};

static void
forget_events(void)
{
    allocations = frees = 0;
    for (int at = 0; at <= KEYS; at++) {
        live[at] = 0;
    }
}

static void
allocate(uint64_t key)
{
    uint64_t address = key << 21;
    cupti->fire("cuMemAlloc_v2", CM_CUPTI_EXIT,
                &(struct cm_mem_alloc){&address, 512}, 0,
                cupti->context_of(0));
}

static void
release(uint64_t key)
{
    cupti->fire("cuMemFree_v2", CM_CUPTI_ENTER,
                &(struct cm_mem_free){key << 21}, 0, cupti->context_of(0));
}

static int
load(void **state)
{
    (void)state;
    void *fake = dlopen(FAKES "/libcupti.so.13", RTLD_NOW);
    cupti = dlsym(fake, "fake_cupti");
    void *library = dlopen(CUMEM_DRIVER, RTLD_LAZY | RTLD_LOCAL);
    void *symbol = dlsym(library, "InitializeInjection");
    memcpy(&initialize, &symbol, sizeof(symbol));
    symbol = dlsym(library, CM_DRIVER_ATTACH);
    memcpy(&attach, &symbol, sizeof(symbol));
    return cupti == NULL || initialize == NULL || attach == NULL;
}

static void
shows_nothing_else(void **state)
{
    (void)state;
    void *library = dlopen(CUMEM_DRIVER, RTLD_LAZY);
    static const char *const hidden[] = {"cm_subscription", "cm_alloc",
                                         "cm_caller_find", "cm_replay"};
    for (size_t at = 0; at < sizeof(hidden) / sizeof(hidden[0]); at++) {
        assert_null(dlsym(library, hidden[at]));
    }
    assert_null(attach(CM_DRIVER_VERSION + 1));
    assert_int_equal(attach(CM_DRIVER_VERSION)->event_bytes,
                     sizeof(struct cm_event));
}

static void
begins_though_another_profiler_is_there(void **state)
{
    (void)state;
    const char *why = NULL;
    cupti->refuse(CM_CUPTI_MULTIPLE_SUBSCRIBERS);
    assert_int_equal(initialize(), 1);
    assert_int_equal(cupti->subscribers(), 0);
    assert_false(cm_driver.start(&sink, NULL, &why));
    assert_non_null(strstr(why, "another profiler"));
    cupti->reset();
}

static void
tells_the_past_to_who_attaches(void **state)
{
    (void)state;
    const char *why = NULL;
    assert_int_equal(initialize(), 1);
    assert_int_equal(initialize(), 1);
    assert_int_equal(cupti->subscribers(), 1);
    for (uint64_t key = 1; key <= 100; key++) {
        allocate(key);
    }
    for (uint64_t key = 1; key <= 40; key++) {
        release(key);
    }
    assert_true(cm_driver.start(&sink, NULL, &why));
    assert_int_equal(allocations, 60);
    assert_int_equal(frees, 0);
    assert_int_equal(cupti->subscribers(), 1);
    assert_true(last_library >= CM_CALLER_SECOND);
    assert_int_not_equal(strlen(cm_caller_name(last_library)), 0);
    allocate(101);
    release(100);
    assert_int_equal(allocations, 61);
    assert_int_equal(frees, 1);
    cm_driver.flush();
    assert_null(cm_driver_trouble());
    cm_driver.stop();
    assert_int_equal(cupti->subscribers(), 0);
    assert_false(disorder);
}

static atomic_bool over;

/* Its own half of the keys, each allocated and freed in turn. */
static void *
allocate_all_the_time(void *context)
{
    uint64_t first = (uintptr_t)context;
    while (!atomic_load(&over)) {
        for (uint64_t key = first; key < first + KEYS / 2; key++) {
            allocate(key);
        }
        for (uint64_t key = first; key < first + KEYS / 2; key++) {
            release(key);
        }
    }
    return NULL;
}

/* No free is told before its allocation, and none twice. */
static void
attaches_while_threads_allocate(void **state)
{
    (void)state;
    pthread_t threads[2];
    const char *why = NULL;
    for (int round = 0; round < 20; round++) {
        forget_events();
        atomic_store(&over, false);
        assert_int_equal(initialize(), 1);
        for (uintptr_t at = 0; at < 2; at++) {
            pthread_create(&threads[at], NULL, allocate_all_the_time,
                           (void *)(at * (KEYS / 2) + 1));
        }
        usleep(2000);
        assert_true(cm_driver.start(&sink, NULL, &why));
        usleep(2000);
        atomic_store(&over, true);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        cm_driver.stop();
        assert_false(disorder);
        assert_int_equal(allocations, frees);
        assert_int_equal(cm_driver.lost(), 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_nothing_else),
        cmocka_unit_test(begins_though_another_profiler_is_there),
        cmocka_unit_test(tells_the_past_to_who_attaches),
        cmocka_unit_test(attaches_while_threads_allocate),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, load, NULL);
}
