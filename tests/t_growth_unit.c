/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/growth_unit.h"

#define DEVICE(points)                                                        \
    "{'name':'cpu','categories':['other'],'points':" points "}"

static void
expect_since(const char *by, int64_t since, const char *devices,
             const char *expected)
{
    char json[600];
    struct cm_buffer out = {0};
    struct cm_leak leak;

    snprintf(json, sizeof(json),
             LEAK_HEAD "'timeline':{'by':'%s','devices':[%s]}}", by, devices);
    leak = leak_of(json);
    cm_growth_add_per_unit(&leak, since, &out);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
expect_unit(const char *by, const char *devices, const char *expected)
{
    expect_since(by, 3, devices, expected);
}

static void
test_units(void **state)
{
    (void)state;
    expect_unit("step", DEVICE("[[1,1,9],[2,2,9]]"), " per iteration");
    expect_unit("time", "", " per time slice");
    expect_unit("time", DEVICE("[]"), " per time slice");
    expect_unit("time", DEVICE("[[1,1,9]]"), " per time slice");
    expect_unit("time", DEVICE("[[1,0.5,9],[2,2.1,9]]"),
                " per time slice of 1.6 s");
    expect_unit("time", DEVICE("[[1,0,9],[9,9,9],[11,215.4,9]]"),
                " per time slice of 103 s");
    expect_unit("time", DEVICE("[]") "," DEVICE("[[7,1,9],[8,1.2,9]]"),
                " per time slice of 0.2 s");
    expect_unit("time", DEVICE("[[7,1,9],[7,3,9]]"), " per time slice");
    expect_unit("time", DEVICE("[[7,3,9],[8,3,9]]"), " per time slice");
    expect_unit("time", DEVICE("[[0,0,9],[1,1e15,9]]"), " per time slice");
}

#define TRAINED "optimizer','slices_since':21,'x':'"

/* Each by its number; no slice lasts as long as the pause before the first. */
static void
test_units_after_training(void **state)
{
    (void)state;
    expect_since(TRAINED, 20, "", " per iteration");
    expect_since(TRAINED, 21, "", " per time slice");
    expect_since(TRAINED, 25, DEVICE("[[20,1,9],[21,61,9]]"),
                 " per time slice");
    expect_since(TRAINED, 25, DEVICE("[[20,1,9],[21,61,9],[22,62.6,9]]"),
                 " per time slice of 1.6 s");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_units_after_training),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
