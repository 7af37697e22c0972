/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../detector/sought.h"

static void
finds_the_first_from_an_address(void **state)
{
    (void)state;
    struct cm_sought all[] = {{500, 0}, {100, 1}, {300, 2}, {300, 3}};
    cm_sought_sort(all, 4);
    assert_int_equal(all[0].index, 1);
    assert_int_equal(all[3].index, 0);
    assert_int_equal(cm_sought_from(all, 4, 0), 0);
    assert_int_equal(cm_sought_from(all, 4, 100), 0);
    assert_int_equal(cm_sought_from(all, 4, 101), 1);
    assert_int_equal(cm_sought_from(all, 4, 300), 1);
    assert_int_equal(cm_sought_from(all, 4, 301), 3);
    assert_int_equal(cm_sought_from(all, 4, UINT64_MAX), 4);
}

/* In no order; 7919 is prime to each of these counts. */
static void
sorts_few_and_many(void **state)
{
    const size_t counts[] = {1, 2, CM_SOUGHT_FEW, CM_SOUGHT_FEW + 1};
    struct cm_sought all[CM_SOUGHT_FEW + 1];
    (void)state;
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        for (size_t i = 0; i < counts[k]; i++) {
            all[i] = (struct cm_sought){i * 7919 % counts[k], i};
        }
        cm_sought_sort(all, counts[k]);
        for (size_t i = 0; i < counts[k]; i++) {
            assert_int_equal(all[i].address, i);
            assert_int_equal(all[i].index * 7919 % counts[k], i);
        }
    }
}

static void
accepts_none(void **state)
{
    (void)state;
    cm_sought_sort(NULL, 0);
    assert_int_equal(cm_sought_from(NULL, 0, 7), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_first_from_an_address),
        cmocka_unit_test(sorts_few_and_many),
        cmocka_unit_test(accepts_none),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
