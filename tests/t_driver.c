/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The hook against a libcupti without a GPU (fake_cupti.c). */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fail_each.h"
#include "driver_case.h"

#include "../allocator_hooks/driver.h"
#include "../allocator_hooks/driver_call.h"
#include "../allocator_hooks/driver_layout.h"

enum { MAX_EVENTS = 4096, MIB = 1 << 20 };

static struct cm_event events[MAX_EVENTS];
static int count;
static void (*meanwhile)(void); /* run inside the sink */

static void
take(void *context, const struct cm_event *event)
{
    assert_ptr_equal(context, events);
    if (count < MAX_EVENTS) {
        events[count] = *event;
    }
    count++;
    if (meanwhile != NULL) {
        meanwhile();
    }
}

static struct cm_site_id
site(void *context, bool *awaited)
{
    assert_ptr_equal(context, events);
    *awaited = true;
    return (struct cm_site_id){42};
}

static const struct cm_sink sink = {
    .event = take, .site = site, .context = events};

static void
start(void)
{
    const char *why = NULL;
    count = 0;
    if (!cm_driver.start(&sink, NULL, &why)) {
        fail_msg("%s", why);
    }
}

static void
create(uint64_t handle, size_t bytes)
{
    struct cm_mem_properties where = {1, 0, CM_LOCATION_DEVICE, 2};
    fire("cuMemCreate", CM_CUPTI_EXIT,
         &(struct cm_mem_create){&handle, bytes, &where, 0});
}

static void
release(uint64_t handle)
{
    fire("cuMemRelease", CM_CUPTI_ENTER, &(struct cm_mem_release){handle});
}

static void
map(uint64_t address, size_t bytes, uint64_t handle)
{
    fire("cuMemMap", CM_CUPTI_EXIT,
         &(struct cm_mem_map){address, bytes, 0, handle, 0});
}

static void
unmap(uint64_t address, size_t bytes)
{
    fire("cuMemUnmap", CM_CUPTI_ENTER, &(struct cm_mem_unmap){address, bytes});
}

static void
expect(int at, enum cm_event_kind kind, uint64_t address, uint64_t bytes)
{
    assert_true(at < count);
    assert_int_equal(events[at].kind, kind);
    assert_true(events[at].address == address);
    assert_true(events[at].bytes == bytes);
}

/* -- */

/* In a process of its own: a machine with CUDA has a real one, which stays. */
static int
start_without_cupti(void)
{
    const char *why = NULL;
    if (dlopen("libcupti.so.13", RTLD_LAZY) != NULL
        || dlopen("libcupti.so.12", RTLD_LAZY) != NULL) {
        return 0;
    }
    if (cm_driver.start(&sink, NULL, &why)
        || strstr(why, "libcupti.so.13") == NULL
        || cm_driver.start(&sink, "/nowhere/libcupti.so", &why)
        || cm_driver.start(&sink, FAKES "/libframework.so", &why)) {
        return 1;
    }
    return strstr(why, "lacks a function") == NULL;
}

static void
says_when_there_is_no_cupti(void **state)
{
    (void)state;
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(start_without_cupti());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    cm_driver.stop();
    cm_driver.flush();
    assert_int_equal(cm_driver.lost(), 0);
    assert_null(cm_driver_trouble());
}

/* One that serves a single tool has no second interface, or had it before
 * several could use it. */
static int
start_with_an_older_one(void)
{
    const char *why = NULL;
    setenv("FAKE_CUPTI_VERSION", "130200", 1);
    if (!cm_driver.start(&sink, FAKES "/libcupti.so.13", &why)) {
        return 1;
    }
    void *library = dlopen(FAKES "/libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    cupti = dlsym(library, "fake_cupti");
    return cupti == NULL || cupti->interface() != 1;
}

static void
takes_the_first_interface_of_an_older_cupti(void **state)
{
    (void)state;
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(start_with_an_older_one());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void
uses_the_library_that_is_named(void **state)
{
    (void)state;
    const char *why = NULL;
    assert_true(cm_driver.start(&sink, FAKES "/libcupti.so.13", &why));
    void *library = dlopen(FAKES "/libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    cupti = dlsym(library, "fake_cupti");
    assert_non_null(cupti);
    assert_int_equal(cupti->subscribers(), 1);
    assert_false(cm_driver.start(&sink, NULL, &why));
    assert_non_null(strstr(why, "already"));
    cm_driver.stop();
    assert_int_equal(cupti->subscribers(), 0);
    cm_driver.stop();
}

static void
tells_each_allocation_and_free(void **state)
{
    (void)state;
    start();
    allocate_on(3, 0x7f0000000000, 2 * MIB);
    assert_int_equal(count, 1);
    expect(0, CM_EVENT_ALLOCATE, 0x7f0000000000, 2 * MIB);
    assert_int_equal(events[0].device, 3);
    assert_int_equal(events[0].site.index, 42);
    assert_true(events[0].awaited);
    assert_int_equal(events[0].thread, getpid());
    assert_true(events[0].stream == CM_STREAM_UNKNOWN);
    assert_true(events[0].time_ns > 0);
    assert_string_equal(cm_caller_name(events[0].library), "libcmocka.so.0");
    free_address(0x7f0000000000);
    assert_int_equal(count, 2);
    expect(1, CM_EVENT_FREE, 0x7f0000000000, 2 * MIB);
    assert_int_equal(events[1].device, 3);
    free_address(0x123000); /* from before we looked */
    expect(2, CM_EVENT_FREE, 0x123000, 0);
    free_address(0);
    assert_int_equal(count, 3);
    cm_driver.stop();
    allocate_on(0, 0x1000, 1);
    assert_int_equal(count, 3);
    assert_int_equal(cm_driver.lost(), 0);
}

static void
tells_every_way_to_allocate(void **state)
{
    (void)state;
    uint64_t address = 0x1000;
    size_t pitch = 512;
    void *array = &address, *stream = &pitch;
    struct cm_array_descriptor flat = {8, 8, 0x20, 1};
    struct cm_array3d_descriptor deep = {8, 8, 8, 0x20, 1, 0};
    const struct cm_mem_alloc_async async = {&address, 7, stream};
    const struct cm_mem_alloc_from_pool pool = {&address, 7, NULL, stream};
    const struct {
        const char *allocate, *free;
        const void *params;
        uint64_t key, bytes;
    } ways[] = {
        {"cuMemAllocManaged", "cuMemFree_v2",
         &(struct cm_mem_alloc){&address, 9}, address, 9},
        {"cuMemAllocPitch_v2", "cuMemFree_v2",
         &(struct cm_mem_alloc_pitch){&address, &pitch, 500, 2, 4}, address,
         1024},
        {"cuMemAllocAsync", "cuMemFreeAsync", &async, address, 7},
        {"cuMemAllocAsync_ptsz", "cuMemFreeAsync_ptsz", &async, address, 7},
        {"cuMemAllocFromPoolAsync", "cuMemFreeAsync", &pool, address, 7},
        {"cuMemAllocFromPoolAsync_ptsz", "cuMemFree_v2", &pool, address, 7},
        {"cuArrayCreate_v2", "cuArrayDestroy",
         &(struct cm_array_create){&array, &flat},
         (uintptr_t)array | CM_KEY_ARRAY, 256},
        {"cuArray3DCreate_v2", "cuArrayDestroy",
         &(struct cm_array3d_create){&array, &deep},
         (uintptr_t)array | CM_KEY_ARRAY, 2048},
        {"cuMipmappedArrayCreate", "cuMipmappedArrayDestroy",
         &(struct cm_mipmapped_create){&array, &deep, 1},
         (uintptr_t)array | CM_KEY_ARRAY, 2048},
    };
    start();
    for (size_t at = 0; at < sizeof(ways) / sizeof(ways[0]); at++) {
        uint64_t what = ways[at].key & ~CM_KEY_ARRAY;
        count = 0;
        fire(ways[at].allocate, CM_CUPTI_EXIT, ways[at].params);
        fire(ways[at].free, CM_CUPTI_ENTER, &(struct cm_mem_free){what});
        assert_int_equal(count, 2);
        expect(0, CM_EVENT_ALLOCATE, ways[at].key, ways[at].bytes);
        expect(1, CM_EVENT_FREE, ways[at].key, ways[at].bytes);
        bool has_stream = strstr(ways[at].allocate, "Async") != NULL;
        assert_true(events[0].stream
                    == (has_stream ? (uintptr_t)stream : CM_STREAM_UNKNOWN));
    }
    cm_driver.stop();
}

static void
tells_nothing_of_calls_that_fail(void **state)
{
    (void)state;
    uint64_t address = 0x1000;
    const struct cm_mem_alloc call = {&address, 9};
    start();
    cupti->fire("cuMemAlloc_v2", CM_CUPTI_EXIT, &call, 2,
                cupti->context_of(0));
    fire("cuMemAlloc_v2", CM_CUPTI_ENTER, &call);
    fire("cuMemAlloc_v2", CM_CUPTI_EXIT, NULL);
    fire("cuMemFree_v2", CM_CUPTI_EXIT, &(struct cm_mem_free){address});
    fire("cuMemAlloc", CM_CUPTI_EXIT, &call);
    fire("cuLaunchKernel", CM_CUPTI_EXIT, &call);
    fire("cuMemHostAlloc", CM_CUPTI_EXIT, &call);
    cupti->fire_raw(CM_CUPTI_DRIVER_API, 999999,
                    &(struct cm_cupti_call){.params = &call});
    cupti->fire_raw(CM_CUPTI_DRIVER_API, 1,
                    &(struct cm_cupti_call){.params = &call});
    cupti->fire_raw(CM_CUPTI_DRIVER_API, 202, NULL);
    cupti->fire_raw(CM_CUPTI_DRIVER_API, 202,
                    &(struct cm_cupti_call){.site = 1, .params = &call});
    cupti->fire_raw(2, 202, &call);
    assert_int_equal(count, 0);
    assert_int_equal(cm_driver.lost(), 0);
    cupti->fire("cuMemAlloc_v2", CM_CUPTI_EXIT, &call, 0, NULL);
    assert_int_equal(count, 0); /* of no device */
    assert_int_equal(cm_driver.lost(), 1);
    cm_driver.stop();
}

static void
memory_with_a_handle_lives_while_it_is_mapped(void **state)
{
    (void)state;
    const uint64_t key = 0x77 | CM_KEY_HANDLE;
    start();
    create(0x77, MIB);
    expect(0, CM_EVENT_ALLOCATE, key, MIB);
    assert_int_equal(events[0].device, 2);
    release(0x77); /* never mapped */
    expect(1, CM_EVENT_FREE, key, MIB);
    create(0x77, MIB);
    map(0x1000, MIB, 0x77);
    release(0x77);
    assert_int_equal(count, 3);
    unmap(0x1000, MIB);
    assert_int_equal(count, 4);
    expect(3, CM_EVENT_FREE, key, MIB);
    create(0x77, MIB);
    map(0x1000, MIB, 0x77);
    uint64_t again = 0x77;
    fire("cuMemRetainAllocationHandle", CM_CUPTI_EXIT,
         &(struct cm_mem_retain){&again, NULL});
    release(0x77);
    unmap(0x1000, MIB);
    assert_int_equal(count, 5);
    release(0x77);
    assert_int_equal(count, 6);
    release(0x77);
    release(0x99); /* of another process */
    unmap(0x1000, MIB);
    assert_int_equal(count, 6);
    cm_driver.stop();
}

static void
one_call_unmaps_a_row(void **state)
{
    (void)state;
    start();
    for (uint64_t at = 0; at < 4; at++) {
        if (at != 2) { /* that one is another process's */
            create(0x100 + at, 0x1000);
        }
        map(0x10000 + at * 0x1000, 0x1000, 0x100 + at);
        release(0x100 + at);
    }
    assert_int_equal(count, 3);
    unmap(0x10000, 0x4000);
    assert_int_equal(count, 6);
    expect(5, CM_EVENT_FREE, 0x103 | CM_KEY_HANDLE, 0x1000);
    cm_driver.stop();
}

static int
frees_of(int device)
{
    int frees = 0;
    for (int at = 0; at < count; at++) {
        frees +=
            events[at].kind == CM_EVENT_FREE && events[at].device == device;
    }
    return frees;
}

static void
memory_goes_with_its_context(void **state)
{
    (void)state;
    start();
    for (uint64_t at = 1; at <= 100; at++) {
        allocate_on((int)(at % 2), at << 21, at);
    }
    create(0x77, MIB);
    map(0x1000, MIB, 0x77);
    cupti->fire_resource(CM_CUPTI_CONTEXT_DESTROY_STARTING,
                         cupti->context_of(1));
    assert_int_equal(frees_of(1), 50);
    assert_int_equal(frees_of(0), 0);
    fire("cuCtxDestroy_v2", CM_CUPTI_ENTER,
         &(struct cm_ctx_destroy){cupti->context_of(1)});
    assert_int_equal(frees_of(1), 50);
    fire("cuDevicePrimaryCtxReset_v2", CM_CUPTI_ENTER,
         &(struct cm_primary_ctx_reset){0});
    assert_int_equal(frees_of(0), 50);
    assert_int_equal(frees_of(2), 0);
    assert_int_equal(count, 201);
    allocate_on(5, 1 << 21, 1);
    fire("cuCtxDestroy_v2", CM_CUPTI_ENTER,
         &(struct cm_ctx_destroy){cupti->context_of(5)});
    assert_int_equal(frees_of(5), 1);
    cm_driver.stop();
}

static void
says_who_holds_cupti(void **state)
{
    (void)state;
    const char *why = NULL;
    cupti->refuse(CM_CUPTI_MULTIPLE_SUBSCRIBERS);
    assert_false(cm_driver.start(&sink, NULL, &why));
    assert_non_null(strstr(why, "another profiler holds CUPTI"));
    cupti->refuse(999);
    assert_false(cm_driver.start(&sink, NULL, &why));
    assert_non_null(strstr(why, "CUPTI_ERROR_UNKNOWN (999)"));
    cupti->refuse(15);
    assert_false(cm_driver.start(&sink, NULL, &why));
    assert_non_null(strstr(why, "(15)"));
    cupti->reset();
    cupti->rename_calls(true);
    assert_false(cm_driver.start(&sink, NULL, &why));
    assert_non_null(strstr(why, "names none"));
    cupti->reset();
    cupti->refuse_name("cuMemMap");
    assert_false(cm_driver.start(&sink, NULL, &why));
    assert_non_null(strstr(why, "no callbacks"));
    assert_int_equal(cupti->subscribers(), 0);
    cupti->reset();
    cupti->refuse_domain(CM_CUPTI_STATE); /* an older one */
    start();
    cm_driver.stop();
    cupti->reset();
}

static void
shares_cupti_with_tools_of_the_second_interface(void **state)
{
    (void)state;
    const char *why = NULL;
    start();
    assert_int_equal(cupti->interface(), 2);
    assert_int_equal(cupti->other_comes(1), CM_CUPTI_MULTIPLE_SUBSCRIBERS);
    assert_int_equal(cupti->other_comes(2), 0);
    allocate_on(0, 0x1000, 1);
    assert_int_equal(count, 1);
    cm_driver.stop();
    start(); /* the other one was first */
    assert_int_equal(cupti->interface(), 2);
    cm_driver.stop();
    cupti->other_goes();
    assert_int_equal(cupti->other_comes(1), 0);
    assert_false(cm_driver.start(&sink, NULL, &why));
    assert_non_null(strstr(why, "another profiler holds CUPTI"));
    cupti->other_goes();
    cupti->refuse_shared(CM_CUPTI_MULTIPLE_SUBSCRIBERS); /* an older driver */
    start();
    assert_int_equal(cupti->interface(), 1);
    allocate_on(0, 0x1000, 1);
    assert_int_equal(count, 1);
    cm_driver.stop();
    cupti->reset();
}

static void
notices_that_cupti_was_shut_down(void **state)
{
    (void)state;
    start();
    cm_driver.flush();
    assert_null(cm_driver_trouble());
    cupti->finalize();
    assert_null(cm_driver_trouble());
    cm_driver.flush();
    assert_non_null(strstr(cm_driver_trouble(), "shut down"));
    cm_driver.flush();
    cm_driver.stop();
    assert_null(cm_driver_trouble());
    start();
    cupti->fire_state(3);
    assert_null(cm_driver_trouble());
    cupti->fire_state(CM_CUPTI_FATAL_ERROR);
    assert_non_null(cm_driver_trouble());
    cm_driver.stop();
    cupti->reset();
    start();
    allocate_on(0, 0x1000, 1);
    assert_int_equal(count, 1);
    cm_driver.stop();
}

static void
call_the_driver(void)
{
    allocate_on(0, 0x2000, 1);
    free_address(0x2000);
}

static void
a_sink_may_call_the_driver(void **state)
{
    (void)state;
    start();
    meanwhile = call_the_driver;
    allocate_on(0, 0x1000, 1);
    free_address(0x1000);
    meanwhile = NULL;
    assert_int_equal(count, 2);
    cm_driver.stop();
}

static void
starts_and_stops_many_times(void **state)
{
    (void)state;
    long live = cm_alloc_live();
    for (int at = 0; at < 500; at++) {
        start();
        allocate_on(0, 0x1000, 1);
        assert_int_equal(count, 1);
        cm_driver.stop();
        assert_int_equal(cm_alloc_live(), live);
    }
}

static void
a_forked_child_is_left_alone(void **state)
{
    (void)state;
    start();
    allocate_on(0, 0x1000, 1);
    pid_t pid = fork();
    if (pid == 0) {
        const char *why = NULL;
        alarm(10);
        cm_driver.flush();
        bool refused = !cm_driver.start(&sink, NULL, &why)
                       && strstr(why, "forked") != NULL
                       && cm_driver_trouble() == NULL;
        cm_driver.stop();
        _exit(refused ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    cm_driver.stop();
}

/* -- memory -- */

static enum cm_status
attempt(void *context)
{
    (void)context;
    const char *why = NULL;
    uint64_t before = cm_driver.lost();
    count = 0;
    bool started = cm_driver.start(&sink, NULL, &why);
    if (!started) {
        assert_non_null(strstr(why, "no memory"));
        assert_int_equal(cupti->subscribers(), 0);
        cm_caller_release();
        return CM_NO_MEMORY;
    }
    allocate_on(0, 0x1000, 1);
    free_address(0x1000);
    /* An allocation that could not be kept is counted, and not told. */
    bool lost = cm_driver.lost() > before;
    bool named = count == 2 && events[0].library != 0;
    assert_int_equal(count, lost ? 1 : 2);
    cm_driver.stop();
    cm_caller_release();
    return lost || !named ? CM_NO_MEMORY : CM_OK;
}

static void
each_allocation_fails(void **state)
{
    (void)state;
    cm_caller_release();
    cm_fail_each(attempt, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_when_there_is_no_cupti),
        cmocka_unit_test(takes_the_first_interface_of_an_older_cupti),
        cmocka_unit_test(uses_the_library_that_is_named),
        cmocka_unit_test(tells_each_allocation_and_free),
        cmocka_unit_test(tells_every_way_to_allocate),
        cmocka_unit_test(tells_nothing_of_calls_that_fail),
        cmocka_unit_test(memory_with_a_handle_lives_while_it_is_mapped),
        cmocka_unit_test(one_call_unmaps_a_row),
        cmocka_unit_test(memory_goes_with_its_context),
        cmocka_unit_test(says_who_holds_cupti),
        cmocka_unit_test(shares_cupti_with_tools_of_the_second_interface),
        cmocka_unit_test(notices_that_cupti_was_shut_down),
        cmocka_unit_test(a_sink_may_call_the_driver),
        cmocka_unit_test(starts_and_stops_many_times),
        cmocka_unit_test(a_forked_child_is_left_alone),
        cmocka_unit_test(each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
