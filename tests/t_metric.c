/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Metrics that add up until reset(), and what only looks like one. */

#include "../graph/metric.h"
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

static bool
outlives_epochs(struct way *way, const struct cm_store *stores, uint32_t count)
{
    struct cm_code_id code = add_code(way, "main", stores, count, false);
    way->holding.codes = &code;
    way->holding.code_count = 1;
    bool result = cm_metric_outlives_epochs(&way->holding);
    way->holding.codes = NULL;
    way->holding.code_count = 0;
    return result;
}

/* By the variable that has the collection, not by the key of one in it. */
static void
test_outlives_epochs(void **state)
{
    struct way way;
    (void)state;
    way_init(&way,
             "F||a.py:3 main;O|local both|MetricCollection;"
             "O|['auroc']|BinaryAUROC;L|.preds|list of 9|9;T|[3]|Tensor [4]",
             3);
    set_module(&way, 1, "torchmetrics.collections");
    set_module(&way, 2, "torchmetrics.classification.auroc");
    struct cm_store set = store(&way, CM_STORE_LOCAL, "both", "", 4);
    struct cm_store other = store(&way, CM_STORE_LOCAL, "auroc", "", 5);
    struct cm_store given = store(&way, CM_STORE_PARAMETER, "both", "", 3);
    struct cm_store update = store(&way, CM_STORE_CALL, "update", "both", 7);
    struct cm_store call = store(&way, CM_STORE_CALL, "main", "", 9);
    update.depth = 2;
    assert_true(outlives_epochs(&way, (struct cm_store[]){set, update}, 2));
    assert_false(outlives_epochs(&way, (struct cm_store[]){set, call}, 2));
    assert_false(outlives_epochs(&way, (struct cm_store[]){other, update}, 2));
    assert_false(outlives_epochs(&way, (struct cm_store[]){given, update}, 2));
    other.repeated = 1;
    assert_true(outlives_epochs(
        &way, (struct cm_store[]){set, other, given, update}, 4));
    /* A single pass; called from a loop. */
    update.depth = 1;
    assert_false(outlives_epochs(&way, (struct cm_store[]){set, update}, 2));
    assert_false(
        outlives_epochs(&way, (struct cm_store[]){set, update, call}, 3));
    call.depth = 1;
    assert_true(
        outlives_epochs(&way, (struct cm_store[]){set, update, call}, 3));
    update.depth = 2;
    set.repeated = 1;
    assert_false(outlives_epochs(&way, (struct cm_store[]){set, update}, 2));
    set.repeated = 0;
    set_module(&way, 1, "mine");
    set_module(&way, 2, "mine");
    assert_false(outlives_epochs(&way, (struct cm_store[]){set, update}, 2));
    cm_records_free(way.records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_metrics),
                                       cmocka_unit_test(test_outlives_epochs)};

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
