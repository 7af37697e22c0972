/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <string.h>

#include "../detector/arena.h"
#include "fail_each.h"

static void
copies_and_ends_with_nul(void **state)
{
    (void)state;
    struct cm_arena arena = {0};
    assert_string_equal(cm_arena_copy(&arena, "abcX", 3), "abc");
    assert_string_equal(cm_arena_copy(&arena, NULL, 0), "");
    assert_null(cm_arena_copy(&arena, "", SIZE_MAX));
    cm_arena_release(&arena);
    assert_int_equal(arena.bytes, 0);
}

static void
keeps_copies_of_all_sizes_apart(void **state)
{
    (void)state;
    enum { COUNT = 600 };
    static char bytes[COUNT * 40];
    static char *copies[COUNT];
    struct cm_arena arena = {0};
    for (size_t at = 0; at < COUNT; at++) {
        memset(bytes, (int)(at % 251), at * 40);
        copies[at] = cm_arena_copy(&arena, bytes, at * 40);
        assert_non_null(copies[at]);
        assert_int_equal((uintptr_t)copies[at] % 8, 0);
    }
    for (size_t at = 0; at < COUNT; at++) {
        memset(bytes, (int)(at % 251), at * 40);
        assert_memory_equal(copies[at], bytes, at * 40);
        assert_int_equal(copies[at][at * 40], 0);
    }
    size_t asked = (size_t)40 * COUNT * (COUNT - 1) / 2;
    assert_true(arena.bytes >= asked && arena.bytes < asked * 5 / 4);
    cm_arena_release(&arena);
}

static enum cm_status
fill(void *context)
{
    (void)context;
    static const char bytes[9000];
    struct cm_arena arena = {0};
    enum cm_status status = CM_OK;
    for (size_t at = 0; at < 10 && status == CM_OK; at++) {
        if (cm_arena_copy(&arena, bytes, at * 1000) == NULL) {
            status = CM_NO_MEMORY;
        }
    }
    cm_arena_release(&arena);
    return status;
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    cm_fail_each(fill, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_ends_with_nul),
        cmocka_unit_test(keeps_copies_of_all_sizes_apart),
        cmocka_unit_test(survives_each_failed_allocation),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
