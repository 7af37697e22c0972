/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../detector/alike.h"

static const struct cm_sought weights[] = {{100, 0}, {200, 0}};

static uint64_t
bytes_alike(const uint64_t sizes[], size_t count)
{
    struct cm_block blocks[8] = {{0}};
    for (size_t i = 0; i < count; i++) {
        blocks[i].address = 100 * (i + 1);
        blocks[i].bytes = sizes[i];
    }
    return cm_alike_bytes(blocks, count, weights, 2);
}

static void
sees_a_copy_by_its_sizes(void **state)
{
    (void)state;
    uint64_t copy[] = {4096, 512, 4096, 512};
    uint64_t wider[] = {4096, 512, 8192, 1024};
    uint64_t narrower[] = {4096, 512, 1024, 128};
    assert_int_equal(bytes_alike(copy, 4), 4096 + 512);
    assert_int_equal(bytes_alike(wider, 4), 8192 + 1024);
    assert_int_equal(bytes_alike(narrower, 4), 1024 + 128);
}

static void
takes_nothing_else_for_one(void **state)
{
    (void)state;
    uint64_t weights_alone[] = {4096, 512};
    uint64_t workspace[] = {4096, 512, 32768};
    uint64_t others[] = {4096, 512, 3072, 32768 + 512};
    assert_int_equal(bytes_alike(weights_alone, 2), 0);
    assert_int_equal(bytes_alike(workspace, 3), 0);
    assert_int_equal(bytes_alike(others, 4), 0);
    assert_int_equal(cm_alike_bytes(NULL, 0, NULL, 0), 0);
}

/* Frozen weights that no optimizer knows, and their copy. */
static void
sees_a_copy_of_what_is_not_known(void **state)
{
    (void)state;
    uint64_t sizes[] = {4096, 512, 70000, 70000};
    assert_int_equal(bytes_alike(sizes, 4), 140000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_a_copy_by_its_sizes),
        cmocka_unit_test(takes_nothing_else_for_one),
        cmocka_unit_test(sees_a_copy_of_what_is_not_known),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
