/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <dlfcn.h>

#include "../allocator_hooks/torch_stream.h"
#include "../detector/event.h"
#include "fail_each.h"

static int64_t *id;
static uint64_t *handle, *asked;

static void *
load(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY);
    assert_non_null(library);
    return library;
}

static void
does_not_know_before_torch_is_there(void **state)
{
    (void)state;
    cm_torch_stream_find();
    assert_true(cm_torch_stream_now(0) == CM_STREAM_UNKNOWN);
}

static void
asks_for_the_handle_where_no_id_is_told(void **state)
{
    (void)state;
    void *torch_cuda = load(STAND_INS "/fakes/libtorch_cuda.so");
    handle = dlsym(torch_cuda, "fake_handle");
    asked = dlsym(torch_cuda, "fake_asked");
    cm_torch_stream_find();
    *handle = 0x5500;
    assert_int_equal(cm_torch_stream_now(0), 0x5500);
    *handle = 0x6600;
    assert_int_equal(cm_torch_stream_now(0), 0x6600);
    assert_true(cm_torch_stream_now(-1) == CM_STREAM_UNKNOWN);
}

static void
asks_once_for_each_id(void **state)
{
    (void)state;
    id = dlsym(load(STAND_INS "/now/libc10_cuda.so"), "fake_stream_id");
    cm_torch_stream_find();
    *asked = 0;
    assert_int_equal(cm_torch_stream_now(0), 0);
    assert_int_equal(*asked, 0);
    for (int i = 0; i < 3; i++) {
        *id = 35;
        *handle = 0x7700;
        assert_int_equal(cm_torch_stream_now(0), 0x7700);
        *handle = 0x8800;
        assert_int_equal(cm_torch_stream_now(1), 0x8800);
    }
    assert_int_equal(*asked, 2);
}

static void
tells_many_streams_apart(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        for (int64_t i = 1; i < 1000; i++) {
            *id = i;
            *handle = (uint64_t)i * 256;
            assert_int_equal(cm_torch_stream_now(2), i * 256);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_not_know_before_torch_is_there),
        cmocka_unit_test(asks_for_the_handle_where_no_id_is_told),
        cmocka_unit_test(asks_once_for_each_id),
        cmocka_unit_test(tells_many_streams_apart),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
