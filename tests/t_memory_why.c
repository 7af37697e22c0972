/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/memory_why.h"

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

/* What is said of the first device, as "why | fix". */
static void
expect(const struct cm_leak *leak, const char *expected)
{
    struct cm_buffer why = {0}, fix = {0};

    cm_memory_why(leak, &leak->devices[0], &why, &fix);
    cm_buffer_addf(&why, " | %s", cm_buffer_text(&fix));
    assert_string_equal(cm_buffer_text(&why), expected);
    cm_buffer_release(&why);
    cm_buffer_release(&fix);
}

/* A device that is full, of which nothing else is known. */
static struct cm_leak
full_device(void)
{
    struct cm_leak leak = leak_of(LEAK_HEAD "'devices':[{'name':'cuda:0'}]}");

    leak.devices[0].total = 80 * GIB;
    leak.devices[0].allocated = leak.devices[0].reserved = 78 * GIB;
    leak.devices[0].asked_bytes = 4 * GIB;
    return leak;
}

static void
test_in_pieces(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);

    (void)state;
    expect(&leak,
           "8.0 GiB asked, 10 GiB cached in pieces of at most 100 MiB: "
           "fragmented; common pool: 214 segments, 87 % used, 60.0 of 70.0 "
           "GiB requested | run with "
           "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    leak.devices[0].asked_bytes = 0; /* it is a pity all the same */
    expect(&leak,
           "10 GiB cached in pieces of at most 100 MiB: fragmented; common "
           "pool: 214 segments, 87 % used, 60.0 of 70.0 GiB requested | run "
           "with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    leak.devices[0].pools[0].largest_free = 10 * GIB;
    expect(&leak, " | ");
    cm_leak_release(&leak);
}

/* What is on already is no way out. */
static void
test_in_pieces_of_segments_that_grow(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);

    (void)state;
    leak.devices[0].pools[0].expandable = true;
    expect(&leak,
           "8.0 GiB asked, 10 GiB cached in pieces of at most 100 MiB: "
           "fragmented; common pool: 214 segments, 87 % used, 60.0 of 70.0 "
           "GiB requested | expandable segments are on already: allocate what "
           "lives long first, and pad batches to few sizes");
    cm_leak_release(&leak);
}

static void
test_the_way_out_is_not_always_torch_s(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);

    (void)state;
    leak.devices[0].frameworks[0].name = leak.devices[0].frameworks[1].name;
    leak.devices[0].pool_count = 0;
    expect(&leak, "8.0 GiB asked, 10 GiB cached in pieces of at most 100 MiB: "
                  "fragmented | allocate the largest arrays first, or empty "
                  "the cache before");
    cm_leak_release(&leak);
}

/* Who has leaked the device full needs no smaller batch. */
static void
test_what_grows_is_the_reason(void **state)
{
    struct cm_leak leak = leak_of(
        LEAK_HEAD "'devices':[{'name':'cuda:0'},{'name':'cuda:1'}],"
                  "'growth':[{'verdict':'leak','device':'cuda:0',"
                  "'bytes':64424509440},{'verdict':'leak','device':'cuda:1',"
                  "'bytes':1},{'verdict':'growing','device':'cuda:0',"
                  "'bytes':1}]}");

    (void)state;
    leak.devices[0].total = 80 * GIB;
    leak.devices[0].asked_bytes = 4 * GIB;
    expect(&leak, "4.0 GiB asked, 60 GiB of what is allocated is what grows | "
                  "mend the leaks named here");
    leak.growth[0].bytes = 3 * GIB;
    expect(&leak, "4.0 GiB asked, 0 B cached: the rest is in use | a smaller "
                  "batch, or torch.utils.checkpoint");
    cm_leak_release(&leak);
}

/* In the order in which they are looked for. */
static void
test_reasons(void **state)
{
    struct cm_leak leak = full_device();
    struct cm_leak_device *device = &leak.devices[0];

    (void)state;
    expect(&leak, "4.0 GiB asked, 0 B cached: the rest is in use | a smaller "
                  "batch, or torch.utils.checkpoint");
    device->free = 2 * GIB;
    expect(&leak, "4.0 GiB asked, 0 B cached and 2.0 GiB free: the rest is in "
                  "use | a smaller batch, or torch.utils.checkpoint");
    device->free = 20 * GIB;
    device->dead_peak = 2 << 20;
    expect(&leak, "4.0 GiB asked, 20 GiB is free on the device: a limit of "
                  "this process | a smaller batch; look for "
                  "set_per_process_memory_fraction()");
    device->dead_peak = 4 * GIB;
    expect(&leak, "4.0 GiB asked, up to 4.0 GiB of what is allocated was dead "
                  "| cut the dead cycles named here");
    device->dead_peak = 0;
    device->free = 2 * GIB;
    device->outside_frameworks = 9 * GIB;
    expect(&leak, "4.0 GiB asked, this process holds 9.0 GiB outside the "
                  "frameworks (context, NCCL, libraries) | CUMEM_DRIVER=1 "
                  "tells which library allocates it");
    device->other_processes = 6 * GIB;
    expect(&leak, "4.0 GiB asked, other processes hold 6.0 GiB of this device "
                  "| stop them or choose another device (nvidia-smi)");
    device->dead_peak = 3 * GIB;
    expect(&leak, "4.0 GiB asked, up to 3.0 GiB of what is allocated was dead "
                  "| cut the dead cycles named here");
    device->largest_free = 5 * GIB;
    expect(&leak, "4.0 GiB asked, a block of 5.0 GiB is free, but for another "
                  "stream or pool, or over a limit | allocate on one stream; "
                  "look for set_per_process_memory_fraction()");
    device->pending_free = 5 * GIB;
    expect(&leak, "4.0 GiB asked, 5.0 GiB is freed, but a stream that it was "
                  "recorded for still uses it | wait for that stream before "
                  "you allocate (torch.cuda.Stream.synchronize)");
    device->asked_bytes = 81 * GIB;
    expect(&leak, "81 GiB asked, more than the device has, which is 80 GiB | "
                  "make that tensor smaller, or split it");
    cm_leak_release(&leak);
}

static void
test_free_in_private_pools(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_leak_device *device = &leak.devices[0];

    (void)state;
    device->pools[0].name = cm_texts_intern(leak.texts, "(0, 1)");
    expect(&leak, "8.0 GiB asked, 10 GiB is free, but in private pools of "
                  "CUDA graphs or MemPools | let the graphs share a pool "
                  "(torch.cuda.graph(..., pool=...))");
    cm_leak_release(&leak);
}

static void
test_nothing_is_asked_and_nothing_is_wrong(void **state)
{
    struct cm_leak leak = full_device();

    (void)state;
    leak.devices[0].asked_bytes = 0;
    expect(&leak, " | ");
    cm_leak_release(&leak);
}

/* Numbers that fit nothing give a sentence all the same. */
static void
test_numbers_may_be_nonsense(void **state)
{
    static const uint64_t numbers[] = {0, 1, CM_LEAK_UNKNOWN,
                                       (uint64_t)1 << 53, UINT64_MAX - 1};
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_leak_device *device = &leak.devices[0];
    uint64_t *const places[] = {
        &device->total,
        &device->allocated,
        &device->reserved,
        &device->cached,
        &device->pending_free,
        &device->other_processes,
        &device->outside_frameworks,
        &device->free,
        &device->largest_free,
        &device->dead_peak,
        &device->asked_bytes,
        &device->pools[0].reserved,
        &device->pools[0].allocated,
        &device->pools[0].requested,
        &device->pools[0].segments,
        &device->pools[0].largest_free,
    };

    (void)state;
    for (size_t i = 0; i < 16 * 16 * 25; i++) {
        struct cm_buffer why = {0}, fix = {0};
        uint64_t *a = places[i / 400], *b = places[i / 25 % 16];
        uint64_t kept_a = *a, kept_b = *b;

        *a = numbers[i % 5];
        *b = numbers[i / 5 % 5];
        cm_memory_why(&leak, device, &why, &fix);
        assert_true((why.length == 0) == (fix.length == 0));
        assert_true(why.length < 300);
        *b = kept_b;
        *a = kept_a;
        cm_buffer_release(&why);
        cm_buffer_release(&fix);
    }
    cm_leak_release(&leak);
}

static void
test_what_is_known_of_a_device(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);

    (void)state;
    assert_false(cm_memory_is_known(&leak.devices[0]));
    leak.devices[0].free = 0;
    assert_true(cm_memory_is_known(&leak.devices[0]));
    cm_leak_release(&leak);
}

static void
test_a_pool_in_pieces(void **state)
{
    struct cm_leak_pool pool = {.reserved = 10 * GIB,
                                .allocated = 8 * GIB,
                                .requested = CM_LEAK_UNKNOWN,
                                .pending_free = CM_LEAK_UNKNOWN,
                                .segments = CM_LEAK_UNKNOWN,
                                .largest_free = GIB};
    struct cm_buffer text = {0};

    (void)state;
    assert_true(cm_memory_is_fragmented(&pool));
    cm_memory_add_pool(&pool, &text);
    assert_string_equal(cm_buffer_text(&text), "80 % used");
    pool.largest_free = 2 * GIB;
    assert_false(cm_memory_is_fragmented(&pool));
    pool.largest_free = CM_LEAK_UNKNOWN;
    assert_false(cm_memory_is_fragmented(&pool));
    pool = (struct cm_leak_pool){.reserved = 40 * MIB};
    assert_false(cm_memory_is_fragmented(&pool)); /* too little to matter */
    cm_buffer_release(&text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_pieces),
        cmocka_unit_test(test_in_pieces_of_segments_that_grow),
        cmocka_unit_test(test_the_way_out_is_not_always_torch_s),
        cmocka_unit_test(test_what_grows_is_the_reason),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_free_in_private_pools),
        cmocka_unit_test(test_nothing_is_asked_and_nothing_is_wrong),
        cmocka_unit_test(test_numbers_may_be_nonsense),
        cmocka_unit_test(test_what_is_known_of_a_device),
        cmocka_unit_test(test_a_pool_in_pieces),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
