/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "way_builder.h"

static void
test_weights_by_epoch(void **state)
{
    static const char steps[] =
        "F||a.py:3 main;D|local best|dict of 9|9;"
        "D|['epoch 3']|dict of 2|2;T|['0.weight']|Tensor [4]";
    static const char module[] =
        "F||a.py:3 main;D|local best|dict of 9|9;O|[3]|Linear;"
        "D|._parameters|dict of 2|2;T|['weight']|Tensor [4]";
    struct way way;

    (void)state;
    way_init(&way, steps, 1);
    assert_advice(&way, "checkpoint kept", "`del best`");
    way.holding.grows = true;
    assert_advice(&way, "weights pile up", "the last or the best of best");
    cm_records_free(way.records);
    way_init(&way, module, 1);
    way.holding.grows = true;
    assert_advice(&way, "container grows", "clear best");
    cm_records_free(way.records);
}

/* The rule for a dict of such dicts, at `state` of each the key of a tensor. */
static void
expect_of_state(const char *state, const char *key, const char *rule)
{
    char steps[256];
    struct way way;

    snprintf(steps, sizeof steps,
             "F||a.py:3 main;D|local kept|dict of 9|9;D|[3]|dict of 2|2;"
             "D|['opt']|dict of 2|2;D|%s|dict of 4|4;D|[2]|dict of 3|3;"
             "T|%s|Tensor [4]",
             state, key);
    way_init(&way, steps, 1);
    way.holding.grows = true;
    way.holding.through = 72;
    assert_advice(&way, rule, "kept");
    cm_records_free(way.records);
}

/* Of a checkpoint the weights and what the optimizer has are one fault. */
static void
test_state_of_optimizers_by_epoch(void **state)
{
    (void)state;
    expect_of_state("['state']", "['exp_avg_sq']", "weights pile up");
    expect_of_state("['state']", "['momentum_buffer']", "weights pile up");
    expect_of_state("['state']", "['position']", "containers grow");
    expect_of_state("['agents']", "['exp_avg_sq']", "containers grow");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_by_epoch),
        cmocka_unit_test(test_state_of_optimizers_by_epoch),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
