/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/memory_held.h"
#include "../reports/memory_table.h"
#include "../reports/summary.h"
#include "../reports/utf8.h"
#include "fail_each.h"

#define GIB ((uint64_t)1 << 30)

/* The summary, which has the block in it. */
static enum cm_status
write_summary(struct cm_leak *leak, bool all, struct cm_buffer *out)
{
    struct cm_summary_options options = {.all = all, .report_name = ""};

    return cm_summary_write(leak, &options, out);
}

static void
expect(struct cm_leak *leak, bool all, const char *expected)
{
    struct cm_buffer out = {0};

    assert_int_equal(write_summary(leak, all, &out), CM_OK);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_buffer_release(&out);
}

static void
test_out_of_memory(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);

    (void)state;
    expect(
        &leak, false,
        "cumem: no dead cycle holds device memory\n"
        "memory cuda:0 (100 GiB): torch 80 GiB (10 GiB cached), outside "
        "the frameworks\n"
        "         2.0 GiB, other processes 1.0 GiB, free 17 GiB\n"
        "   why   8.0 GiB asked, 10 GiB cached in pieces of at most 100 MiB: "
        "fragmented;\n"
        "         common pool: 214 segments, 87 % used, 60.0 of 70.0 GiB "
        "requested\n"
        "   fix   run with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
        "   held  14 GiB by C++ alone: 9.0 GiB train.py:57 (backward) "
        "main: l...; +1 more\n");
    cm_leak_release(&leak);
}

static void
test_nothing_failed(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    const char *expected =
        "cumem: no dead cycle holds device memory\n"
        "memory cuda:0 (100 GiB): torch 80 GiB (10 GiB cached), outside "
        "the frameworks\n"
        "         2.0 GiB, other processes 1.0 GiB, free 17 GiB\n"
        "   held  14 GiB by C++ alone: 9.0 GiB train.py:57 (backward) "
        "main: l...; +1 more\n"
        "   libs  libnccl.so.2 1.0 GiB\n";

    (void)state;
    leak.devices[0].asked_bytes = 0;
    leak.devices[0].pools[0].largest_free = UINT64_C(10) << 30;
    expect(&leak, false, expected);
    cm_leak_release(&leak);
}

/* Apart from what is cached, and only where there is some. */
static void
test_pending_and_private(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_leak_device *device = &leak.devices[0];
    struct cm_buffer out = {0};

    (void)state;
    device->pending_free = 4 * GIB;
    device->private_pools = 3 * GIB;
    device->largest_free = CM_LEAK_UNKNOWN;
    device->pool_count = 0;
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(strstr(
        out.bytes,
        "\nmemory cuda:0 (100 GiB): torch 80 GiB (6.0 GiB cached, "
        "4.0 GiB pending free, 3.0\n"
        "         GiB in private pools), outside the frameworks 2.0 GiB, "
        "other processes\n"
        "         1.0 GiB, free 17 GiB\n"
        "   why   "));
    device->frameworks[0].name = device->frameworks[1].name; /* not torch's */
    cm_buffer_clear(&out);
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(strstr(out.bytes, "): jax 80 GiB (10 GiB cached), "));
    device->framework_count = 0; /* of an older file */
    cm_buffer_clear(&out);
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(strstr(
        out.bytes, "): frameworks 80 GiB (10 GiB cached, 4.0 GiB pending "));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* What C++ holds on the host, for whoever asks. */
static void
test_a_device_of_which_nothing_else_is_known(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_memory_held held = {0};
    struct cm_buffer out = {0};

    (void)state;
    leak.devices[0].asked_bytes = 0;
    leak.devices[0].name = cm_texts_intern(leak.texts, "cuda:1");
    assert_int_equal(cm_memory_held_init(&held, &leak), CM_OK);
    assert_true(cm_memory_held_is_alone(&held, 0));
    assert_false(cm_memory_held_is_alone(&held, 1));
    cm_memory_held_release(&held);
    assert_int_equal(write_summary(&leak, true, &out), CM_OK);
    assert_non_null(strstr(out.bytes, "\nmemory cuda:0\n"
                                      "   held  14 GiB by C++ alone: "));
    cm_buffer_clear(&out);
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_null(strstr(out.bytes, "memory cuda:0"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

static void
test_pools_that_nobody_asked_for(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_buffer out = {0};

    (void)state;
    leak.devices[0].unasked = true;
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(
        strstr(out.bytes,
               ", free 17 GiB, pools not asked for: the\n         program's "
               "own recorder of torch is on\n   why   "));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* One item for each library, with the place of what it holds most of. */
static void
test_libraries(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_buffer out = {0};

    (void)state;
    assert_int_equal(leak.held_count, 3);
    assert_int_not_equal(leak.held[0].site, 0);
    for (size_t i = 0; i < 2; i++) {
        leak.held[i].framework = leak.held[2].framework;
        leak.held[i].library = leak.held[2].library;
        leak.held[i].bytes = leak.held[2].bytes;
    }
    leak.devices[0].asked_bytes = 0;
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(
        strstr(out.bytes, "   libs  libnccl.so.2 3.0 GiB train.py:57 main\n"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* With findings it is for whoever asks, or where memory ran out. */
static void
test_when_it_is_shown(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);
    struct cm_buffer out = {0};

    (void)state;
    leak.devices[0].free = 5;
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_null(strstr(out.bytes, "memory cuda:0"));
    cm_buffer_clear(&out);
    assert_int_equal(write_summary(&leak, true, &out), CM_OK);
    assert_non_null(strstr(out.bytes, "\nmemory cuda:0 free 5 B\n"));
    cm_buffer_clear(&out);
    leak.devices[0].asked_bytes = 7;
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(strstr(out.bytes, "   why   7 B asked, "));
    cm_leak_device_init(&leak.devices[0]);
    cm_buffer_clear(&out);
    assert_int_equal(write_summary(&leak, true, &out), CM_OK);
    assert_null(strstr(out.bytes, "\nmemory "));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* Whatever the names and numbers are: six lines, each begun by us. */
static void
test_hostile_names(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_buffer out = {0};
    char name[4000];

    (void)state;
    for (size_t i = 0; i + 1 < sizeof(name); i++) {
        name[i] = "#\n\x1b[0 x"[i % 8];
    }
    name[sizeof(name) - 1] = '\0';
    for (size_t i = 0; i < 3; i++) {
        leak.held[i].device = leak.devices[0].name =
            cm_texts_intern(leak.texts, name);
        leak.held[i].library = leak.devices[0].name;
    }
    leak.devices[0].frameworks[0].name = leak.devices[0].name;
    leak.devices[0].frameworks[1].name = leak.devices[0].name;
    leak.sites[0].frames[0].filename = leak.devices[0].name;
    leak.sites[0].frames[0].name = leak.devices[0].name;
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_null(strchr(out.bytes, '\x1b'));
    assert_null(strstr(out.bytes, "\n#"));
    size_t lines = 0;
    for (const char *at = out.bytes; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    assert_true(lines <= 8);
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

static void
test_many_frameworks_stay_two_lines(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_leak_framework *some;
    struct cm_buffer out = {0};
    const char *second;

    (void)state;
    some = cm_calloc(9, sizeof(*some));
    assert_non_null(some);
    for (size_t i = 0; i < 9; i++) {
        some[i] = leak.devices[0].frameworks[0];
    }
    cm_free(leak.devices[0].frameworks);
    leak.devices[0].frameworks = some;
    leak.devices[0].framework_count = 9;
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(strstr(out.bytes, "others "));
    second = strstr(strstr(out.bytes, "\nmemory") + 1, "\n") + 1;
    assert_memory_equal(strchr(second, '\n') + 1, "   why   ", 9);
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* The document has them in any order. */
static void
test_the_largest_framework_is_named(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    static const char *const names[] = {"cupy", "rmm",       "numba",
                                        "jax",  "cuda.core", "torch"};
    struct cm_leak_framework *some = cm_calloc(6, sizeof(*some));
    struct cm_buffer out = {0};

    (void)state;
    assert_non_null(some);
    for (size_t i = 0; i < 6; i++) {
        some[i].name = cm_texts_intern(leak.texts, names[i]);
        some[i].reserved = some[i].allocated = (i == 3 ? 1 : i + 1) * GIB;
    }
    cm_free(leak.devices[0].frameworks);
    leak.devices[0].frameworks = some;
    leak.devices[0].framework_count = 6;
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(strstr(
        out.bytes, "): torch 6.0 GiB, cuda.core 5.0 GiB, others 7.0 GiB,"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* Where the memory was allocated, by whom, and where the object was made. */
static void
test_alloc_of_an_awaited_block(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);
    struct cm_buffer out = {0};
    struct cm_leak_site *sites = cm_calloc(2, sizeof(*sites));

    (void)state;
    assert_non_null(sites);
    sites[0] = leak.sites[0];
    sites[1] = sites[0];
    sites[1].frames = cm_calloc(2, sizeof(*sites[1].frames));
    assert_non_null(sites[1].frames);
    memcpy(sites[1].frames, sites[0].frames, 2 * sizeof(*sites[1].frames));
    sites[1].frames[1].line = 58;
    cm_free(leak.sites);
    leak.sites = sites;
    leak.site_count = leak.site_capacity = 2;
    leak.storages[0].site = 2;
    leak.storages[0].block_bytes = 512;
    leak.storages[0].awaited = true;
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(
        strstr(out.bytes, "   alloc (in backward, waiting thread) model.py:58 "
                          "Enc.forward: h = self.proj(x)\n"
                          "         the object: model.py:12 Enc.forward: h = "
                          "self.proj(x)\n"));
    leak.storages[0].block_bytes = 0; /* then no allocator has said so */
    cm_buffer_clear(&out);
    assert_int_equal(write_summary(&leak, false, &out), CM_OK);
    assert_non_null(strstr(out.bytes, "   alloc model.py:58 Enc.forward: h = "
                                      "self.proj(x)\n"));
    assert_null(strstr(out.bytes, "the object"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

static enum cm_status
attempt(void *context)
{
    struct cm_buffer out = {0};
    enum cm_status status = write_summary(context, true, &out);

    cm_buffer_release(&out);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);

    (void)state;
    cm_fail_each(attempt, &leak);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_nothing_failed),
        cmocka_unit_test(test_pending_and_private),
        cmocka_unit_test(test_a_device_of_which_nothing_else_is_known),
        cmocka_unit_test(test_pools_that_nobody_asked_for),
        cmocka_unit_test(test_libraries),
        cmocka_unit_test(test_when_it_is_shown),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_many_frameworks_stay_two_lines),
        cmocka_unit_test(test_the_largest_framework_is_named),
        cmocka_unit_test(test_alloc_of_an_awaited_block),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
