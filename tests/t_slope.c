/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../detector/slope.h"

static uint64_t
number(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005)
              + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static void
is_that_of_a_line(void **state)
{
    (void)state;
    double x[CM_SLOPE_POINTS] = {0}, y[CM_SLOPE_POINTS] = {0};
    for (size_t count = 0; count <= CM_SLOPE_POINTS; count++) {
        for (size_t i = 0; i < count; i++) {
            x[i] = (double)(i * i + i);
            y[i] = 7 - 4 * x[i];
        }
        assert_true(cm_slope(x, y, count) == (count < 2 ? 0 : -4));
    }
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* By sorting, what the product selects. */
static double
slow_slope(const double *x, const double *y, size_t count)
{
    static double slopes[CM_SLOPE_POINTS * CM_SLOPE_POINTS];
    size_t pairs = 0, apart = count / 3 > 0 ? count / 3 : 1;
    for (size_t j = 0; j < count; j++) {
        for (size_t i = 0; i + apart <= j; i++) {
            slopes[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
        }
    }
    qsort(slopes, pairs, sizeof(*slopes), ascending);
    return slopes[pairs / 2];
}

/* With many equal slopes, and with none. */
static void
is_the_median_of_the_pairs(void **state)
{
    (void)state;
    double x[CM_SLOPE_POINTS] = {0}, y[CM_SLOPE_POINTS] = {0};
    uint64_t random = 3;
    for (int round = 0; round < 2000; round++) {
        size_t count = 2 + number(&random) % (CM_SLOPE_POINTS - 1);
        uint64_t values = round % 2 ? 2 + number(&random) % 5 : 1u << 30;
        for (size_t i = 0; i < count; i++) {
            x[i] = (double)(i > 0 ? x[i - 1] + 1 : 0)
                   + (double)(number(&random) % 3);
            y[i] = (double)(number(&random) % values);
        }
        assert_true(cm_slope(x, y, count) == slow_slope(x, y, count));
    }
}

static void
is_not_moved_by_outliers(void **state)
{
    (void)state;
    double x[60], y[60];
    for (size_t i = 0; i < 60; i++) {
        x[i] = (double)i;
        y[i] = i % 5 == 2 ? 1e12 : 3 * x[i];
    }
    assert_true(cm_slope(x, y, 60) == 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_that_of_a_line),
        cmocka_unit_test(is_the_median_of_the_pairs),
        cmocka_unit_test(is_not_moved_by_outliers),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
