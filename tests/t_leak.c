/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../detector/alloc.h"

static void
test_zeroed_can_be_released(void **state)
{
    struct cm_leak leak = {0};

    (void)state;
    cm_leak_release(&leak);
    cm_leak_release(NULL);
    assert_null(cm_leak_check(&leak));
}

static void
test_check_finds_each_wrong_id(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);
    uint32_t *const ids[] = {
        &leak.vertices[5].site,      &leak.vertices[5].storage,
        &leak.edges[0].tail,         &leak.edges[0].head,
        &leak.storages[0].site,      &leak.storages[0].vertices[0],
        &leak.cycles[0].vertices[1], &leak.cycles[0].payload[0],
        &leak.cycles[0].cut[0],
    };

    (void)state;
    assert_null(cm_leak_check(&leak));
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        uint32_t kept = *ids[i];

        *ids[i] = 99;
        assert_non_null(cm_leak_check(&leak));
        *ids[i] = kept;
        assert_null(cm_leak_check(&leak));
    }
    leak.sites[0].user_frame = 2;
    assert_non_null(cm_leak_check(&leak));
    cm_leak_release(&leak);
}

static void
test_check_finds_wrong_growth(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_leak_growth *growth = &leak.growth[0];
    struct cm_leak_timeline_device *device = &leak.timeline.devices[0];

    (void)state;
    assert_null(cm_leak_check(&leak));
    growth->site = 3;
    assert_string_equal(cm_leak_check(&leak),
                        "growth names a site that does not exist");
    growth->site = 1;
    growth->series[1][0] = 413;
    assert_string_equal(cm_leak_check(&leak), "the iterations of growth fall");
    growth->series[1][0] = 3;
    growth->verdict = growth->category;
    assert_non_null(cm_leak_check(&leak));
    growth->verdict = leak.growth[1].verdict;
    leak.growth[2].name_count = 1;
    assert_string_equal(cm_leak_check(&leak),
                        "growth counts what it does not have");
    leak.growth[2].name_count = 0;
    device->seconds[2] = 0.125;
    assert_string_equal(cm_leak_check(&leak),
                        "the iterations of the timeline fall");
    device->seconds[2] = 1;
    device->category_count = CM_LEAK_MAX_CATEGORIES + 1;
    assert_non_null(cm_leak_check(&leak));
    device->category_count = 2;
    assert_null(cm_leak_check(&leak));
    cm_leak_release(&leak);
}

static void
test_sort_is_by_peak_then_fingerprint(void **state)
{
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'cycles':[{'fingerprint':'3','peak_bytes':5},"
                          "{'fingerprint':'2','peak_bytes':9},"
                          "{'fingerprint':'1','peak_bytes':5}]}");

    (void)state;
    cm_leak_sort(&leak);
    assert_int_equal(leak.cycles[0].fingerprint, 2);
    assert_int_equal(leak.cycles[1].fingerprint, 1);
    assert_int_equal(leak.cycles[2].fingerprint, 3);
    cm_leak_release(&leak);
}

static void
test_check_of_memory(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);

    (void)state;
    assert_null(cm_leak_check(&leak));
    leak.held[1].site = 2;
    assert_non_null(cm_leak_check(&leak));
    leak.held[1].site = 0;
    cm_free(leak.devices[0].pools);
    leak.devices[0].pools = NULL;
    assert_non_null(cm_leak_check(&leak));
    leak.devices[0].pool_count = 0;
    assert_null(cm_leak_check(&leak));
    cm_leak_release(&leak);
}

static void
test_what_is_held_is_sorted_by_bytes(void **state)
{
    struct cm_leak leak = leak_of(LEAK_HEAD "'held':[{'bytes':1},{'bytes':3},"
                                            "{'bytes':2}]}");

    (void)state;
    cm_leak_sort(&leak);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(leak.held[i].bytes, 3 - i);
    }
    cm_leak_release(&leak);
}

/* The memory's own stack, unless only the object's has a line of the user's. */
static void
test_which_stack_allocated(void **state)
{
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'sites':[{'user_frame':0,'frames':[{}]},"
                          "{'user_frame':null,'frames':[{}]}],"
                          "'vertices':[{'site':1},{}],"
                          "'storages':[{'site':1},{'site':2},{}]}");

    (void)state;
    assert_int_equal(cm_leak_alloc_site(&leak, 1, 2), 1);
    assert_int_equal(cm_leak_alloc_site(&leak, 2, 1), 1);
    assert_int_equal(cm_leak_alloc_site(&leak, 2, 2), 2);
    assert_int_equal(cm_leak_alloc_site(&leak, 2, 0), 2);
    assert_int_equal(cm_leak_alloc_site(&leak, 3, 1), 1);
    assert_int_equal(cm_leak_alloc_site(&leak, 0, 0), 0);
    cm_leak_release(&leak);
}

/* Slices of time first; then the program's first optimizer steps. */
static void
test_iterations_that_begin_anew(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);

    (void)state;
    leak.cycles[0].first_iteration = 4;
    leak.cycles[0].last_iteration = 7;
    cm_leak_set_iteration(&leak, 7);
    cm_leak_set_iteration(&leak, 8);
    assert_int_equal(leak.cycles[0].first_iteration, 4);
    cm_leak_set_iteration(&leak, 1);
    assert_int_equal(leak.cycles[0].first_iteration, -1);
    assert_int_equal(leak.cycles[0].last_iteration, -1);
    assert_int_equal(leak.iteration, 1);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_can_be_released),
        cmocka_unit_test(test_check_finds_wrong_growth),
        cmocka_unit_test(test_check_finds_each_wrong_id),
        cmocka_unit_test(test_sort_is_by_peak_then_fingerprint),
        cmocka_unit_test(test_check_of_memory),
        cmocka_unit_test(test_what_is_held_is_sorted_by_bytes),
        cmocka_unit_test(test_which_stack_allocated),
        cmocka_unit_test(test_iterations_that_begin_anew),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
