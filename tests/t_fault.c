/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/fault.h"
#include "../detector/number.h"
#include "fail_each.h"

/* The largest sum first, in it the largest line; what differs is apart. */
static void
test_what_one_container_holds_is_one_fault(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    const uint32_t sites[] = {3, 5, 1, 2, 4, 6, 7};
    const uint32_t lines[] = {3, 0, 0, 1, 1, 1, 1};

    (void)state;
    cm_faults_sort(&leak);
    for (size_t i = 0; i < leak.growth_count; i++) {
        assert_int_equal(leak.growth[i].site, sites[i]);
        assert_int_equal(leak.growth[i].fault_lines, lines[i]);
    }
    cm_leak_release(&leak);
}

static void
test_sums(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    struct cm_leak_growth sum;

    (void)state;
    assert_int_equal(cm_fault_lines(&leak.growth[0]), 1); /* not sorted */
    assert_int_equal(cm_fault_sum(&leak.growth[0]).bytes, 1000000);
    cm_faults_sort(&leak);
    sum = cm_fault_sum(&leak.growth[0]);
    assert_int_equal(sum.bytes, 6500000);
    assert_int_equal(sum.peak_bytes, 6500000);
    assert_int_equal(sum.count, 30);
    assert_true(sum.bytes_per_iteration == 650000);
    assert_true(sum.count_per_iteration == 3);
    assert_int_equal(sum.since_iteration, 1);
    assert_true(sum.confidence == 0.95);
    assert_int_equal(sum.site, 3);
    sum = cm_fault_sum(&leak.growth[3]);
    assert_int_equal(sum.bytes, 6000000);
    cm_leak_release(&leak);
}

static enum cm_status
attempt(void *context)
{
    int64_t(*series)[CM_LEAK_SERIES_NUMBERS] = NULL;
    enum cm_status status = cm_fault_series(context, &series);

    cm_free(series);
    return status;
}

/* At the points of the first line; another begins later or earlier. */
static void
test_series(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    int64_t(*series)[CM_LEAK_SERIES_NUMBERS];

    (void)state;
    cm_faults_sort(&leak); /* from 3, 5 and 1 on */
    assert_int_equal(cm_fault_series(&leak.growth[0], &series), CM_OK);
    assert_int_equal(series[0][0], 3);
    assert_int_equal(series[0][1], 2);
    assert_int_equal(series[0][2], 400000);
    assert_int_equal(series[1][0], 12);
    assert_int_equal(series[1][1], 30);
    assert_int_equal(series[1][2], 6500000);
    cm_free(series);
    leak.growth[1].series[1][2] = leak.growth[2].series[1][2] = INT64_MAX;
    assert_int_equal(cm_fault_series(&leak.growth[0], &series), CM_OK);
    assert_true(series[1][2] == INT64_MAX);
    cm_free(series);
    cm_fail_each(attempt, &leak.growth[0]);
    cm_leak_release(&leak);
}

/* A file may say any size that it can hold. */
static void
test_sums_are_capped(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);

    (void)state;
    for (size_t i = 0; i < leak.growth_count; i++) {
        leak.growth[i].bytes = leak.growth[i].peak_bytes = CM_MOST_NUMBER - 1;
    }
    cm_faults_sort(&leak);
    assert_int_equal(leak.growth[0].fault_lines, 3);
    assert_true(cm_fault_sum(&leak.growth[0]).bytes == CM_MOST_NUMBER);
    assert_true(cm_fault_sum(&leak.growth[0]).peak_bytes == CM_MOST_NUMBER);
    cm_leak_release(&leak);
}

static void
test_a_fault_goes_by_the_fingerprint_of_any_line(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    uint64_t last, other;

    (void)state;
    cm_faults_sort(&leak);
    last = leak.growth[2].fingerprint;
    other = leak.growth[3].fingerprint;
    assert_true(cm_fault_is_among(&leak.growth[0], &last, 1));
    assert_false(cm_fault_is_among(&leak.growth[0], &other, 1));
    assert_false(cm_fault_is_among(&leak.growth[0], &last, 0));
    cm_leak_release(&leak);
}

/* Who holds it is not known, or nobody hears of it: each line for itself. */
static void
test_without_a_place_each_line_is_alone(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);

    (void)state;
    for (size_t i = 0; i < leak.growth_count; i++) {
        leak.growth[i].holder_at = 0;
    }
    cm_faults_sort(&leak);
    for (size_t i = 0; i < leak.growth_count; i++) {
        assert_int_equal(leak.growth[i].fault_lines, 1);
    }
    cm_leak_release(&leak);
    leak = leak_of(LEAK_FAULTS);
    for (size_t i = 0; i < leak.growth_count; i++) {
        leak.growth[i].holder_at = 1;
        leak.growth[i].verdict = cm_texts_intern(leak.texts, "settled");
    }
    cm_faults_sort(&leak);
    for (size_t i = 0; i < leak.growth_count; i++) {
        assert_int_equal(leak.growth[i].fault_lines, 1);
    }
    cm_leak_release(&leak);
}

static struct cm_leak_growth *
of_site(struct cm_leak *leak, uint32_t site)
{
    size_t i = 0;

    while (leak->growth[i].site != site) {
        i++;
    }
    return &leak->growth[i];
}

/* As many as `wanted` lines stand for the one of this site and others. */
static void
check_lines(struct cm_leak *leak, uint32_t site, uint32_t wanted)
{
    uint64_t fault;
    uint32_t lines = 0;

    cm_faults_sort(leak);
    fault = of_site(leak, site)->fault;
    for (size_t i = 0; i < leak->growth_count; i++) {
        lines += leak->growth[i].fault == fault ? 1 : 0;
    }
    assert_int_equal(lines, wanted);
}

/* exp_avg and exp_avg_sq of one step(), in a dead cycle: 1 and 7. */
static void
test_without_a_place_equal_fingerprints_are_one_fault(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    struct cm_leak_growth *other = of_site(&leak, 1);

    (void)state;
    other->rule = of_site(&leak, 7)->rule;
    other->fingerprint = of_site(&leak, 7)->fingerprint;
    check_lines(&leak, 7, 2);
    of_site(&leak, 1)->advice = cm_texts_intern(leak.texts, "another");
    check_lines(&leak, 7, 1);
    cm_leak_release(&leak);
}

/* By whatever attributes: 1 and 7, whose advice is equal. */
static void
test_what_one_ctx_keeps_is_one_fault(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);

    (void)state;
    of_site(&leak, 1)->rule = cm_texts_intern(leak.texts, "saved on ctx");
    of_site(&leak, 1)->holder_at = 0;
    of_site(&leak, 7)->rule = of_site(&leak, 1)->rule;
    of_site(&leak, 7)->holder_at = 0;
    of_site(&leak, 7)->advice = of_site(&leak, 1)->advice;
    check_lines(&leak, 7, 2);
    of_site(&leak, 7)->advice = cm_texts_intern(leak.texts, "another class");
    check_lines(&leak, 7, 1);
    cm_leak_release(&leak);
}

/* Two of its lines, and one of another cycle's, in whatever order. */
static void
test_what_one_dead_cycle_holds_is_one_fault(void **state)
{
    struct cm_leak leak = leak_of(
        LEAK_HEAD
        "'sites':[{'id':1,'frames':[]},{'id':2,'frames':[]},"
        "{'id':3,'frames':[]}],"
        "'storages':[{'id':1,'bytes':80,'site':1},{'id':2,'bytes':80,'site':2}"
        ",{'id':3,'bytes':80,'site':3}],"
        "'cycles':[{'fingerprint':'3f9a2c0000000001','payload':[1,2]},"
        "{'fingerprint':'4f9a2c0000000001','payload':[3]}],"
        "'growth':["
        "{'verdict':'leak','site':1,'bytes':9,'rule':'dead cycle'},"
        "{'verdict':'leak','site':3,'bytes':8,'rule':'dead cycle'},"
        "{'verdict':'leak','site':2,'bytes':7,'rule':'dead cycle'}]}");

    (void)state;
    check_lines(&leak, 1, 2);
    check_lines(&leak, 3, 1);
    assert_int_equal(of_site(&leak, 2)->fault, of_site(&leak, 1)->fault);
    cm_leak_release(&leak);
}

/* layers[0].rows and layers[2].rows: 1, 3 and 5, and 2 by the same line. */
static void
test_like_containers_that_one_line_fills_are_one_fault(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);

    (void)state;
    of_site(&leak, 5)->holder_at = 2; /* one item of it */
    check_lines(&leak, 3, 3);
    of_site(&leak, 5)->holder_at = 1;
    of_site(&leak, 2)->holder[1].edge = cm_texts_intern(leak.texts, "['2']");
    check_lines(&leak, 3, 3);
    for (uint32_t site = 1; site <= 5; site += 2) {
        of_site(&leak, site)->holder[1].edge =
            cm_texts_intern(leak.texts, "['0']");
    }
    check_lines(&leak, 3, 4);
    of_site(&leak, 2)->made_at_count = 0;
    of_site(&leak, 3)->made_at_count = 0;
    check_lines(&leak, 3, 1);
    cm_leak_release(&leak);
}

/* By whatever frame of the traceback. */
static void
test_what_one_kept_exception_holds_is_one_fault(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);

    (void)state;
    check_lines(&leak, 2, 1);
    for (size_t i = 0; i < leak.growth_count; i++) {
        leak.growth[i].rule = cm_texts_intern(leak.texts, "kept exception");
    }
    check_lines(&leak, 2, 5);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_one_container_holds_is_one_fault),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_sums_are_capped),
        cmocka_unit_test(test_a_fault_goes_by_the_fingerprint_of_any_line),
        cmocka_unit_test(test_without_a_place_each_line_is_alone),
        cmocka_unit_test(
            test_without_a_place_equal_fingerprints_are_one_fault),
        cmocka_unit_test(test_what_one_ctx_keeps_is_one_fault),
        cmocka_unit_test(test_what_one_dead_cycle_holds_is_one_fault),
        cmocka_unit_test(
            test_like_containers_that_one_line_fills_are_one_fault),
        cmocka_unit_test(test_what_one_kept_exception_holds_is_one_fault),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
