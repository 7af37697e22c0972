/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/lingering.h"
#include "fail_each.h"

enum { MIB = 1 << 20 };

static struct cm_verdict_result
verdict_of(const struct cm_series *series, int64_t now)
{
    struct cm_verdict_result result;
    cm_verdict(series, now, &cm_verdict_defaults, &result);
    return result;
}

static void
names_what_is_kept_through_the_next_forward(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 0; i < 20; i++) {
        cm_series_note_forward(&series, i, i > 0 ? 90 * MIB : 0);
        cm_series_add(&series, i, 160, 90 * MIB);
        struct cm_verdict_result result = verdict_of(&series, i);
        assert_int_equal(result.verdict,
                         i >= 3 ? CM_VERDICT_LINGERING : CM_VERDICT_OK);
        if (i >= 3) {
            assert_int_equal(result.since_iteration, 0);
            assert_int_equal(result.lingering_bytes, 90 * MIB);
        }
    }
    assert_int_equal(verdict_of(&series, 30).verdict, CM_VERDICT_OK);
}

/* The count of forwards has an end, since when it is so does not move. */
static void
lingers_since_the_same_iteration_for_long(void **state)
{
    (void)state;
    struct cm_series series = {0};
    struct cm_verdict_rules rules = cm_verdict_defaults;
    struct cm_verdict_result result;
    for (int64_t i = 20; i < 1020; i++) {
        cm_series_note_forward(&series, i, i > 40 ? 90 * MIB : 0);
        cm_series_add(&series, i, 160, 90 * MIB);
    }
    for (int replaced = 0; replaced < 2; replaced++) {
        rules.only_replaced = replaced != 0;
        cm_verdict(&series, 1019, &rules, &result);
        assert_int_equal(result.verdict, CM_VERDICT_LINGERING);
        assert_int_equal(result.since_iteration, 40);
    }
}

/* Parameters are live at each forward too: only what is made anew could have
 * been freed.  For gradients that nobody frees the caller knows better. */
static void
leaves_alone_what_stands_still(void **state)
{
    (void)state;
    struct cm_series series = {0};
    struct cm_verdict_rules rules = cm_verdict_defaults;
    struct cm_verdict_result result;
    cm_series_add(&series, 0, 160, 90 * MIB);
    for (int64_t i = 1; i < 20; i++) {
        cm_series_note_forward(&series, i, 90 * MIB);
    }
    assert_int_equal(verdict_of(&series, 19).verdict, CM_VERDICT_OK);
    rules.only_replaced = false;
    cm_verdict(&series, 19, &rules, &result);
    assert_int_equal(result.verdict, CM_VERDICT_LINGERING);
}

/* Kept now and then, too small, or of no constant size: not lingering. */
static void
needs_three_forwards_alike(void **state)
{
    (void)state;
    struct cm_series gaps = {0}, small = {0}, uneven = {0};
    for (int64_t i = 0; i < 60; i++) {
        cm_series_note_forward(&gaps, i, i % 3 == 2 ? 0 : 90 * MIB);
        cm_series_note_forward(&small, i, 1000);
        cm_series_note_forward(&uneven, i, i % 3 == 2 ? 2 * MIB : 90 * MIB);
        cm_series_add(&gaps, i, 1, 90 * MIB);
        cm_series_add(&small, i, 1, 90 * MIB);
        cm_series_add(&uneven, i, 1, 90 * MIB);
        assert_int_equal(verdict_of(&gaps, i).verdict, CM_VERDICT_OK);
        assert_int_equal(verdict_of(&small, i).verdict, CM_VERDICT_OK);
        assert_int_equal(verdict_of(&uneven, i).verdict, CM_VERDICT_OK);
    }
}

/* Training is over, and what it kept is still kept. */
static void
lingers_on_in_slices_after_training(void **state)
{
    (void)state;
    struct cm_series series = {0};
    struct cm_verdict_rules rules = cm_verdict_defaults;
    struct cm_verdict_result result;
    for (int64_t i = 0; i < 20; i++) {
        cm_series_note_forward(&series, i, 90 * MIB);
        cm_series_add(&series, i, 160, 90 * MIB);
    }
    assert_false(cm_lingers(&series, 300, &rules, &result));
    rules.slices = true;
    assert_false(cm_lingers(&series, 300, &rules, &result));
    rules.sliced = 20;
    assert_true(cm_lingers(&series, 300, &rules, &result));
    assert_int_equal(result.lingering_bytes, 90 * MIB);
    rules.sliced = 30;
    assert_false(cm_lingers(&series, 300, &rules, &result));
    rules.sliced = 20;
    cm_series_add(&series, 290, 0, 0); /* it was freed */
    assert_false(cm_lingers(&series, 300, &rules, &result));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_is_kept_through_the_next_forward),
        cmocka_unit_test(lingers_since_the_same_iteration_for_long),
        cmocka_unit_test(leaves_alone_what_stands_still),
        cmocka_unit_test(needs_three_forwards_alike),
        cmocka_unit_test(lingers_on_in_slices_after_training),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
