/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Views that are kept, by what a person reads of them. */

#include "way_builder.h"

#include "../detector/alloc.h"
#include "../graph/view.h"

static const struct row {
    const char *tensor;
    bool view;
} rows[] = {
    {"Tensor [256] float32 cpu 400 KiB", true},
    {"Tensor [256] float32 cuda:0 1.0 MiB", true},
    {"Tensor [2, 128] bfloat16 cuda:0 4.0 KiB", true},
    {"Tensor [400, 256] float32 cpu 400 KiB", false},
    {"Tensor [256] float32 cpu 2.0 KiB", false}, /* rounded up, or a half */
    {"Tensor [64] bool cpu 256 B", true},
    {"Tensor [64] bool cpu 255 B", false},
    {"Tensor [8] float8_e4m3fn cpu 1.0 KiB", true},
    {"Tensor [3] complex128 cpu 1.0 GiB", true},
    {"Tensor [] float32 cpu 400 KiB", false}, /* kept scalars */
    {"Tensor [0] float32 cpu 400 KiB", false},
    {"Tensor [256] float32 cpu", false},
    {"Tensor [256] float32 cpu (size not known)", false},
    {"Tensor [256, float32 cpu 400 KiB", false},
    {"Tensor [256 float32 cpu 400 KiB", false},
    {"Tensor [256", false},
    {"Tensor [,] float32 cpu 400 KiB", false},
    {"Tensor [281474976710656, 281474976710656] float32 cpu 400 KiB", false},
    {"Tensor [256] odd cpu 400 KiB", false},
    {"Tensor [256] float32 cpu 400 XiB", false},
    {"Tensor [256] float32 cpu 99999999 TiB", false},
    {"[", false},
    {"", false},
};

static void
test_what_is_a_view(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct way way;
        char steps[200];
        snprintf(steps, sizeof steps,
                 "F||a.py:3 main;L|local rows|list of 9|9;T|[3]|%s",
                 rows[i].tensor);
        way_init(&way, steps, 1);
        way.holding.grows = true;
        way.holding.through = 5;
        assert_int_equal(cm_view_is_kept(&way.holding), rows[i].view);
        way.holding.through = 4; /* several rows of each output */
        assert_false(cm_view_is_kept(&way.holding));
        way.holding.through = 5;
        way.holding.autograd_depth = 3;
        assert_false(cm_view_is_kept(&way.holding));
        cm_records_free(way.records);
    }
}

static void
test_what_is_said(void **state)
{
    struct way way;
    (void)state;
    way_init(&way,
             "F||a.py:3 main;L|local rows|list of 9|9;"
             "T|[3]|Tensor [256] float32 cpu 400 KiB",
             1);
    way.holding.grows = true;
    way.holding.through = 9;
    assert_advice(
        &way, "views kept",
        "put copies in rows (`x.clone()`): each is a view, and keeps "
        "all of its memory, 400 KiB");
    cm_records_free(way.records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_a_view),
        cmocka_unit_test(test_what_is_said),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
