/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_can_be_released),
        cmocka_unit_test(test_check_finds_each_wrong_id),
        cmocka_unit_test(test_sort_is_by_peak_then_fingerprint),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
