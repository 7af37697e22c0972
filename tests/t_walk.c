/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/walk.h"

static void
test_walk_is_by_what_it_costs(void **state)
{
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'cycles':[{'peak_bytes':5},{'peak_bytes':9}],"
                          "'growth':[{'verdict':'ok','bytes':7},"
                          "{'verdict':'ok','bytes':9}]}");
    struct cm_leak_walk walk = {.leak = &leak};
    struct cm_leak_finding finding;
    const bool growth[] = {false, true, true, false};
    const size_t index[] = {0, 0, 1, 1};

    (void)state;
    cm_leak_sort(&leak);
    for (size_t i = 0; i < 4; i++) {
        assert_true(cm_leak_walk_next(&walk, &finding));
        assert_int_equal(finding.growth, growth[i]);
        assert_int_equal(finding.index, index[i]);
    }
    assert_false(cm_leak_walk_next(&walk, &finding));
    cm_leak_release(&leak);
}

/* As many findings as faults: one fault's lines are one. */
static void
test_lines_of_one_fault_are_one_finding(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    struct cm_leak_walk walk = {.leak = &leak};
    struct cm_leak_finding finding;
    size_t count = 0;

    (void)state;
    cm_leak_sort(&leak);
    while (cm_leak_walk_next(&walk, &finding)) {
        assert_int_equal(leak.growth[finding.index].fault_lines,
                         count == 0 ? 3 : 1);
        count++;
    }
    assert_int_equal(count, 5);
    assert_int_equal(walk.growth, leak.growth_count);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_is_by_what_it_costs),
        cmocka_unit_test(test_lines_of_one_fault_are_one_finding),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
