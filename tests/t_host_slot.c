/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The slots of torch's memory of the host (fake_c10_host.c stands for it), by
 * every way in which torch may be linked (slot_case.h). */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../allocator_hooks/hook.h"
#include "../allocator_hooks/host_slot.h"
#include "../detector/blocks.h"
#include "slot_case.h"

#define LEAST ((size_t)CM_HOST_SLOT_LEAST)

enum { THREADS = 4, PAIRS = 20000, KEPT = 50 };

static struct {
    void *(*new_tensor)(size_t bytes);
    void (*drop_tensor)(void *address);
    _Atomic uint64_t *calls;
} fake;

static const struct cm_hook_kind *const kind = &cm_host_slot;

static void
allocate_again(void)
{
    fake.drop_tensor(fake.new_tensor(LEAST));
}

static bool
find_fakes(void *library)
{
    *(void **)&fake.new_tensor = dlsym(library, "fake_new_tensor");
    *(void **)&fake.drop_tensor = dlsym(library, "fake_drop_tensor");
    fake.calls = dlsym(library, "fake_host_calls");
    return fake.new_tensor != NULL && fake.calls != NULL;
}

static struct cm_block_use
use(void)
{
    struct cm_block_use result;
    cm_blocks_use(blocks, CM_DEVICE_HOST, &result);
    return result;
}

static struct cm_blocks_counts
counts(void)
{
    struct cm_blocks_counts result;
    cm_blocks_counts(blocks, &result);
    return result;
}

static int
events(void)
{
    struct cm_sink to = sink();
    const char *why = NULL;
    struct cm_block block;
    void *before = fake.new_tensor(LEAST);
    CHECK(1, cm_host_slot.start(&to, NULL, &why));
    CHECK(2, !cm_host_slot.start(&to, NULL, &why));
    void *tensor = fake.new_tensor(LEAST);
    CHECK(3, cm_blocks_at(blocks, (uint64_t)(uintptr_t)tensor, &block));
    CHECK(4, block.bytes == LEAST && block.device == CM_DEVICE_HOST);
    CHECK(5, block.site.index == 7 && block.awaited);
    CHECK(6, block.thread == (uint32_t)gettid() && block.time_ns != 0);
    CHECK(7, block.stream == CM_STREAM_UNKNOWN);
    fake.drop_tensor(tensor);
    CHECK(8, use().live_count == 0 && use().allocations == 1);
    tensor = fake.new_tensor(LEAST - 1);
    CHECK(9, use().live_count == 0 && cm_host_slot_small() == 1);
    fake.drop_tensor(tensor);
    fake.drop_tensor(before);
    CHECK(10, fake.new_tensor(0) == NULL);
    fake.drop_tensor(NULL);
    CHECK(11, counts().unknown == 0 && counts().lost == 0);
    CHECK(12, counts().events == 0 && *fake.calls == 8);
    cm_host_slot.flush();
    return 0;
}

/* The same addresses go from thread to thread. */
static void *
make_pairs(void *context)
{
    void *kept[KEPT] = {NULL};
    (void)context;
    for (size_t i = 0; i < PAIRS; i++) {
        fake.drop_tensor(kept[i % KEPT]);
        kept[i % KEPT] = fake.new_tensor(i % 3 == 0 ? 16 : LEAST + i % 64);
    }
    for (size_t i = 0; i < KEPT; i++) {
        fake.drop_tensor(kept[i]);
    }
    return NULL;
}

static int
many(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        CHECK(40, pthread_create(&threads[i], NULL, make_pairs, NULL) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(41, use().live_count == 0 && use().live_bytes == 0);
    CHECK(42, counts().lost == 0 && counts().unknown == 0);
    return 0;
}

/* As events(), past the sink. */
static int
hearing(void)
{
    struct cm_sink to = sink();
    const char *why = NULL;
    struct cm_block block;
    to.event = NULL;
    to.host = cm_blocks_device(blocks, CM_DEVICE_HOST);
    cm_host_slot.stop();
    void *before = fake.new_tensor(LEAST);
    CHECK(50, to.host != NULL && cm_host_slot.start(&to, NULL, &why));
    void *tensor = fake.new_tensor(LEAST + 1);
    CHECK(51, cm_blocks_at(blocks, (uint64_t)(uintptr_t)tensor, &block));
    CHECK(52, block.bytes == LEAST + 1 && block.device == CM_DEVICE_HOST);
    CHECK(53, block.site.index == 7 && block.awaited && block.thread != 0);
    fake.drop_tensor(before);
    fake.drop_tensor(tensor);
    CHECK(54, use().live_count == 0 && counts().lost == 0);
    return many();
}

static int
restoring(void)
{
    struct cm_sink to = sink();
    const char *why = NULL;
    uint64_t small = cm_host_slot_small();
    cm_host_slot.stop();
    cm_host_slot.stop();
    fake.drop_tensor(fake.new_tensor(LEAST));
    fake.drop_tensor(fake.new_tensor(1));
    CHECK(20, use().allocations == 1 && cm_host_slot_small() == small);
    for (int i = 0; i < 100; i++) {
        CHECK(21, cm_host_slot.start(&to, NULL, &why));
        cm_host_slot.stop();
    }
    CHECK(22, cm_host_slot.start(&to, NULL, &why));
    fake.drop_tensor(fake.new_tensor(LEAST));
    CHECK(23, use().allocations == 2);
    return 0;
}

static int
reentry(void)
{
    come_back = true;
    void *tensor = fake.new_tensor(LEAST);
    CHECK(30, use().live_count == 1 && use().allocations == 3);
    fake.drop_tensor(tensor);
    come_back = false;
    CHECK(31, use().live_count == 0);
    return 0;
}

static int
try_events(void)
{
    int failed = events();
    failed = failed != 0 ? failed : restoring();
    failed = failed != 0 ? failed : reentry();
    failed = failed != 0 ? failed : many();
    return failed != 0 ? failed : hearing();
}

static void
serves_a_lazily_bound_library(void **state)
{
    (void)state;
    serve("lazy", "/libc10.so");
}

static void
serves_a_protected_table(void **state)
{
    (void)state;
    serve("now", "/libc10.so");
}

static void
serves_a_library_without_jump_slots(void **state)
{
    (void)state;
    serve("data", "/libc10.so");
}

/* Calls within a library that is linked so go through no slot. */
static void
refuses_a_library_that_binds_its_own_calls(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct cm_sink to = {0};
        const char *why = NULL;
        bool refused = load("bound", "/libc10.so")
                       && !cm_host_slot.start(&to, NULL, &why);
        _exit(refused && strstr(why, "alloc_cpu") != NULL ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_a_lazily_bound_library),
        cmocka_unit_test(serves_a_protected_table),
        cmocka_unit_test(serves_a_library_without_jump_slots),
        cmocka_unit_test(refuses_a_library_that_binds_its_own_calls),
        cmocka_unit_test(says_what_is_missing),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
