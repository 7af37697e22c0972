/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../allocator_hooks/driver_call.h"
#include "../allocator_hooks/driver_layout.h"

static struct cm_driver_call call;

static bool
read_call(const char *name, const void *params)
{
    const struct cm_driver_entry *entry = cm_driver_entry_named(name);
    assert_non_null(entry);
    assert_string_equal(entry->name, name);
    call = (struct cm_driver_call){.stream = UINT64_MAX, .device = -1};
    return entry->read(params, &call);
}

static void
knows_its_entry_points(void **state)
{
    (void)state;
    assert_null(cm_driver_entry_named(""));
    assert_null(cm_driver_entry_named("cuMemAlloc"));
    assert_null(cm_driver_entry_named("cuMemAlloc_v3"));
    assert_null(cm_driver_entry_named("cuLaunchKernel"));
    assert_null(cm_driver_entry_named("cuMemHostAlloc"));
    assert_true(cm_driver_entry_named("cuMemAlloc_v2")->at_exit);
    assert_false(cm_driver_entry_named("cuMemFree_v2")->at_exit);
}

static void
reads_allocations(void **state)
{
    (void)state;
    uint64_t address = 0x7f0000000000;
    size_t pitch = 512;
    void *stream = (void *)(uintptr_t)0x55;
    assert_true(
        read_call("cuMemAlloc_v2", &(struct cm_mem_alloc){&address, 100}));
    assert_true(call.key == address && call.bytes == 100);
    assert_true(call.stream == UINT64_MAX && call.device == -1);
    assert_true(
        read_call("cuMemAllocPitch_v2",
                  &(struct cm_mem_alloc_pitch){&address, &pitch, 500, 3, 4}));
    assert_int_equal(call.bytes, 1536);
    assert_true(read_call("cuMemAllocAsync_ptsz",
                          &(struct cm_mem_alloc_async){&address, 7, stream}));
    assert_true(call.bytes == 7 && call.stream == 0x55);
    assert_true(read_call(
        "cuMemAllocFromPoolAsync",
        &(struct cm_mem_alloc_from_pool){&address, 9, NULL, stream}));
    assert_true(call.bytes == 9 && call.stream == 0x55);
    assert_true(read_call("cuMemFreeAsync", &(struct cm_mem_free){address}));
    assert_true(call.key == address);
}

static void
reads_memory_with_a_handle(void **state)
{
    (void)state;
    uint64_t handle = 0x55;
    struct cm_mem_properties here = {1, 0, CM_LOCATION_DEVICE, 3};
    struct cm_mem_properties host = {1, 0, 3, 0};
    assert_true(read_call("cuMemCreate",
                          &(struct cm_mem_create){&handle, 64, &here, 0}));
    assert_true(call.key == (handle | CM_KEY_HANDLE) && call.device == 3);
    assert_false(read_call("cuMemCreate",
                           &(struct cm_mem_create){&handle, 64, &host, 0}));
    assert_true(read_call("cuMemRelease", &(struct cm_mem_release){handle}));
    assert_true(call.key == (handle | CM_KEY_HANDLE));
    assert_true(read_call("cuMemRetainAllocationHandle",
                          &(struct cm_mem_retain){&handle, (void *)&handle}));
    assert_true(call.key == (handle | CM_KEY_HANDLE));
    assert_true(
        read_call("cuMemMap", &(struct cm_mem_map){0x1000, 64, 0, handle, 0}));
    assert_true(call.address == 0x1000 && call.bytes == 64);
    assert_true(read_call("cuMemUnmap", &(struct cm_mem_unmap){0x1000, 64}));
    assert_true(call.address == 0x1000 && call.bytes == 64);
}

static void
reads_arrays(void **state)
{
    (void)state;
    void *array = &call;
    struct cm_array_descriptor flat = {10, 0, 0x20, 4};
    struct cm_array3d_descriptor deep = {8, 4, 2, 0x10, 2, 0};
    struct cm_array3d_descriptor layered = {8, 4, 2, 1, 1, CM_ARRAY_LAYERED};
    assert_true(read_call("cuArrayCreate_v2",
                          &(struct cm_array_create){&array, &flat}));
    assert_int_equal(call.bytes, 160);
    assert_true(call.key == ((uintptr_t)array | CM_KEY_ARRAY));
    assert_true(read_call("cuArray3DCreate_v2",
                          &(struct cm_array3d_create){&array, &deep}));
    assert_int_equal(call.bytes, 256);
    assert_true(read_call("cuMipmappedArrayCreate",
                          &(struct cm_mipmapped_create){&array, &deep, 2}));
    assert_int_equal(call.bytes, 256 + 4 * 2 * 4);
    assert_true(read_call("cuMipmappedArrayCreate",
                          &(struct cm_mipmapped_create){&array, &layered, 3}));
    assert_int_equal(call.bytes, 64 + 16 + 4);
    assert_true(
        read_call("cuArrayDestroy", &(struct cm_array_destroy){array}));
    assert_true(call.key == ((uintptr_t)array | CM_KEY_ARRAY));
    assert_int_equal(cm_driver_array_bytes(1, 1, 1, 0x91, 4, 0), 0);
    assert_int_equal(cm_driver_array_bytes(1, 1, 1, 0x20, 4, CM_ARRAY_SPARSE),
                     0);
    assert_int_equal(cm_driver_array_bytes(UINT64_MAX / 2, 3, 1, 0x20, 4, 0),
                     0);
}

static void
reads_the_end_of_contexts(void **state)
{
    (void)state;
    assert_true(read_call("cuCtxDestroy_v2", &(struct cm_ctx_destroy){&call}));
    assert_true(call.context == (uintptr_t)&call);
    assert_false(read_call("cuCtxDestroy_v2", &(struct cm_ctx_destroy){0}));
    assert_true(read_call("cuDevicePrimaryCtxReset_v2",
                          &(struct cm_primary_ctx_reset){2}));
    assert_int_equal(call.device, 2);
    assert_false(read_call("cuDevicePrimaryCtxReset_v2",
                           &(struct cm_primary_ctx_reset){-1}));
}

/* Every call with all of its arguments zero, as a program may pass them. */
static void
bears_arguments_that_are_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {
        "cuMemAlloc_v2",
        "cuMemAllocManaged",
        "cuMemAllocPitch_v2",
        "cuMemAllocAsync",
        "cuMemAllocFromPoolAsync_ptsz",
        "cuMemFree_v2",
        "cuMemFreeAsync_ptsz",
        "cuMemCreate",
        "cuMemRetainAllocationHandle",
        "cuMemMap",
        "cuMemUnmap",
        "cuArrayCreate_v2",
        "cuArray3DCreate_v2",
        "cuArrayDestroy",
        "cuMipmappedArrayCreate",
        "cuMipmappedArrayDestroy",
    };
    static const char nothing[256];
    uint64_t zero = 0, address = 1;
    size_t pitch = SIZE_MAX;
    void *array = NULL;
    struct cm_array_descriptor flat = {10, 0, 0x20, 4};
    for (size_t at = 0; at < sizeof(names) / sizeof(names[0]); at++) {
        assert_false(read_call(names[at], nothing));
    }
    assert_false(read_call("cuMemAlloc_v2", &(struct cm_mem_alloc){&zero, 1}));
    assert_false(
        read_call("cuMemAlloc_v2", &(struct cm_mem_alloc){&address, 0}));
    assert_false(
        read_call("cuMemAllocPitch_v2",
                  &(struct cm_mem_alloc_pitch){&address, &pitch, 1, 2, 4}));
    assert_false(read_call("cuArrayCreate_v2",
                           &(struct cm_array_create){&array, &flat}));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_its_entry_points),
        cmocka_unit_test(reads_allocations),
        cmocka_unit_test(reads_memory_with_a_handle),
        cmocka_unit_test(reads_arrays),
        cmocka_unit_test(reads_the_end_of_contexts),
        cmocka_unit_test(bears_arguments_that_are_nothing),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
