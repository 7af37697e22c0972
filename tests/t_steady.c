/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/steady.h"
#include "fail_each.h"

static void
tell(struct cm_blocks *blocks, int device, uint64_t allocated)
{
    cm_blocks_event(blocks, &(struct cm_event){.kind = CM_EVENT_ALLOCATE,
                                               .address = 512 + allocated,
                                               .bytes = 512,
                                               .allocated = allocated,
                                               .reserved = allocated,
                                               .device = (int16_t)device,
                                               .in_order = true});
}

/* The first device holds 4 KiB. */
static struct cm_blocks *
one_device(void)
{
    struct cm_blocks *blocks = cm_blocks_new(100);
    tell(blocks, 0, 4096);
    return blocks;
}

/* Iterations from *number on at whose ends nothing has changed. */
static int
count_passed(struct cm_steady *steady, struct cm_blocks *blocks, int ends,
             int64_t *number)
{
    int passed = 0;
    for (int i = 0; i < ends; i++) {
        passed += cm_steady_ends(steady, blocks, (*number)++);
    }
    return passed;
}

static void
passes_over_all_but_each_eighth(void **state)
{
    (void)state;
    struct cm_blocks *blocks = one_device();
    struct cm_steady steady = {.same = 0};
    int64_t number = 1;
    assert_int_equal(count_passed(&steady, blocks, CM_STEADY_AFTER, &number),
                     0);
    assert_int_equal(count_passed(&steady, blocks, 104, &number), 91);
    cm_blocks_free(blocks);
}

/* At the end one in 64, and never more than an eighth of what went before. */
static void
passes_over_more_the_longer_it_lasts(void **state)
{
    (void)state;
    struct cm_blocks *blocks = one_device();
    struct cm_steady steady = {.same = 0};
    int64_t last = 1;
    for (int64_t number = 1; number < 5000; number++) {
        if (!cm_steady_ends(&steady, blocks, number)) {
            assert_true(number - last <= 8 || (number - last) * 8 <= number);
            last = number;
        }
    }
    assert_int_equal(count_passed(&steady, blocks, 6400, &last), 6300);
    cm_blocks_free(blocks);
}

static void
looks_as_soon_as_a_total_changes(void **state)
{
    (void)state;
    struct cm_blocks *blocks = one_device();
    struct cm_steady steady = {.same = 0};
    int64_t number = 1;
    tell(blocks, 2, 4096);
    count_passed(&steady, blocks, 20, &number);
    assert_int_not_equal(count_passed(&steady, blocks, 2, &number), 0);
    tell(blocks, 2, 8192);
    assert_int_equal(count_passed(&steady, blocks, CM_STEADY_AFTER, &number),
                     0);
    assert_int_equal(count_passed(&steady, blocks, 8, &number), 7);
    cm_blocks_free(blocks);
}

/* 512 bytes in each hundredth iteration are seen where they come. */
static void
sees_each_step_of_what_grows_slowly(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(1000);
    struct cm_steady steady = {.same = 0};
    for (int64_t number = 1; number < 5000; number++) {
        if (number % 100 == 1) {
            tell(blocks, 0, (uint64_t)number * 512);
            assert_false(cm_steady_ends(&steady, blocks, number));
        }
        else {
            (void)cm_steady_ends(&steady, blocks, number);
        }
    }
    cm_blocks_free(blocks);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_over_all_but_each_eighth),
        cmocka_unit_test(passes_over_more_the_longer_it_lasts),
        cmocka_unit_test(looks_as_soon_as_a_total_changes),
        cmocka_unit_test(sees_each_step_of_what_grows_slowly),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
