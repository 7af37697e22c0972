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
        cmocka_unit_test(accepts_none),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
