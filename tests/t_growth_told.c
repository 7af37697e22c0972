/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/growth_told.h"
#include "fail_each.h"

/* Faults once, then when they have doubled; nothing of the others. */
static void
test_new_and_doubled_faults_are_told(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_growth_told told = {0};
    struct cm_ledger_news news = {0};

    (void)state;
    assert_true(cm_growth_has_fault(&leak));
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 2);
    assert_true(news.fingerprints[0] == leak.growth[0].fingerprint);
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 2);
    leak.growth[1].bytes *= 2;
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 3);
    assert_true(news.fingerprints[2] == leak.growth[1].fingerprint);
    leak.growth[0].verdict = leak.growth[1].verdict = leak.growth[4].verdict;
    assert_false(cm_growth_has_fault(&leak));
    cm_growth_told_release(&told);
    cm_ledger_news_release(&news);
    cm_leak_release(&leak);
}

/* Once for all of its lines, whichever of them comes first or joins later. */
static void
test_a_fault_of_several_lines_is_told_once(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    struct cm_growth_told told = {0};
    struct cm_ledger_news news = {0};

    (void)state;
    cm_leak_sort(&leak);
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 5);
    assert_true(news.fingerprints[0] == leak.growth[0].fingerprint);
    leak.growth[2].peak_bytes *= 10; /* another line has most, */
    cm_leak_sort(&leak);
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    leak.growth[1].holder_at = 0; /* and one is alone */
    cm_leak_sort(&leak);
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 5);
    leak.growth[0].bytes += 10000000;
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 6);
    cm_growth_told_release(&told);
    cm_ledger_news_release(&news);
    cm_leak_release(&leak);
}

static enum cm_status
attempt(void *context)
{
    struct cm_growth_told told = {0};
    struct cm_ledger_news news = {0};
    enum cm_status status = cm_growth_announce(&told, context, &news);

    cm_growth_told_release(&told);
    cm_ledger_news_release(&news);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);

    (void)state;
    cm_fail_each(attempt, &leak);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_and_doubled_faults_are_told),
        cmocka_unit_test(test_a_fault_of_several_lines_is_told_once),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
