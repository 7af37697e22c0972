/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/growth.h"
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
    cm_growth_add_slope(&leak, 1024, since, &out);
    cm_buffer_add_char(&out, ' ');
    cm_growth_add_since(&leak, since, &out);
    cm_growth_add_at(&leak, since + 1, &out);
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
    expect_unit("step", DEVICE("[[1,1,9],[2,2,9]]"),
                "+1.0 KiB per iteration since iteration 3 at iteration 4");
    expect_unit("time", "",
                "+1.0 KiB per time slice since time slice 3 at time slice 4");
    expect_unit("time", DEVICE("[]"),
                "+1.0 KiB per time slice since time slice 3 at time slice 4");
    expect_unit("time", DEVICE("[[1,1,9]]"),
                "+1.0 KiB per time slice since time slice 3 at time slice 4");
    expect_unit("time", DEVICE("[[1,0.5,9],[3,0.7,9],[4,2.3,9]]"),
                "+640 B per second since time slice 3 (at 1 s) at 2 s");
    expect_unit("time", DEVICE("[[1,0,9],[9,9,9],[11,213,9]]"),
                "+10 B per second since time slice 3 (at 9 s) at 9 s");
    expect_unit("time", DEVICE("[]") "," DEVICE("[[7,1,9],[8,1.5,9]]"),
                "+2.0 KiB per second since time slice 3 (at 1 s) at 1 s");
    expect_unit("time", DEVICE("[[2,1,9],[2,3,9]]"),
                "+1.0 KiB per time slice since time slice 3 at time slice 4");
    expect_unit("time", DEVICE("[[1,3,9],[2,3,9]]"),
                "+1.0 KiB per time slice since time slice 3 at time slice 4");
    expect_unit("time", DEVICE("[[0,0,9],[1,1e15,9]]"),
                "+1.0 KiB per time slice since time slice 3 at time slice 4");
}

#define TRAINED "optimizer','slices_since':21,'x':'"

/* Each by its number; no slice lasts as long as the pause before the first. */
static void
test_units_after_training(void **state)
{
    (void)state;
    expect_since(TRAINED, 19, "",
                 "+1.0 KiB per iteration since iteration 19 at iteration 20");
    expect_since(TRAINED, 20, "",
                 "+1.0 KiB per iteration since iteration 20 at time slice 21");
    expect_since(TRAINED, 25, DEVICE("[[20,1,9],[26,61,9]]"),
                 "+1.0 KiB per time slice since time slice 25 (at 61 s) "
                 "at 61 s");
    expect_since(TRAINED, 25, DEVICE("[[20,1,9],[25,61,9],[26,62.6,9]]"),
                 "+640 B per second since time slice 25 (at 61 s) at 63 s");
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
