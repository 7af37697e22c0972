/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "../detector/alloc.h"
#include "../reports/worker.h"

struct seen {
    atomic_int heaps;
    atomic_long order_sum;
    atomic_bool hold; /* the task waits while this is set */
};

static void
look(void *context, struct cm_heap *heap)
{
    struct seen *seen = context;
    while (atomic_load(&seen->hold)) {
        usleep(1000);
    }
    int position = atomic_fetch_add(&seen->heaps, 1);
    atomic_fetch_add(&seen->order_sum,
                     heap->iteration == position ? 1 : 1000000);
}

static struct cm_heap
heap_number(int64_t number)
{
    struct cm_heap heap = {0};
    struct cm_node node = {0};
    struct cm_node_id id;
    assert_int_equal(cm_heap_add_node(&heap, &node, &id), CM_OK);
    heap.iteration = number;
    return heap;
}

static void
test_takes_heaps_in_order(void **state)
{
    struct seen seen = {0};
    long live = cm_alloc_live();
    (void)state;
    struct cm_worker *worker = cm_worker_new(look, &seen);
    for (int i = 0; i < 20; i++) {
        struct cm_heap heap = heap_number(i);
        assert_true(cm_worker_add(worker, &heap));
        assert_int_equal(heap.node_count, 0);
    }
    assert_true(cm_worker_flush(worker, -1));
    assert_int_equal(atomic_load(&seen.heaps), 20);
    assert_int_equal(atomic_load(&seen.order_sum), 20);
    assert_int_equal(cm_worker_dropped(worker), 0);
    cm_worker_free(worker);
    assert_int_equal(cm_alloc_live(), live);
}

static void
test_a_full_queue_drops_and_counts(void **state)
{
    struct seen seen = {.hold = true};
    long live = cm_alloc_live();
    int taken = 0;
    (void)state;
    struct cm_worker *worker = cm_worker_new(look, &seen);
    for (int i = 0; i < 100; i++) {
        struct cm_heap heap = heap_number(i);
        taken += cm_worker_add(worker, &heap);
    }
    assert_true(taken < 100);
    assert_int_equal(cm_worker_dropped(worker), 100 - taken);
    assert_false(cm_worker_flush(worker, 0.02));
    atomic_store(&seen.hold, false);
    assert_true(cm_worker_flush(worker, 30));
    assert_int_equal(atomic_load(&seen.heaps), taken);
    cm_worker_free(worker);
    assert_int_equal(cm_alloc_live(), live);
}

static void
test_end_waits_for_what_is_queued(void **state)
{
    struct seen seen = {0};
    (void)state;
    struct cm_worker *worker = cm_worker_new(look, &seen);
    for (int i = 0; i < 10; i++) {
        struct cm_heap heap = heap_number(i);
        assert_true(cm_worker_add(worker, &heap));
    }
    cm_worker_free(worker);
    assert_int_equal(atomic_load(&seen.heaps), 10);
    cm_worker_free(NULL);
}

/* Of what is done with, the room is had again, and what it held is not. */
static void
test_what_is_done_with_is_a_spare(void **state)
{
    struct seen seen = {0};
    long live = cm_alloc_live();
    (void)state;
    struct cm_worker *worker = cm_worker_new(look, &seen);
    struct cm_heap heap = cm_worker_spare(worker);
    assert_int_equal(cm_heap_footprint(&heap), 0);
    heap = heap_number(0);
    size_t bytes = cm_heap_footprint(&heap);
    assert_true(cm_worker_add(worker, &heap));
    assert_true(cm_worker_flush(worker, -1));
    heap = cm_worker_spare(worker);
    assert_int_equal(cm_heap_footprint(&heap), bytes);
    assert_int_equal(heap.node_count, 0);
    assert_int_equal(heap.iteration, 0);
    struct cm_heap other = cm_worker_spare(worker);
    assert_int_equal(cm_heap_footprint(&other), 0);
    cm_heap_release(&heap);
    cm_worker_free(worker);
    assert_int_equal(cm_alloc_live(), live);
}

/* Many, and large ones, are not kept. */
static void
test_spares_are_bounded(void **state)
{
    enum { HEAPS = 24, LARGE = 20000 };
    struct seen seen = {0};
    (void)state;
    struct cm_worker *worker = cm_worker_new(look, &seen);
    atomic_store(&seen.hold, true);
    for (int i = 0; i < HEAPS; i++) {
        struct cm_heap heap = heap_number(i);
        struct cm_node node = {0};
        struct cm_node_id id;
        for (int k = 0; i == 0 && k < LARGE; k++) {
            assert_int_equal(cm_heap_add_node(&heap, &node, &id), CM_OK);
        }
        assert_true(cm_worker_add(worker, &heap));
    }
    atomic_store(&seen.hold, false);
    assert_true(cm_worker_flush(worker, -1));
    int spares = 0;
    for (int i = 0; i < HEAPS; i++) {
        struct cm_heap heap = cm_worker_spare(worker);
        spares += cm_heap_footprint(&heap) != 0;
        assert_true(cm_heap_footprint(&heap) <= (size_t)1024 * 1024);
        cm_heap_release(&heap);
    }
    assert_int_equal(spares, 8);
    cm_worker_free(worker);
}

static void
test_without_memory_there_is_no_worker(void **state)
{
    (void)state;
    cm_alloc_fail_at(0, false);
    struct cm_worker *worker = cm_worker_new(look, NULL);
    cm_alloc_fail_at(-1, false);
    assert_null(worker);
}

static void
test_a_worker_nobody_used_has_no_thread(void **state)
{
    (void)state;
    struct cm_worker *worker = cm_worker_new(look, NULL);
    assert_true(cm_worker_flush(worker, 0));
    cm_worker_free(worker);
}

/* With pauses around the time for which the worker looks again by itself. */
static void *
add_some(void *context)
{
    struct cm_worker *worker = context;
    for (int i = 0; i < 60; i++) {
        struct cm_heap heap = heap_number(i);
        (void)cm_worker_add(worker, &heap);
        if (i % 10 == 0) {
            usleep((unsigned)i * 700);
        }
    }
    return NULL;
}

static void
test_takes_from_several_threads(void **state)
{
    enum { THREADS = 3 };
    struct seen seen = {0};
    pthread_t threads[THREADS];
    long live = cm_alloc_live();
    (void)state;
    struct cm_worker *worker = cm_worker_new(look, &seen);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_some, worker),
                         0);
    }
    for (int i = 0; i < 20; i++) {
        (void)cm_worker_flush(worker, 0.005);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(cm_worker_flush(worker, 30));
    assert_int_equal((uint64_t)atomic_load(&seen.heaps)
                         + cm_worker_dropped(worker),
                     THREADS * 60);
    cm_worker_free(worker);
    assert_int_equal(cm_alloc_live(), live);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes_heaps_in_order),
        cmocka_unit_test(test_a_full_queue_drops_and_counts),
        cmocka_unit_test(test_end_waits_for_what_is_queued),
        cmocka_unit_test(test_what_is_done_with_is_a_spare),
        cmocka_unit_test(test_spares_are_bounded),
        cmocka_unit_test(test_without_memory_there_is_no_worker),
        cmocka_unit_test(test_a_worker_nobody_used_has_no_thread),
        cmocka_unit_test(test_takes_from_several_threads),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
