/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Metrics that add up until reset(), and what only looks like one. */

#include "way_builder.h"

static void
test_metrics(void **state)
{
    struct way way;
    (void)state;
    way_init(&way,
             "F||a.py:3 main;O|local auroc|BinaryAUROC;L|.preds|list of 9|9;"
             "T|[3]|Tensor [4]",
             2);
    set_module(&way, 1, "torchmetrics.classification.auroc");
    assert_true(cm_bound_is_emptied(&way.holding));
    assert_advice(&way, "metric not reset", "call auroc.reset() at the end");
    set_module(&way, 1, "torchmetrics2.auroc");
    assert_false(cm_bound_is_emptied(&way.holding));
    assert_advice(&way, "container grows", "clear preds");
    way.holding.uncalled = add_code(&way, "AUROC.reset", NULL, 0, false);
    assert_advice(&way, "not called", "call AUROC.reset() where an epoch");
    cm_records_free(way.records);
    /* Metrics that pile up themselves. */
    way_init(&way,
             "F||a.py:3 main;L|local all|list of 9|9;O|[1]|BinaryAUROC;"
             "L|.preds|list of 2|2;T|[1]|Tensor [4]",
             1);
    set_module(&way, 2, "torchmetrics.classification.auroc");
    assert_false(cm_bound_is_emptied(&way.holding));
    cm_records_free(way.records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_metrics)};

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
