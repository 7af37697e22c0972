/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/tag_table.h"

#include "fail_each.h"

#define SITE(number) ((struct cm_site_id){number})
enum { OBJECTS = 3000, STEPS = 40000 };

static struct cm_tag_table
begun(void)
{
    struct cm_tag_table table = {0};
    assert_int_equal(cm_tag_table_begin(&table), CM_OK);
    return table;
}

static uint32_t
site_at(struct cm_tag_table *table, uint64_t address)
{
    const struct cm_tag *tag = cm_tag_table_find(table, address);
    return tag != NULL ? tag->site.index : 0;
}

static void
knows_an_object_as_long_as_it_lives(void **state)
{
    (void)state;
    struct cm_tag_table table = begun();
    cm_tag_table_add(&table, 0x1000, SITE(3), false);
    cm_tag_table_add(&table, 0x2000, SITE(4), false);
    assert_int_equal(site_at(&table, 0x1000), 3);
    cm_tag_table_remove(&table, 0x1000);
    cm_tag_table_remove(&table, 0x5000); /* never made */
    assert_null(cm_tag_table_find(&table, 0x1000));
    assert_int_equal(site_at(&table, 0x2000), 4);
    assert_int_equal(table.live, 1);
    assert_int_equal(table.made, 2);
    cm_tag_table_release(&table);
}

static void
tells_who_came_first(void **state)
{
    (void)state;
    struct cm_tag_table table = begun();
    cm_tag_table_add(&table, 0x1000, SITE(1), false);
    cm_tag_table_add(&table, 0x2000, SITE(1), false);
    uint32_t first = cm_tag_table_find(&table, 0x1000)->order;
    assert_true(first < cm_tag_table_find(&table, 0x2000)->order);
    cm_tag_table_remove(&table, 0x1000);
    cm_tag_table_add(&table, 0x1000, SITE(1),
                     false); /* another, at its address */
    assert_true(cm_tag_table_find(&table, 0x1000)->order
                > cm_tag_table_find(&table, 0x2000)->order);
    cm_tag_table_release(&table);
}

static void
note(struct cm_tag_table *table, uint64_t address, uint32_t site, bool made)
{
    if (made) {
        cm_tag_table_add(table, address, SITE(site), false);
    }
    else {
        cm_tag_table_remove(table, address);
    }
}

static void
holds_what_lives_after_many_changes(void **state)
{
    (void)state;
    struct cm_tag_table table = begun();
    static uint32_t sites[OBJECTS];
    uint32_t live = 0, random = 1;
    for (uint32_t i = 1; i <= STEPS; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t number = (random >> 8) % OBJECTS;
        uint64_t address = 0x7F0000000000 + 48 * (uint64_t)number;
        live += sites[number] == 0 ? 1u : -1u;
        sites[number] = sites[number] == 0 ? i : 0;
        note(&table, address, sites[number], sites[number] != 0);
    }
    for (uint32_t i = 0; i < OBJECTS; i++) {
        assert_int_equal(site_at(&table, 0x7F0000000000 + 48 * (uint64_t)i),
                         sites[i]);
    }
    assert_int_equal(table.live, live);
    assert_int_equal(table.lost, 0);
    cm_tag_table_release(&table);
}

/* As one by one, ends that were not told too. */
static void
leaves_out_what_ends_within_the_line(void **state)
{
    (void)state;
    enum { FEW = 20, ASKED = 100 };
    struct cm_tag_table table = begun();
    uint32_t sites[FEW] = {0}, random = 1, made = 0;
    for (uint32_t i = 1; i <= STEPS; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t number = (random >> 8) % FEW;
        bool makes = sites[number] == 0 || (random >> 16) % 16 == 0;
        sites[number] = makes ? i : 0;
        made += makes;
        note(&table, 16 * (uint64_t)(number + 1), i, makes);
        for (uint32_t k = 0; (random >> 20) % ASKED == 0 && k < FEW; k++) {
            assert_int_equal(site_at(&table, 16 * (uint64_t)(k + 1)),
                             sites[k]);
        }
    }
    cm_tag_table_take_in(&table);
    assert_int_equal(table.made, made);
    assert_int_equal(table.place_count, 256); /* as at first */
    cm_tag_table_release(&table);
}

static void
counts_what_it_had_no_memory_for(void **state)
{
    (void)state;
    struct cm_tag_table table = {0};
    for (int nth = 0; nth < 2; nth++) {
        cm_alloc_fail_at(nth, true);
        assert_int_equal(cm_tag_table_begin(&table), CM_NO_MEMORY);
    }
    cm_alloc_fail_at(-1, false);
    assert_null(cm_tag_table_find(&table, 0x1000));
    assert_int_equal(cm_tag_table_begin(&table), CM_OK);
    cm_alloc_fail_at(0, true);
    for (uint64_t i = 1; i <= 300; i++) {
        cm_tag_table_add(&table, 16 * i, SITE(1), false);
    }
    assert_int_equal(site_at(&table, 16), 1);
    cm_alloc_fail_at(-1, false);
    assert_int_equal(table.live, 128);
    assert_int_equal(table.lost, 172);
    cm_tag_table_release(&table);
}

static bool
is_even(uint64_t address)
{
    return (address >> 4) % 2 == 0;
}

static void
keeps_those_that_are_asked_for_and_those_that_last(void **state)
{
    (void)state;
    struct cm_tag_table table = begun();
    assert_true(cm_tag_table_is_empty(&table));
    for (uint64_t i = 1; i <= OBJECTS; i++) {
        cm_tag_table_add(&table, 16 * i, SITE((uint32_t)i), i == 7);
    }
    cm_tag_table_keep(&table, is_even);
    assert_int_equal(table.live, OBJECTS / 2 + 1);
    for (uint64_t i = 1; i <= OBJECTS; i++) {
        assert_int_equal(site_at(&table, 16 * i),
                         i % 2 == 0 || i == 7 ? i : 0);
        cm_tag_table_remove(&table, 16 * i);
    }
    assert_false(cm_tag_table_is_empty(&table)); /* they wait */
    cm_tag_table_take_in(&table);
    assert_true(cm_tag_table_is_empty(&table));
    cm_tag_table_release(&table);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_an_object_as_long_as_it_lives),
        cmocka_unit_test(tells_who_came_first),
        cmocka_unit_test(holds_what_lives_after_many_changes),
        cmocka_unit_test(leaves_out_what_ends_within_the_line),
        cmocka_unit_test(keeps_those_that_are_asked_for_and_those_that_last),
        cmocka_unit_test(counts_what_it_had_no_memory_for),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
