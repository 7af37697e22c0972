/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <pthread.h>
#include <stdlib.h>

#include "../detector/blocks.h"
#include "../detector/event_line.h"
#include "fail_each.h"

#define BASE UINT64_C(0x7f0000000000)
#define MIB (UINT64_C(1) << 20)

enum { MANY = 100000, THREADS = 4 };

static void
tell(struct cm_blocks *blocks, enum cm_event_kind kind, uint64_t address,
     uint64_t bytes)
{
    cm_blocks_event(blocks, &(struct cm_event){.kind = (uint8_t)kind,
                                               .address = address,
                                               .bytes = bytes,
                                               .stream = CM_STREAM_UNKNOWN});
}

static struct cm_block_use
use_of(struct cm_blocks *blocks, int device)
{
    struct cm_block_use use;
    cm_blocks_use(blocks, device, &use);
    return use;
}

static struct cm_blocks_counts
counts_of(struct cm_blocks *blocks)
{
    struct cm_blocks_counts counts;
    cm_blocks_counts(blocks, &counts);
    return counts;
}

static void
keeps_what_the_event_said(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct cm_event event = {.kind = CM_EVENT_ALLOCATE,
                             .address = BASE,
                             .bytes = 140 * 1024 * MIB,
                             .stream = 0x55aa,
                             .allocated = 140 * 1024 * MIB,
                             .reserved = 141 * 1024 * MIB,
                             .time_ns = UINT64_C(7000000000),
                             .thread = 4194303,
                             .site = {77},
                             .device = 63,
                             .awaited = true};
    cm_blocks_event(blocks, &event);
    struct cm_block block;
    assert_true(cm_blocks_at(blocks, BASE, &block));
    assert_int_equal(block.bytes, event.bytes);
    assert_int_equal(block.stream, 0x55aa);
    assert_int_equal(block.time_ns, event.time_ns);
    assert_int_equal(block.thread, 4194303);
    assert_int_equal(block.site.index, 77);
    assert_int_equal(block.device, 63);
    assert_true(block.awaited);
    assert_int_equal(use_of(blocks, 63).reserved, event.reserved);
    assert_int_equal(use_of(blocks, 63).live_bytes, event.bytes);
    assert_int_equal(use_of(blocks, 0).live_bytes, 0);
    assert_false(cm_blocks_at(blocks, BASE + 1, &block));
    assert_false(cm_blocks_at(blocks, 0, &block));
    cm_blocks_free(blocks);
}

static void
tells_the_streams_apart(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    for (uint64_t i = 0; i < 400; i++) {
        struct cm_event event = {.kind = CM_EVENT_ALLOCATE,
                                 .address = BASE + i * 512,
                                 .bytes = 512,
                                 .stream = i * 0x1000};
        cm_blocks_event(blocks, &event);
    }
    for (uint64_t i = 0; i < 400; i++) {
        struct cm_block block;
        assert_true(cm_blocks_at(blocks, BASE + i * 512, &block));
        assert_int_equal(block.stream, i * 0x1000);
    }
    /* More than anyone has: known or unknown, never another one's. */
    for (uint64_t i = 400; i < 2000; i++) {
        struct cm_event event = {.kind = CM_EVENT_ALLOCATE,
                                 .address = BASE + i * 512,
                                 .bytes = 512,
                                 .stream = i * 0x1000};
        struct cm_block block;
        cm_blocks_event(blocks, &event);
        assert_true(cm_blocks_at(blocks, event.address, &block));
        assert_true(block.stream == event.stream
                    || block.stream == CM_STREAM_UNKNOWN);
    }
    cm_blocks_free(blocks);
}

static void
finds_the_block_around_an_address(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    for (uint64_t i = 0; i < 1000; i++) { /* with gaps of half a MiB */
        tell(blocks, CM_EVENT_ALLOCATE, BASE + i * MIB, MIB / 2);
    }
    uint64_t addresses[] = {BASE + 5 * MIB,
                            BASE + 7 * MIB + 1,
                            BASE + 999 * MIB + MIB / 2 - 1,
                            BASE + 9 * MIB + MIB / 2,
                            BASE - 1,
                            BASE + 1000 * MIB,
                            BASE + 7 * MIB + 1,
                            0};
    uint64_t expected[] = {BASE + 5 * MIB,
                           BASE + 7 * MIB,
                           BASE + 999 * MIB,
                           0,
                           0,
                           0,
                           BASE + 7 * MIB,
                           0};
    struct cm_block found[8];
    assert_true(cm_blocks_at(blocks, addresses[0], &found[0]));
    cm_alloc_fail_at(0, true);
    cm_blocks_match(blocks, addresses, 8, found);
    cm_alloc_fail_at(-1, false);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(found[i].address, expected[i]);
        assert_int_equal(found[i].bytes, expected[i] ? MIB / 2 : 0);
    }
    cm_blocks_free(blocks);
}

static void
counts_what_it_did_not_understand(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    tell(blocks, CM_EVENT_FREE, BASE, 0);
    assert_int_equal(counts_of(blocks).unknown, 1);
    tell(blocks, CM_EVENT_ALLOCATE, 0, 512);
    tell(blocks, CM_EVENT_ALLOCATE, BASE, UINT64_MAX);
    cm_blocks_event(blocks, &(struct cm_event){.kind = CM_EVENT_ALLOCATE,
                                               .address = BASE,
                                               .bytes = 512,
                                               .device = -2});
    cm_blocks_event(blocks, &(struct cm_event){.kind = CM_EVENT_ALLOCATE,
                                               .address = BASE,
                                               .bytes = 512,
                                               .device = CM_MAX_DEVICES});
    assert_int_equal(counts_of(blocks).lost, 4);
    tell(blocks, CM_EVENT_ALLOCATE, BASE, 512);
    tell(blocks, CM_EVENT_ALLOCATE, BASE, 1024); /* its free was not told */
    assert_int_equal(counts_of(blocks).lost, 5);
    assert_int_equal(use_of(blocks, 0).live_bytes, 1024);
    assert_int_equal(use_of(blocks, 0).live_count, 1);
    tell(blocks, CM_EVENT_OUT_OF_MEMORY, 0, MIB);
    assert_int_equal(counts_of(blocks).out_of_memory, 1);
    tell(blocks, 99, BASE, 1);
    assert_int_equal(use_of(blocks, -2).live_bytes, 0);
    cm_blocks_free(blocks);
}

static void
tell_host(struct cm_blocks *blocks, enum cm_event_kind kind, uint64_t address)
{
    cm_blocks_event(blocks, &(struct cm_event){.kind = (uint8_t)kind,
                                               .address = address,
                                               .bytes = MIB,
                                               .device = CM_DEVICE_HOST,
                                               .doubtful = true});
}

static void
keeps_the_host_apart(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct cm_block block;
    tell_host(blocks, CM_EVENT_ALLOCATE, BASE);
    tell_host(blocks, CM_EVENT_ALLOCATE, BASE + MIB);
    assert_int_equal(cm_blocks_devices(blocks), 0);
    tell(blocks, CM_EVENT_ALLOCATE, BASE + 2 * MIB, MIB);
    assert_true(cm_blocks_at(blocks, BASE, &block));
    assert_int_equal(block.device, CM_DEVICE_HOST);
    tell_host(blocks, CM_EVENT_FREE, BASE);
    assert_int_equal(use_of(blocks, CM_DEVICE_HOST).live_bytes, MIB);
    assert_int_equal(use_of(blocks, CM_DEVICE_HOST).peak_bytes, 2 * MIB);
    cm_blocks_mark(blocks);
    assert_int_equal(use_of(blocks, CM_DEVICE_HOST).peak_bytes, MIB);
    cm_blocks_clear_device(blocks, CM_DEVICE_HOST);
    cm_blocks_clear_device(blocks, -2);
    cm_blocks_clear_device(blocks, CM_MAX_DEVICES);
    assert_int_equal(use_of(blocks, CM_DEVICE_HOST).live_count, 0);
    assert_int_equal(use_of(blocks, 0).live_bytes, MIB);
    tell_host(blocks, CM_EVENT_ALLOCATE, BASE + MIB);
    assert_int_equal(use_of(blocks, CM_DEVICE_HOST).peak_bytes, MIB);
    cm_blocks_clear(blocks);
    assert_int_equal(use_of(blocks, CM_DEVICE_HOST).live_count, 0);
    assert_int_equal(use_of(blocks, 0).live_count, 0);
    assert_int_equal(counts_of(blocks).lost, 0);
    cm_blocks_free(blocks);
}

static void
counts_no_free_that_may_miss(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    tell_host(blocks, CM_EVENT_FREE, BASE);
    assert_int_equal(counts_of(blocks).unknown, 0);
    tell(blocks, CM_EVENT_ALLOCATE, BASE, MIB); /* of a device: it stays */
    tell_host(blocks, CM_EVENT_FREE, BASE);
    assert_int_equal(use_of(blocks, 0).live_count, 1);
    tell(blocks, CM_EVENT_FREE, BASE, 0);
    tell_host(blocks, CM_EVENT_ALLOCATE, BASE);
    tell_host(blocks, CM_EVENT_FREE, BASE);
    tell_host(blocks, CM_EVENT_FREE, BASE);
    assert_int_equal(counts_of(blocks).unknown, 0);
    assert_int_equal(counts_of(blocks).events, 2);
    assert_int_equal(use_of(blocks, CM_DEVICE_HOST).live_count, 0);
    cm_blocks_free(blocks);
}

static void
starts_the_peak_again_at_a_mark(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    tell(blocks, CM_EVENT_ALLOCATE, BASE, 100);
    tell(blocks, CM_EVENT_ALLOCATE, BASE + 512, 300);
    tell(blocks, CM_EVENT_FREE, BASE + 512, 0);
    assert_int_equal(use_of(blocks, 0).peak_bytes, 400);
    cm_blocks_mark(blocks);
    assert_int_equal(use_of(blocks, 0).peak_bytes, 100);
    assert_int_equal(use_of(blocks, 0).allocations, 2);
    cm_blocks_free(blocks);
}

/* The same events on a plain array give the same blocks. */
static void
agrees_with_a_plain_array(void **state)
{
    (void)state;
    enum { PLACES = 5000 };
    static uint64_t live[PLACES];
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    uint64_t sum = 0, count = 0;
    unsigned seed = 7;
    for (int step = 0; step < 300000; step++) {
        size_t at = (size_t)rand_r(&seed) % PLACES;
        uint64_t address = BASE + at * 512;
        if (live[at] == 0) {
            live[at] = 1 + (uint64_t)rand_r(&seed) % 1000;
            tell(blocks, CM_EVENT_ALLOCATE, address, live[at]);
            sum += live[at];
            count++;
        }
        else {
            tell(blocks, CM_EVENT_FREE, address, 0);
            sum -= live[at];
            live[at] = 0;
            count--;
        }
    }
    struct cm_block_use use = use_of(blocks, 0);
    assert_int_equal(use.live_bytes, sum);
    assert_int_equal(use.live_count, count);
    for (size_t at = 0; at < PLACES; at++) {
        struct cm_block block;
        bool found = cm_blocks_at(blocks, BASE + at * 512, &block);
        assert_int_equal(found, live[at] != 0);
        assert_true(!found || block.bytes == live[at]);
    }
    struct cm_block *copies;
    size_t copied;
    assert_int_equal(cm_blocks_copy(blocks, &copies, &copied), CM_OK);
    assert_int_equal(copied, count);
    for (size_t i = 0; i < copied; i++) {
        sum -= copies[i].bytes;
    }
    assert_int_equal(sum, 0);
    cm_free(copies);
    cm_blocks_free(blocks);
}

static void
takes_at_most_64_bytes_for_a_block(void **state)
{
    (void)state;
    for (uint64_t count = 10000; count <= 1000000; count = count * 5 / 4) {
        struct cm_blocks *blocks = cm_blocks_new(2000000);
        uint64_t empty = counts_of(blocks).footprint;
        for (uint64_t i = 0; i < count; i++) {
            tell(blocks, CM_EVENT_ALLOCATE, BASE + i * 512, 512);
        }
        assert_int_equal(use_of(blocks, 0).live_count, count);
        assert_in_range(counts_of(blocks).footprint - empty, 32 * count,
                        64 * count);
        cm_blocks_free(blocks);
    }
}

static void
stops_at_its_bound(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(1000);
    for (uint64_t i = 0; i < 100000; i++) {
        tell(blocks, CM_EVENT_ALLOCATE, BASE + i * 512, 512);
    }
    struct cm_block_use use = use_of(blocks, 0);
    assert_in_range(use.live_count, 1000, 4000);
    assert_int_equal(counts_of(blocks).lost, 100000 - use.live_count);
    cm_blocks_free(blocks);
}

struct worker {
    struct cm_blocks *blocks;
    uint64_t base;
};

static void *
allocate_and_free(void *context)
{
    struct worker *worker = context;
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t address = worker->base + i % 1000 * 512;
        tell(worker->blocks, CM_EVENT_ALLOCATE, address, 512);
        if (i % 3 != 0 || i < MANY - 1000) {
            tell(worker->blocks, CM_EVENT_FREE, address, 0);
        }
    }
    return NULL;
}

static void
serves_threads_and_readers_at_once(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){blocks, BASE + i * 1024 * MIB};
        assert_int_equal(
            pthread_create(&threads[i], NULL, allocate_and_free, &workers[i]),
            0);
    }
    for (int i = 0; i < 50; i++) {
        struct cm_block *copies;
        struct cm_block found;
        size_t count;
        uint64_t inside = BASE + 1;
        assert_int_equal(cm_blocks_copy(blocks, &copies, &count), CM_OK);
        cm_free(copies);
        cm_blocks_match(blocks, &inside, 1, &found);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    struct cm_block_use use = use_of(blocks, 0);
    assert_int_equal(use.live_bytes, use.live_count * 512);
    assert_int_equal(use.live_count, THREADS * 334);
    assert_int_equal(counts_of(blocks).lost, 0);
    assert_int_equal(counts_of(blocks).unknown, 0);
    cm_blocks_free(blocks);
}

/* An allocator with a lock of its own. */
struct allocator {
    struct cm_blocks *blocks;
    pthread_mutex_t mutex;
    bool live[1000];
};

static void *
turn_blocks(void *context)
{
    struct allocator *allocator = context;
    struct cm_event_line *line = cm_blocks_line(allocator->blocks, 0);
    unsigned seed = (unsigned)(uintptr_t)&seed;
    for (int i = 0; i < MANY; i++) {
        size_t at = (size_t)rand_r(&seed) % 1000;
        pthread_mutex_lock(&allocator->mutex);
        bool was_live = allocator->live[at];
        allocator->live[at] = !was_live;
        struct cm_event event = {.kind = was_live ? CM_EVENT_FREE
                                                  : CM_EVENT_ALLOCATE,
                                 .address = BASE + at * 512,
                                 .bytes = 512,
                                 .in_order = true};
        if (i % 3 == 0 || !cm_event_line_write(line, &event)) {
            cm_blocks_event(allocator->blocks, &event);
        }
        pthread_mutex_unlock(&allocator->mutex);
    }
    return NULL;
}

/* Some by themselves, beside others of the same device that are in no order,
 * and readers. */
static void
keeps_the_order_of_an_allocator(void **state)
{
    (void)state;
    struct allocator allocator = {.blocks = cm_blocks_new(MANY),
                                  .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct worker worker = {allocator.blocks, BASE + 1024 * MIB};
    pthread_t threads[THREADS], other;
    uint64_t live = 334; /* the other's */
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, turn_blocks, &allocator), 0);
    }
    assert_int_equal(pthread_create(&other, NULL, allocate_and_free, &worker),
                     0);
    for (int i = 0; i < 200; i++) {
        struct cm_block_use use = use_of(allocator.blocks, 0);
        assert_int_equal(use.live_bytes, use.live_count * 512);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_join(other, NULL);
    for (size_t i = 0; i < 1000; i++) {
        live += allocator.live[i];
    }
    assert_int_equal(use_of(allocator.blocks, 0).live_count, live);
    assert_int_equal(counts_of(allocator.blocks).lost, 0);
    assert_int_equal(counts_of(allocator.blocks).unknown, 0);
    assert_int_equal(counts_of(allocator.blocks).events,
                     THREADS * MANY + 2 * MANY - 334);
    cm_blocks_free(allocator.blocks);
}

static enum cm_status
everything(void *context)
{
    (void)context;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    if (blocks == NULL) {
        return CM_NO_MEMORY;
    }
    enum cm_status status = CM_OK;
    for (uint64_t i = 0; i < 2000; i++) {
        tell(blocks, CM_EVENT_ALLOCATE, BASE + i * 512, 512);
    }
    if (counts_of(blocks).lost != 0 || counts_of(blocks).lost_sites != 0) {
        status = CM_NO_MEMORY;
    }
    assert_int_equal(use_of(blocks, 0).live_count + counts_of(blocks).lost,
                     2000);
    uint64_t inside = BASE + 1;
    struct cm_block found;
    cm_blocks_match(blocks, &inside, 1, &found);
    if (counts_of(blocks).lost == 0) {
        assert_int_equal(found.address, BASE);
    }
    struct cm_block *copies;
    size_t count;
    if (cm_blocks_copy(blocks, &copies, &count) != CM_OK) {
        status = CM_NO_MEMORY;
    }
    cm_free(copies);
    struct cm_site_use *uses;
    if (cm_blocks_changes(blocks, 0, &uses, &count) != CM_OK) {
        status = CM_NO_MEMORY;
    }
    cm_free(uses);
    cm_blocks_free(blocks);
    return status;
}

static const struct cm_site_use *
use_at(const struct cm_site_use *uses, size_t count, uint32_t site)
{
    for (size_t i = 0; i < count; i++) {
        if (uses[i].site.index == site) {
            return &uses[i];
        }
    }
    return NULL;
}

static void
tell_site(struct cm_blocks *blocks, uint64_t address, uint64_t bytes,
          uint32_t site)
{
    struct cm_event event = {.address = address,
                             .bytes = bytes,
                             .site = {site},
                             .kind = CM_EVENT_ALLOCATE};
    cm_blocks_event(blocks, &event);
}

/* A site's sums with what waits, and each change told once. */
static void
adds_up_what_each_site_holds(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct cm_site_use *uses;
    size_t count;
    for (uint64_t i = 0; i < 1000; i++) {
        tell_site(blocks, BASE + i * 512, 512, 7);
        tell_site(blocks, BASE + (1 << 20) + i * 512, 256, 9);
        tell(blocks, CM_EVENT_FREE, BASE + (1 << 20) + i * 512, 256);
    }
    assert_int_equal(cm_blocks_changes(blocks, 0, &uses, &count), CM_OK);
    assert_int_equal(count, 2);
    assert_int_equal(use_at(uses, count, 7)->bytes, 512000);
    assert_int_equal(use_at(uses, count, 7)->count, 1000);
    assert_int_equal(use_at(uses, count, 9)->bytes, 0);
    assert_int_equal(use_at(uses, count, 9)->count, 0);
    cm_free(uses);
    tell(blocks, CM_EVENT_FREE, BASE, 512);
    assert_int_equal(cm_blocks_changes(blocks, 0, &uses, &count), CM_OK);
    assert_int_equal(count, 1);
    assert_int_equal(uses[0].bytes, 511488);
    cm_free(uses);
    assert_int_equal(cm_blocks_changes(blocks, 5, &uses, &count), CM_OK);
    assert_int_equal(count, 0);
    assert_null(uses);
    assert_int_equal(cm_blocks_changes(blocks, -1, &uses, &count), CM_OK);
    cm_blocks_free(blocks);
}

static void
forgets_what_was_live(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct cm_block block;
    cm_blocks_clear(blocks);
    for (uint64_t i = 0; i < 1000; i++) {
        tell(blocks, CM_EVENT_ALLOCATE, BASE + i * 512, 512);
    }
    cm_blocks_clear(blocks);
    assert_int_equal(use_of(blocks, 0).live_bytes, 0);
    assert_int_equal(use_of(blocks, 0).live_count, 0);
    assert_int_equal(use_of(blocks, 0).allocations, 1000);
    assert_false(cm_blocks_at(blocks, BASE, &block));
    tell(blocks, CM_EVENT_FREE, BASE, 512);
    assert_int_equal(counts_of(blocks).unknown, 1);
    tell(blocks, CM_EVENT_ALLOCATE, BASE, 1024);
    assert_true(cm_blocks_at(blocks, BASE, &block));
    assert_int_equal(use_of(blocks, 0).live_bytes, 1024);
    assert_int_equal(counts_of(blocks).lost, 0);
    cm_blocks_free(blocks);
}

static void
counts_what_it_had_no_memory_for(void **state)
{
    (void)state;
    cm_fail_each(everything, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_the_event_said),
        cmocka_unit_test(tells_the_streams_apart),
        cmocka_unit_test(finds_the_block_around_an_address),
        cmocka_unit_test(counts_what_it_did_not_understand),
        cmocka_unit_test(keeps_the_host_apart),
        cmocka_unit_test(counts_no_free_that_may_miss),
        cmocka_unit_test(starts_the_peak_again_at_a_mark),
        cmocka_unit_test(agrees_with_a_plain_array),
        cmocka_unit_test(takes_at_most_64_bytes_for_a_block),
        cmocka_unit_test(stops_at_its_bound),
        cmocka_unit_test(serves_threads_and_readers_at_once),
        cmocka_unit_test(keeps_the_order_of_an_allocator),
        cmocka_unit_test(adds_up_what_each_site_holds),
        cmocka_unit_test(forgets_what_was_live),
        cmocka_unit_test(counts_what_it_had_no_memory_for),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
