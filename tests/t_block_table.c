/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/alloc.h"
#include "../detector/block_table.h"
#include "fail_each.h"

#define BASE UINT64_C(0x7f0000000000)

enum { MOST = 1 << 20 };

static bool
put(struct cm_block_table *table, uint64_t address, size_t most)
{
    struct cm_block_entry *entry =
        cm_block_table_place(table, address, cm_block_hash(address), most);
    if (entry != NULL) {
        table->count += !entry->live;
        *entry = (struct cm_block_entry){.address = address, .live = true};
    }
    return entry != NULL;
}

static struct cm_block_entry *
find(const struct cm_block_table *table, uint64_t address)
{
    return cm_block_table_find(table, address, cm_block_hash(address));
}

static void
take(struct cm_block_table *table, uint64_t address)
{
    find(table, address)->live = false;
    table->count--;
}

static void
finds_what_is_live(void **state)
{
    (void)state;
    struct cm_block_table table = {0};
    assert_null(find(&table, BASE));
    cm_block_table_prefetch(&table, cm_block_hash(BASE));
    for (uint64_t i = 0; i < 5000; i++) {
        assert_true(put(&table, BASE + i * 512, MOST));
    }
    for (uint64_t i = 0; i < 5000; i += 2) {
        take(&table, BASE + i * 512);
    }
    for (uint64_t i = 0; i < 5000; i++) {
        assert_int_equal(find(&table, BASE + i * 512) != NULL, i % 2);
        cm_block_table_prefetch(&table, cm_block_hash(BASE + i * 512));
    }
    cm_block_table_release(&table);
}

/* A caching allocator gives out few addresses, again and again. */
static void
stays_as_large_as_its_addresses(void **state)
{
    (void)state;
    struct cm_block_table table = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        put(&table, BASE + i % 100 * 512, MOST);
        take(&table, BASE + i % 100 * 512);
    }
    assert_in_range(table.capacity, 1, 400);
    for (uint64_t i = 0; i < 100000; i++) {
        put(&table, BASE + i * 512, MOST);
        take(&table, BASE + i * 512);
    }
    assert_in_range(table.capacity, 1, 400);
    cm_block_table_release(&table);
}

static void
stops_at_its_bound(void **state)
{
    (void)state;
    struct cm_block_table table = {0};
    size_t kept = 0;
    for (uint64_t i = 0; i < 5000; i++) {
        kept += put(&table, BASE + i * 512, 1000);
    }
    assert_in_range(kept, 1000, 2000);
    assert_int_equal(table.count, kept);
    cm_block_table_release(&table);
}

static enum cm_status
everything(void *context)
{
    (void)context;
    struct cm_block_table table = {0};
    size_t kept = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        kept += put(&table, BASE + i * 512, MOST);
    }
    assert_int_equal(table.count, kept);
    cm_block_table_release(&table);
    return kept == 2000 ? CM_OK : CM_NO_MEMORY;
}

static void
refuses_what_it_has_no_memory_for(void **state)
{
    (void)state;
    cm_fail_each(everything, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_live),
        cmocka_unit_test(stays_as_large_as_its_addresses),
        cmocka_unit_test(stops_at_its_bound),
        cmocka_unit_test(refuses_what_it_has_no_memory_for),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
