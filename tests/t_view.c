/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Views that are kept. */

#include "way_builder.h"

#include "../detector/alloc.h"
#include "../graph/view.h"

static const struct row {
    uint64_t shown, memory;
    bool view;
} rows[] = {
    {1024, 400 << 10, true},
    {1024, 4096, true},
    {1024, 4095, false}, /* rounded up, or a part of it */
    {1024, 1024, false},
    {4096, 1024, false}, /* expanded */
    {64, UINT64_MAX / 5, true},
    {0, 400 << 10, false}, /* kept scalars, or not known */
    {1024, 0, false},
    {0, 0, false},
};

/* Some of nine tensors that a list holds. */
static void
kept_rows(struct way *way, uint64_t shown, uint64_t memory)
{
    way_init(way,
             "F||a.py:3 main;L|local rows|list of 9|9;"
             "T|[3]|Tensor [256] float32 cpu 400 KiB",
             1);
    way->holding.grows = true;
    way->steps[2].shown_bytes = shown;
    way->steps[2].memory_bytes = memory;
}

static void
test_what_is_a_view(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct way way;
        kept_rows(&way, rows[i].shown, rows[i].memory);
        way.holding.through = way.holding.targets = 5;
        way.holding.bytes_behind = 5 * rows[i].memory;
        assert_int_equal(cm_view_is_kept(&way.holding), rows[i].view);
        way.holding.through = 4; /* of half of what is there */
        assert_false(cm_view_is_kept(&way.holding));
        way.holding.through = 5;
        way.holding.bytes_behind = rows[i].shown * 5; /* all rows */
        assert_false(cm_view_is_kept(&way.holding));
        way.holding.bytes_behind = 0; /* not known */
        assert_false(cm_view_is_kept(&way.holding));
        way.holding.bytes_behind = rows[i].memory;
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
    kept_rows(&way, 1024, 400 << 10);
    way.holding.through = way.holding.targets = 9;
    way.holding.bytes_behind = 9 * (400 << 10);
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
