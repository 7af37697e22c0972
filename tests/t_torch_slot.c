/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The slot of torch's report of its memory (fake_c10*.c stand for it), by every
 * way in which torch may be linked (slot_case.h). */

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
#include <unistd.h>
#include <cmocka.h>

#include "../allocator_hooks/hook.h"
#include "../allocator_hooks/slot.h"
#include "../allocator_hooks/torch_slot.h"
#include "../detector/blocks.h"
#include "fake_c10.h"
#include "slot_case.h"

#define BASE UINT64_C(0x7f0000000000)

enum { THREADS = 4, PAIRS = 20000 };

static struct {
    void (*report)(int type, int device, uint64_t address, int64_t bytes);
    void (*pairs)(int device, uint64_t first, uint64_t live, uint64_t count);
    void (*miss)(int device, int64_t bytes);
    uint64_t (*allocated)(int device);
    _Atomic uint64_t *reports;
} fake;

static const struct cm_hook_kind *const kind = &cm_torch_slot;

static void
allocate_again(void)
{
    fake.report(1, 1, BASE, 512);
}

static bool
find_fakes(void *library)
{
    *(void **)&fake.report = dlsym(library, "fake_report");
    *(void **)&fake.pairs = dlsym(library, "fake_pairs");
    *(void **)&fake.miss = dlsym(library, "fake_miss");
    *(void **)&fake.allocated = dlsym(library, "fake_allocated");
    fake.reports = dlsym(library, "fake_reports");
    return fake.report != NULL && fake.reports != NULL;
}

static struct cm_block_use
use_of(int device)
{
    struct cm_block_use use;
    cm_blocks_use(blocks, device, &use);
    return use;
}

static int
events(void)
{
    struct cm_sink to = sink();
    const char *why = NULL;
    struct cm_block block;
    CHECK(1, cm_torch_slot.start(&to, NULL, &why));
    CHECK(2, !cm_torch_slot.start(&to, NULL, &why));
    fake.report(1, 2, BASE, 1024);
    CHECK(3, cm_blocks_at(blocks, BASE, &block));
    CHECK(4, block.bytes == 1024 && block.device == 2);
    CHECK(5, block.site.index == 7 && block.awaited);
    CHECK(6, block.thread == (uint32_t)gettid() && block.time_ns != 0);
    CHECK(7, block.stream == 0);
    CHECK(8, use_of(2).reserved == 1024 + 4096);
    fake.report(1, 2, BASE, -1024);
    CHECK(9, use_of(2).live_bytes == 0 && *fake.reports == 2);
    fake.report(0, 0, BASE, 512); /* host memory is not ours */
    CHECK(10, use_of(0).live_bytes == 0 && *fake.reports == 3);
    fake.report(1, 100, BASE, 512); /* beyond any device */
    CHECK(11, *fake.reports == 4);
    CHECK(12, cm_torch_slot_mismatches() == 0);
    cm_torch_slot.flush();
    return 0;
}

static int
restoring(void)
{
    struct cm_sink to = sink();
    const char *why = NULL;
    CHECK(20, *fake.reports == 4);
    cm_torch_slot.stop();
    cm_torch_slot.stop();
    fake.report(1, 3, BASE, 512);
    CHECK(21, use_of(3).live_bytes == 0 && *fake.reports == 5);
    for (int i = 0; i < 100; i++) {
        CHECK(22, cm_torch_slot.start(&to, NULL, &why));
        cm_torch_slot.stop();
    }
    CHECK(23, cm_torch_slot.start(&to, NULL, &why));
    fake.report(1, 3, BASE, -512);
    struct cm_blocks_counts counts;
    cm_blocks_counts(blocks, &counts);
    CHECK(24, counts.unknown == 1 && *fake.reports == 6);
    return 0;
}

static int
reentry(void)
{
    come_back = true;
    fake.report(1, 4, BASE, 512);
    come_back = false;
    CHECK(30, use_of(4).live_bytes == 512 && use_of(1).live_bytes == 0);
    CHECK(31, *fake.reports == 8);
    return 0;
}

static void *
make_pairs(void *context)
{
    int device = *(int *)context;
    for (uint64_t i = 0; i < 100; i++) {
        fake.report(1, device, BASE + (uint64_t)device * 65536 + i * 512, 512);
    }
    fake.pairs(device, BASE + (uint64_t)device * 65536, 100, PAIRS);
    return NULL;
}

static int
many(void)
{
    pthread_t threads[THREADS];
    int devices[THREADS] = {10, 11, 12, 13};
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, make_pairs, &devices[i]);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(40, use_of(devices[i]).live_bytes == fake.allocated(devices[i]));
        CHECK(41, use_of(devices[i]).live_count == 100);
    }
    CHECK(42, cm_torch_slot_mismatches() == 0);
    return 0;
}

/* A hook writes into the line of a device by itself, from the second event on;
 * it is a short one. */
static int
beyond_the_line(void)
{
    const uint64_t apart = BASE + (UINT64_C(1) << 30);
    struct cm_block block;
    for (uint64_t i = 0; i < 3 * CM_LINE_EVENTS; i++) {
        fake.report(1, 20, apart + i * 512, 512);
    }
    CHECK(50, use_of(20).live_count == 3 * CM_LINE_EVENTS);
    for (uint64_t i = 0; i < CM_LINE_EVENTS; i++) {
        fake.report(1, 20, apart + i * 512, -512);
    }
    CHECK(51, use_of(20).live_bytes == fake.allocated(20));
    CHECK(52, use_of(20).peak_bytes == 3 * CM_LINE_EVENTS * 512);
    CHECK(53, !cm_blocks_at(blocks, apart, &block));
    CHECK(54, cm_blocks_at(blocks, apart + CM_LINE_EVENTS * 512, &block));
    CHECK(55, block.site.index == 7 && block.thread == (uint32_t)gettid());
    return 0;
}

static int
missed(void)
{
    fake.report(1, 21, BASE, 512);
    fake.miss(21, 1024);
    fake.report(1, 21, BASE, -512);
    CHECK(60, cm_torch_slot_mismatches() == 1);
    fake.report(1, 21, BASE, 512);
    CHECK(61, cm_torch_slot_mismatches() == 1);
    return 0;
}

/* Without a line of its own each event is handed over. */
static int
without_lines(void)
{
    struct cm_sink to = sink();
    const char *why = NULL;
    to.line = NULL;
    cm_torch_slot.stop();
    CHECK(70, cm_torch_slot.start(&to, NULL, &why));
    for (uint64_t i = 0; i < 100; i++) {
        fake.report(1, 22, BASE + i * 512, 512);
    }
    CHECK(71, use_of(22).live_bytes == fake.allocated(22));
    CHECK(72, use_of(22).live_count == 100);
    return 0;
}

static int
try_events(void)
{
    int failed = events();
    failed = failed != 0 ? failed : restoring();
    failed = failed != 0 ? failed : reentry();
    failed = failed != 0 ? failed : many();
    failed = failed != 0 ? failed : beyond_the_line();
    failed = failed != 0 ? failed : missed();
    return failed != 0 ? failed : without_lines();
}

static void
serves_a_lazily_bound_library(void **state)
{
    (void)state;
    serve("lazy", "/libc10_cuda.so");
}

static void
serves_a_protected_table(void **state)
{
    (void)state;
    serve("now", "/libc10_cuda.so");
}

static void
serves_a_library_without_jump_slots(void **state)
{
    (void)state;
    serve("data", "/libc10_cuda.so");
}

static void
serves_a_torch_that_tells_signed_totals(void **state)
{
    (void)state;
    serve("older", "/libc10_cuda.so");
}

/* -- another tool's hook -- */

#define SYMBOL "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

static int others_calls;

static void
of_another_tool(void *address, int64_t bytes, size_t allocated,
                size_t reserved, struct fake_device device)
{
    (void)address;
    (void)bytes;
    (void)allocated;
    (void)reserved;
    (void)device;
    others_calls++;
}

static int
beside_another_tool(void)
{
    struct cm_sink to = sink();
    struct cm_slots slots;
    const char *why = NULL;
    char path[CM_SLOT_PATH];
    CHECK(80, cm_slot_library("libc10.so", path));
    void *original = cm_slot_original(path, SYMBOL);
    cm_slot_find("libc10_cuda.so", SYMBOL, &slots);
    CHECK(81, slots.count == 1 && original != NULL);
    CHECK(82, cm_slot_is_free(&slots, "libc10_cuda.so", original, NULL));
    CHECK(83, cm_slot_set(&slots, (void *)of_another_tool));
    CHECK(84, !cm_slot_is_free(&slots, "libc10_cuda.so", original, NULL)
                  && cm_slot_is_free(&slots, "libc10_cuda.so", original,
                                     (void *)of_another_tool));
    CHECK(85, !cm_torch_slot.start(&to, NULL, &why));
    CHECK(86, strstr(why, "the slot has another tool's hook") != NULL);
    cm_torch_slot.stop();
    fake.report(1, 2, BASE, 1024);
    CHECK(87, others_calls == 1 && use_of(2).live_bytes == 0);
    cm_slot_put_back(&slots, (void *)of_another_tool, original);
    CHECK(88, cm_torch_slot.start(&to, NULL, &why));
    fake.report(1, 2, BASE, 1024);
    CHECK(89, others_calls == 1 && use_of(2).live_bytes == 1024);
    return 0;
}

static void
leaves_another_tools_hook_alone(void **state)
{
    (void)state;
    static const char *const variants[] = {"lazy", "now", "data"};
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        pid_t child = fork();
        if (child == 0) {
            blocks = cm_blocks_new(1000);
            bool loaded =
                blocks != NULL && load(variants[i], "/libc10_cuda.so");
            _exit(loaded ? beside_another_tool() : 99);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_a_lazily_bound_library),
        cmocka_unit_test(serves_a_protected_table),
        cmocka_unit_test(serves_a_library_without_jump_slots),
        cmocka_unit_test(serves_a_torch_that_tells_signed_totals),
        cmocka_unit_test(leaves_another_tools_hook_alone),
        cmocka_unit_test(says_what_is_missing),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
