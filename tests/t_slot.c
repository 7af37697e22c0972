/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../allocator_hooks/slot.h"

static void
knows_what_is_loaded(void **state)
{
    (void)state;
    char path[CM_SLOT_PATH];
    assert_true(cm_slot_library("libcmocka.so.0", path));
    assert_non_null(strstr(path, "/libcmocka.so.0"));
    assert_false(cm_slot_library("libcmocka.so", path));
    assert_false(cm_slot_library("cmocka.so.0", path));
    assert_false(cm_slot_library("", path));
}

static void
finds_nothing_where_nothing_is(void **state)
{
    (void)state;
    struct cm_slots slots;
    cm_slot_find("libcmocka.so.0", "no_such_function", &slots);
    assert_int_equal(slots.count, 0);
    cm_slot_find("libnone.so", "malloc", &slots);
    assert_int_equal(slots.count, 0);
    assert_true(cm_slot_set(&slots, NULL));
    assert_null(cm_slot_original("/no/such/library.so", "malloc"));
    char path[CM_SLOT_PATH];
    assert_true(cm_slot_library("libcmocka.so.0", path));
    assert_null(cm_slot_original(path, "no_such_function"));
    assert_non_null(cm_slot_original(path, "_cmocka_run_group_tests"));
}

static void
counts_what_is_loaded(void **state)
{
    (void)state;
    unsigned long long before = cm_slot_loads();
    assert_true(before != 0 && cm_slot_loads() == before);
    void *library = dlopen(STAND_INS "/lazy/libc10.so", RTLD_LAZY);
    assert_non_null(library);
    assert_true(cm_slot_loads() > before);
    before = cm_slot_loads();
    dlclose(library);
    assert_true(cm_slot_loads() == before);
}

static void
loads_nothing(void **state)
{
    (void)state;
    char path[CM_SLOT_PATH];
    assert_null(
        cm_slot_original(STAND_INS "/lazy/libc10_cuda.so", "fake_report"));
    assert_false(cm_slot_library("libc10_cuda.so", path));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_what_is_loaded),
        cmocka_unit_test(finds_nothing_where_nothing_is),
        cmocka_unit_test(loads_nothing),
        cmocka_unit_test(counts_what_is_loaded),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
