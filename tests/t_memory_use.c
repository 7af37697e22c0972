/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "heap_builder.h"

#include "../reports/memory_use.h"
#include "fail_each.h"

/* Two stacks that a tensor each was made at. */
static const char stacks[] =
    "code run train.py:10 Trainer.run; code step train.py:30 Trainer.step\n"
    "site s run:14; site z step:31 run:14\n"
    "t Tensor 4096 site=s; u Tensor 4096 site=z";

static struct cm_site_id
stack_of(const struct built *built, uint32_t node)
{
    assert_int_not_equal(built->heap.nodes[node].site.index, 0);
    return built->heap.nodes[node].site;
}

static void
start(struct cm_leak *leak)
{
    *leak = (struct cm_leak){0};
    assert_int_equal(cm_leak_init(leak), CM_OK);
}

static enum cm_status
set_device(struct cm_leak *leak, uint64_t asked, uint64_t allocated)
{
    const struct cm_framework_use frameworks[] = {{"torch", allocated, 900},
                                                  {"jax", 5, CM_LEAK_UNKNOWN}};
    const struct cm_pool_use pools[] = {
        {"common", 900, allocated, 60, 0, 10, 7, true}};
    struct cm_device_use use;

    cm_device_use_init(&use, "cuda:0");
    use.total = 1000;
    use.allocated = allocated;
    use.peak_allocated = 800 + allocated;
    use.free = UINT64_MAX - 1; /* more than a file can hold */
    use.asked_bytes = asked;
    use.frameworks = frameworks;
    use.framework_count = 2;
    use.pools = pools;
    use.pool_count = 1;
    return cm_memory_set_device(leak, &use);
}

static void
test_a_device_is_replaced(void **state)
{
    struct cm_leak leak;
    const struct cm_leak_device *device;

    (void)state;
    start(&leak);
    assert_int_equal(set_device(&leak, 0, 1), CM_OK);
    assert_int_equal(set_device(&leak, 0, 2), CM_OK);
    assert_int_equal(leak.device_count, 1);
    device = &leak.devices[0];
    assert_int_equal(device->allocated, 2);
    assert_true(device->cached == CM_LEAK_UNKNOWN);
    assert_true(device->free == (uint64_t)1 << 53);
    assert_int_equal(device->framework_count, 2);
    assert_string_equal(cm_leak_text(&leak, device->frameworks[1].name),
                        "jax");
    assert_true(device->frameworks[1].reserved == CM_LEAK_UNKNOWN);
    assert_int_equal(device->pool_count, 1);
    assert_int_equal(device->pools[0].segments, 7);
    assert_true(device->pools[0].expandable);
    assert_false(cm_memory_ran_out(&leak));
    assert_null(cm_leak_check(&leak));
    cm_leak_release(&leak);
}

/* The report is about the moment when memory ran out. */
static void
test_that_moment_stays(void **state)
{
    struct cm_leak leak;

    (void)state;
    start(&leak);
    assert_int_equal(set_device(&leak, 64, 3), CM_OK);
    assert_true(cm_memory_ran_out(&leak));
    assert_int_equal(set_device(&leak, 0, 4), CM_OK);
    assert_int_equal(leak.devices[0].allocated, 3);
    assert_int_equal(leak.devices[0].asked_bytes, 64);
    assert_int_equal(leak.devices[0].peak_allocated, 804);
    assert_int_equal(set_device(&leak, 32, 5), CM_OK);
    assert_int_equal(leak.devices[0].allocated, 5);
    assert_int_equal(leak.devices[0].asked_bytes, 32);
    cm_leak_release(&leak);
}

static void
test_lists_are_bounded(void **state)
{
    struct cm_framework_use frameworks[CM_MEMORY_MAX_FRAMEWORKS + 1];
    struct cm_pool_use pools[CM_MEMORY_MAX_POOLS + 1];
    struct cm_device_use use;
    struct cm_leak leak;

    (void)state;
    start(&leak);
    cm_device_use_init(&use, "cuda:0");
    for (size_t i = 0; i <= CM_MEMORY_MAX_POOLS; i++) {
        pools[i] = (struct cm_pool_use){.name = "p", .segments = i};
    }
    for (size_t i = 0; i <= CM_MEMORY_MAX_FRAMEWORKS; i++) {
        frameworks[i] = (struct cm_framework_use){.name = "\xff"};
    }
    use.frameworks = frameworks;
    use.framework_count = CM_MEMORY_MAX_FRAMEWORKS + 1;
    use.pools = pools;
    use.pool_count = CM_MEMORY_MAX_POOLS + 1;
    assert_int_equal(cm_memory_set_device(&leak, &use), CM_OK);
    assert_int_equal(leak.devices[0].pool_count, CM_MEMORY_MAX_POOLS);
    assert_int_equal(leak.devices[0].framework_count,
                     CM_MEMORY_MAX_FRAMEWORKS);
    assert_string_equal(
        cm_leak_text(&leak, leak.devices[0].frameworks[0].name),
        "\xEF\xBF\xBD"); /* valid UTF-8 */
    cm_leak_release(&leak);
}

static enum cm_status
set_held(struct cm_leak *leak, const struct built *built)
{
    const struct cm_held items[] = {
        {.device = "cuda:0", .framework = "torch", .bytes = 5, .count = 1},
        {.device = "cuda:0",
         .framework = "torch",
         .site = stack_of(built, 1),
         .awaited = true,
         .bytes = 900,
         .count = 3},
        {.device = "cuda:0",
         .framework = "driver",
         .library = "libnccl.so.2",
         .site = stack_of(built, 2),
         .bytes = 70,
         .count = 2},
    };

    return cm_memory_set_held(leak, built->records, items, 3);
}

static void
test_held_is_sorted_and_has_its_stacks(void **state)
{
    struct built *built = built_new(stacks);
    struct cm_leak leak;

    (void)state;
    start(&leak);
    assert_int_equal(set_held(&leak, built), CM_OK);
    assert_int_equal(set_held(&leak, built), CM_OK);
    assert_int_equal(leak.held_count, 3);
    assert_int_equal(leak.site_count, 2); /* each stack once */
    assert_int_equal(leak.held[0].bytes, 900);
    assert_true(leak.held[0].awaited);
    assert_int_equal(cm_leak_site_at(&leak, leak.held[0].site)->frames[0].line,
                     14);
    assert_string_equal(cm_leak_text(&leak, leak.held[1].library),
                        "libnccl.so.2");
    assert_int_equal(leak.held[2].site, 0);
    assert_null(cm_leak_check(&leak));
    assert_int_equal(cm_memory_set_held(&leak, built->records, NULL, 0),
                     CM_OK);
    assert_int_equal(leak.held_count, 0);
    cm_leak_release(&leak);
    built_free(built);
}

static void
test_the_largest_are_kept(void **state)
{
    struct cm_held items[CM_MEMORY_MAX_HELD + 50];
    struct built *built = built_new(stacks);
    size_t count = sizeof(items) / sizeof(items[0]);
    struct cm_leak leak;

    (void)state;
    start(&leak);
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct cm_held){.device = "cuda:0", .bytes = i};
    }
    assert_int_equal(cm_memory_set_held(&leak, built->records, items, count),
                     CM_OK);
    assert_int_equal(leak.held_count, CM_MEMORY_MAX_HELD);
    assert_int_equal(leak.held[0].bytes, count - 1);
    assert_int_equal(leak.held[CM_MEMORY_MAX_HELD - 1].bytes, 50);
    cm_leak_release(&leak);
    built_free(built);
}

/* However many: few rows, in order, the highest peak among them. */
static void
test_iterations_are_thinned(void **state)
{
    static struct cm_memory_rows rows;
    struct cm_leak leak;
    int64_t last = -1, highest = 0;

    (void)state;
    start(&leak);
    rows = (struct cm_memory_rows){0};
    for (int64_t i = 0; i < 50000; i++) {
        assert_int_equal(
            cm_memory_add_iteration(&leak, &rows, "cuda:0", i, i, i + 1,
                                    i == 31337 ? 1 << 20 : i % 100),
            CM_OK);
    }
    assert_true(leak.devices[0].iteration_count <= CM_MEMORY_MAX_ITERATIONS);
    assert_true(leak.devices[0].iteration_count
                >= CM_MEMORY_MAX_ITERATIONS / 2);
    for (size_t i = 0; i < leak.devices[0].iteration_count; i++) {
        const int64_t *row = leak.devices[0].iterations + 4 * i;

        assert_true(row[0] > last);
        assert_int_equal(row[2], row[0] + 1);
        last = row[0];
        highest = row[3] > highest ? row[3] : highest;
    }
    assert_int_equal(highest, 1 << 20);
    cm_leak_release(&leak);
}

static void
test_devices_have_rows_of_their_own(void **state)
{
    static struct cm_memory_rows rows;
    struct cm_leak leak;

    (void)state;
    start(&leak);
    rows = (struct cm_memory_rows){0};
    for (int64_t i = 0; i < 30; i++) {
        assert_int_equal(cm_memory_add_iteration(
                             &leak, &rows, i % 3 == 0 ? "cuda:1" : "cuda:0", i,
                             -7, INT64_MAX, 4),
                         CM_OK);
    }
    assert_int_equal(leak.devices[0].iteration_count, 10);
    assert_int_equal(leak.devices[1].iteration_count, 20);
    assert_int_equal(leak.devices[1].iterations[4], 2);
    assert_int_equal(leak.devices[1].iterations[5], -1);
    assert_true(leak.devices[1].iterations[6] == (int64_t)1 << 53);
    cm_leak_release(&leak);
}

/* A copy knows the stacks: the ledger does not add them again. */
static void
test_copy(void **state)
{
    struct built *built = built_new(stacks);
    static struct cm_memory_rows rows;
    struct cm_leak leak, copy;

    (void)state;
    start(&leak);
    start(&copy);
    rows = (struct cm_memory_rows){0};
    assert_int_equal(set_device(&leak, 64, 3), CM_OK);
    assert_int_equal(set_held(&leak, built), CM_OK);
    assert_int_equal(
        cm_memory_add_iteration(&leak, &rows, "cuda:0", 1, 2, 3, 4), CM_OK);
    leak.devices[0].dead_peak = 77;
    assert_int_equal(cm_memory_copy(&leak, &copy), CM_OK);
    cm_leak_release(&leak); /* nothing refers to it */
    assert_null(cm_leak_check(&copy));
    assert_int_equal(copy.devices[0].dead_peak, 0);
    assert_int_equal(copy.devices[0].asked_bytes, 64);
    assert_int_equal(copy.devices[0].iterations[3], 4);
    assert_string_equal(cm_leak_text(&copy, copy.devices[0].pools[0].name),
                        "common");
    assert_int_equal(copy.held_count, 3);
    assert_int_equal(copy.site_count, 2);
    assert_int_equal(set_held(&copy, built), CM_OK);
    assert_int_equal(copy.site_count, 2);
    cm_leak_release(&copy);
    built_free(built);
}

static enum cm_status
fill(struct cm_leak *leak, const struct built *built)
{
    static struct cm_memory_rows rows;
    enum cm_status status = set_device(leak, 64, 3);

    rows = (struct cm_memory_rows){0};
    if (status == CM_OK) {
        status = set_held(leak, built);
    }
    for (int64_t i = 0; status == CM_OK && i < 40; i++) {
        status = cm_memory_add_iteration(leak, &rows, "cuda:0", i, i, i, i);
    }
    return status;
}

static enum cm_status
whole_life(void *context)
{
    struct cm_leak leak = {0}, copy = {0};
    enum cm_status status = cm_leak_init(&leak);

    if (status == CM_OK) {
        status = cm_leak_init(&copy);
    }
    if (status == CM_OK) {
        status = fill(&leak, context);
        assert_null(cm_leak_check(&leak));
    }
    if (status == CM_OK) {
        status = cm_memory_copy(&leak, &copy);
        assert_null(cm_leak_check(&copy));
    }
    cm_leak_release(&leak);
    cm_leak_release(&copy);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct built *built = built_new(stacks);

    (void)state;
    cm_fail_each(whole_life, built);
    built_free(built);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_device_is_replaced),
        cmocka_unit_test(test_that_moment_stays),
        cmocka_unit_test(test_lists_are_bounded),
        cmocka_unit_test(test_held_is_sorted_and_has_its_stacks),
        cmocka_unit_test(test_the_largest_are_kept),
        cmocka_unit_test(test_iterations_are_thinned),
        cmocka_unit_test(test_devices_have_rows_of_their_own),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
