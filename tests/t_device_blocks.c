/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What an allocator tells in its own order: the line that events wait in. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../detector/blocks.h"
#include "../detector/clock.h"
#include "../detector/device_blocks.h"
#include "fail_each.h"

#define BASE UINT64_C(0x7f0000000000)
#define DAY_NS (UINT64_C(86400) * 1000000000)
#define SEGMENT (UINT64_C(2) << 20)

enum { MANY = 100000, PLACES = 40, EVENTS = 20000 };
/* Under the address sanitizer a fork takes 20 ms, a hundred times as long. */
#ifdef __SANITIZE_ADDRESS__
enum { FORKS = 400 };
#else
enum { FORKS = 2000 };
#endif

static struct cm_event
event_of(enum cm_event_kind kind, size_t place, uint64_t allocated)
{
    return (struct cm_event){.kind = (uint8_t)kind,
                             .address = BASE + place * 512,
                             .bytes = 512,
                             .site = {(uint32_t)place + 1},
                             .allocated = allocated,
                             .reserved = SEGMENT,
                             .in_order = true};
}

static void
tell(struct cm_blocks *blocks, struct cm_event event)
{
    cm_blocks_event(blocks, &event);
}

/* What is asked without a lock is no older than the newest event. */
static void
tells_totals_without_a_lock(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    uint64_t bytes = 0;
    assert_int_equal(cm_blocks_told(blocks), 0);
    assert_int_equal(cm_blocks_total(blocks, 0), 0);
    for (size_t i = 1; i <= 4 * CM_LINE_EVENTS; i++) {
        bool frees = i % 4 == 0;
        bytes = frees ? bytes - 512 : bytes + 512;
        tell(blocks, event_of(frees ? CM_EVENT_FREE : CM_EVENT_ALLOCATE,
                              i - frees, bytes));
        assert_int_equal(cm_blocks_total(blocks, 0), bytes);
    }
    assert_int_equal(cm_blocks_told(blocks), 3 * CM_LINE_EVENTS * 512);
    assert_int_equal(cm_blocks_total(blocks, 1), 0);
    assert_int_equal(cm_blocks_total(blocks, CM_MAX_DEVICES), 0);
    cm_blocks_free(blocks);
}

/* A program that allocates and frees at random, and what is live of it. */
struct model {
    bool live[PLACES];
    uint64_t live_count, allocations, peak;
};

static struct cm_event
turn(struct model *model, size_t place)
{
    bool live = model->live[place] = !model->live[place];
    model->live_count += live ? 1 : (uint64_t)-1;
    model->allocations += live;
    if (model->live_count > model->peak) {
        model->peak = model->live_count;
    }
    return event_of(live ? CM_EVENT_ALLOCATE : CM_EVENT_FREE, place,
                    model->live_count * 512);
}

static void
compare(struct cm_blocks *blocks, const struct model *model, int device)
{
    struct cm_block_use use;
    cm_blocks_use(blocks, device, &use);
    assert_int_equal(use.live_bytes, model->live_count * 512);
    assert_int_equal(use.live_count, model->live_count);
    assert_int_equal(use.allocations, model->allocations);
    if (device != CM_DEVICE_HOST) {
        assert_int_equal(use.allocated, model->live_count * 512);
        assert_int_equal(use.reserved, SEGMENT);
        assert_int_equal(use.peak_bytes, model->peak * 512);
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        struct cm_block block;
        struct cm_site_id site = {i + 1};
        assert_int_equal(cm_blocks_site(blocks, device, site).count,
                         model->live[i]);
        assert_int_equal(cm_blocks_at(blocks, BASE + i * 512, &block),
                         model->live[i]);
    }
}

/* Blocks that come and go within the line leave what they would have left one
 * by one. */
static void
come_and_go(int device)
{
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct cm_blocks_counts counts;
    struct model model = {.live_count = 0};
    unsigned seed = 1;
    for (size_t i = 0; i < EVENTS; i++) { /* ever more places, by turns */
        size_t place = (size_t)rand_r(&seed) % (1 + (i >> 5) % PLACES);
        struct cm_event event = turn(&model, place);
        event.device = (int16_t)device;
        if (device == CM_DEVICE_HOST) { /* as that is told */
            event.allocated = event.reserved = 0;
            event.in_order = false;
        }
        tell(blocks, event);
        if (rand_r(&seed) % 100 == 0) {
            compare(blocks, &model, device);
        }
    }
    cm_blocks_counts(blocks, &counts);
    assert_int_equal(counts.events, device == CM_DEVICE_HOST ? 0 : EVENTS);
    assert_int_equal(counts.lost, 0);
    assert_int_equal(counts.unknown, 0);
    cm_blocks_free(blocks);
}

static void
counts_what_comes_and_goes_within_the_line(void **state)
{
    (void)state;
    come_and_go(0);
    come_and_go(CM_DEVICE_HOST);
}

/* `freed`: bit n, event n is a free of the one block, else an allocation;
 * `asked`: bit n, after event n. */
static void
tell_in_turn(unsigned count, unsigned freed, unsigned asked,
             struct cm_block_use *use, struct cm_blocks_counts *counts)
{
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    for (unsigned i = 0; i < count; i++) {
        tell(blocks,
             (struct cm_event){.kind = freed >> i & 1 ? CM_EVENT_FREE
                                                      : CM_EVENT_ALLOCATE,
                               .address = BASE,
                               .bytes = 512 * (i + 1),
                               .device = CM_DEVICE_HOST});
        if (asked >> i & 1) {
            cm_blocks_use(blocks, CM_DEVICE_HOST, use);
        }
    }
    cm_blocks_use(blocks, CM_DEVICE_HOST, use);
    cm_blocks_counts(blocks, counts);
    cm_blocks_free(blocks);
}

static void
says_the_same_whenever_it_is_asked(void **state)
{
    (void)state;
    for (unsigned asked = 0; asked < 8; asked++) {
        struct cm_block_use use;
        struct cm_blocks_counts counts;
        tell_in_turn(3, 4, asked, &use, &counts); /* one is not told */
        assert_int_equal(use.live_count, 0);
        assert_int_equal(use.live_bytes, 0);
        assert_int_equal(use.allocations, 2);
        assert_int_equal(counts.lost, 1);
        assert_int_equal(counts.unknown, 0);
    }
}

static void
says_the_same_whatever_was_not_told(void **state)
{
    (void)state;
    const unsigned events = 8;
    for (unsigned freed = 0; freed < 1u << events; freed++) {
        struct cm_block_use use, expected;
        struct cm_blocks_counts counts, expected_counts;
        tell_in_turn(events, freed, (1u << events) - 1, &expected,
                     &expected_counts);
        for (unsigned at = 0; at < events; at++) {
            tell_in_turn(events, freed, 1u << at, &use, &counts);
            assert_int_equal(use.live_count, expected.live_count);
            assert_int_equal(use.live_bytes, expected.live_bytes);
            assert_int_equal(use.allocations, expected.allocations);
            assert_int_equal(counts.lost, expected_counts.lost);
            assert_int_equal(counts.unknown, expected_counts.unknown);
        }
    }
}

/* The one has a time of its own, the others are no blocks of a line. */
static void
takes_at_once_what_a_line_does_not(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct cm_blocks_counts counts;
    struct cm_block_use use;
    struct cm_block block;
    struct cm_event event = event_of(CM_EVENT_ALLOCATE, 0, 512);
    event.time_ns = 7000000;
    tell(blocks, event);
    assert_true(cm_blocks_at(blocks, event.address, &block));
    assert_int_equal(block.time_ns, 7000000);
    event = event_of(CM_EVENT_ALLOCATE, 1, 512);
    event.bytes = UINT64_MAX;
    tell(blocks, event);
    assert_false(cm_blocks_at(blocks, event.address, &block));
    event = event_of(CM_EVENT_SEGMENT, 2, 512);
    event.reserved = 2 * SEGMENT;
    tell(blocks, event);
    cm_blocks_use(blocks, 0, &use);
    assert_int_equal(use.reserved, 2 * SEGMENT);
    assert_int_equal(use.live_count, 1);
    cm_blocks_counts(blocks, &counts);
    assert_int_equal(counts.lost, 1);
    cm_blocks_free(blocks);
}

static uint64_t
time_of(struct cm_blocks *blocks, size_t place)
{
    struct cm_block block, *copies, around = {.bytes = 0};
    uint64_t inside = BASE + place * 512 + 1;
    size_t count;
    assert_true(cm_blocks_at(blocks, BASE + place * 512, &block));
    cm_blocks_match(blocks, &inside, 1, &around);
    assert_int_equal(around.time_ns, block.time_ns);
    assert_int_equal(cm_blocks_copy(blocks, &copies, &count), CM_OK);
    for (size_t i = 0; i < count; i++) {
        assert_true(copies[i].address != block.address
                    || copies[i].time_ns == block.time_ns);
    }
    cm_free(copies);
    return block.time_ns;
}

/* A clock that runs since the machine does: 32 bits of milliseconds are full
 * after 49.7 days. */
static void
tells_the_time_of_a_machine_that_runs_for_long(void **state)
{
    (void)state;
    const uint64_t days[] = {1, 49, 50, 75, 99};
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    for (size_t i = 0; i < 5; i++) {
        struct cm_event event = event_of(CM_EVENT_ALLOCATE, i, 512);
        event.time_ns = days[i] * DAY_NS + 7000000;
        tell(blocks, event);
        assert_int_equal(time_of(blocks, i), event.time_ns);
        for (size_t k = 0; k < i; k++) {
            if (days[i] - days[k] < 49) {
                assert_int_equal(time_of(blocks, k),
                                 days[k] * DAY_NS + 7000000);
            }
        }
    }
    /* The order of two does not turn with the one that came later. */
    struct cm_event late = event_of(CM_EVENT_ALLOCATE, 7, 512);
    late.time_ns = 98 * DAY_NS;
    tell(blocks, late);
    assert_int_equal(time_of(blocks, 7), 98 * DAY_NS);
    cm_blocks_free(blocks);
}

static void
tells_when_it_took_in_what_has_no_time(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    uint64_t before = cm_clock_ns(CLOCK_MONOTONIC_COARSE);
    tell(blocks, event_of(CM_EVENT_ALLOCATE, 0, 512));
    assert_in_range(time_of(blocks, 0), before - 1000000,
                    cm_clock_ns(CLOCK_MONOTONIC_COARSE));
    cm_blocks_free(blocks);
}

static void
goes_on_where_the_line_is_full(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct cm_block block;
    for (size_t i = 0; i < 10 * CM_LINE_EVENTS; i++) {
        tell(blocks, event_of(CM_EVENT_ALLOCATE, i, (i + 1) * 512));
    }
    for (size_t i = 0; i < 10 * CM_LINE_EVENTS; i++) {
        assert_true(cm_blocks_at(blocks, BASE + i * 512, &block));
        assert_int_equal(block.site.index, i + 1);
        assert_int_equal(block.bytes, 512);
    }
    cm_blocks_free(blocks);
}

static enum cm_status
tell_one(void *context)
{
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct cm_blocks_counts counts = {.lost = 0};
    (void)context;
    if (blocks == NULL) {
        return CM_NO_MEMORY;
    }
    tell(blocks, event_of(CM_EVENT_ALLOCATE, 0, 512));
    cm_blocks_counts(blocks, &counts);
    cm_blocks_free(blocks);
    return counts.lost != 0 || counts.lost_sites != 0 ? CM_NO_MEMORY : CM_OK;
}

static void
counts_what_it_has_no_memory_for(void **state)
{
    (void)state;
    cm_fail_each(tell_one, NULL);
}

/* The first event of each device, over and over. */
static void *
meet_devices(void *context)
{
    const atomic_bool *stop = context;
    while (!atomic_load(stop)) {
        struct cm_blocks *blocks = cm_blocks_new(1000);
        for (int device = 0; device < CM_MAX_DEVICES; device++) {
            struct cm_event event = event_of(CM_EVENT_ALLOCATE, 0, 512);
            event.device = (int16_t)device;
            tell(blocks, event);
        }
        cm_blocks_free(blocks);
    }
    return NULL;
}

/* A fork waits for the locks and for their list, the maker of a device for
 * its lock's place in the list.  That they wait for each other is seen as the
 * alarm that ends the program. */
static void
meets_devices_while_the_program_forks(void **state)
{
    (void)state;
    atomic_bool stop = false;
    pthread_t thread;
    alarm(120);
    assert_int_equal(pthread_create(&thread, NULL, meet_devices, &stop), 0);
    for (int at = 0; at < FORKS; at++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    alarm(0);
}

struct meeting {
    struct cm_blocks *blocks;
    pthread_barrier_t *barrier;
    const struct cm_device_blocks *devices[CM_MAX_DEVICES];
    uint64_t base;
};

static void *
meet_together(void *context)
{
    struct meeting *meeting = context;
    for (int device = 0; device < CM_MAX_DEVICES; device++) {
        struct cm_event event = {.kind = CM_EVENT_ALLOCATE,
                                 .address = meeting->base,
                                 .bytes = 512,
                                 .device = (int16_t)device};
        pthread_barrier_wait(meeting->barrier);
        tell(meeting->blocks, event);
        meeting->devices[device] = cm_blocks_device(meeting->blocks, device);
    }
    return NULL;
}

/* Two threads may make one and the same: both are told the one that stays. */
static void
makes_a_device_once(void **state)
{
    (void)state;
    long live = cm_alloc_live();
    struct cm_blocks *blocks = cm_blocks_new(MANY);
    struct meeting meetings[2];
    pthread_barrier_t barrier;
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    for (size_t i = 0; i < 2; i++) {
        meetings[i] = (struct meeting){
            .blocks = blocks, .barrier = &barrier, .base = BASE + i * 512};
        assert_int_equal(
            pthread_create(&threads[i], NULL, meet_together, &meetings[i]), 0);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    for (int device = 0; device < CM_MAX_DEVICES; device++) {
        struct cm_block_use use;
        cm_blocks_use(blocks, device, &use);
        assert_int_equal(use.live_count, 2);
        assert_ptr_equal(meetings[0].devices[device],
                         meetings[1].devices[device]);
    }
    assert_int_equal(cm_blocks_devices(blocks), CM_MAX_DEVICES);
    cm_blocks_free(blocks);
    assert_int_equal(cm_alloc_live(), live);
    pthread_barrier_destroy(&barrier);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_totals_without_a_lock),
        cmocka_unit_test(counts_what_comes_and_goes_within_the_line),
        cmocka_unit_test(says_the_same_whenever_it_is_asked),
        cmocka_unit_test(says_the_same_whatever_was_not_told),
        cmocka_unit_test(takes_at_once_what_a_line_does_not),
        cmocka_unit_test(tells_the_time_of_a_machine_that_runs_for_long),
        cmocka_unit_test(tells_when_it_took_in_what_has_no_time),
        cmocka_unit_test(goes_on_where_the_line_is_full),
        cmocka_unit_test(counts_what_it_has_no_memory_for),
        cmocka_unit_test(meets_devices_while_the_program_forks),
        cmocka_unit_test(makes_a_device_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
