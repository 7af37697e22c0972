/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <pthread.h>
#include <stdatomic.h>

#include "../detector/table.h"
#include "fail_each.h"

enum { MANY = 100000 };

static enum cm_status
add(struct cm_table *table, uint64_t value)
{
    void *item;
    enum cm_status status = cm_table_reserve(table, &item);
    if (status == CM_OK) {
        *(uint64_t *)item = value;
        cm_table_commit(table);
    }
    return status;
}

static void
keeps_items_where_they_are(void **state)
{
    (void)state;
    struct cm_table table = {.item_bytes = sizeof(uint64_t)};
    assert_null(cm_table_get(&table, 0));
    assert_null(cm_table_get(&table, 1));
    assert_int_equal(add(&table, 1), CM_OK);
    const void *first = cm_table_get(&table, 1);
    for (uint64_t number = 2; number <= MANY; number++) {
        assert_int_equal(add(&table, number), CM_OK);
    }
    assert_ptr_equal(cm_table_get(&table, 1), first);
    for (uint32_t number = 1; number <= MANY; number++) {
        const uint64_t *item = cm_table_get(&table, number);
        assert_int_equal(*item, number);
    }
    assert_null(cm_table_get(&table, MANY + 1));
    assert_true(table.bytes < 4 * MANY * sizeof(uint64_t));
    cm_table_release(&table);
    assert_null(cm_table_get(&table, 1));
}

static void
gives_zeroed_room_until_it_is_committed(void **state)
{
    (void)state;
    struct cm_table table = {.item_bytes = sizeof(uint64_t)};
    void *item, *again;
    assert_int_equal(cm_table_reserve(&table, &item), CM_OK);
    *(uint64_t *)item = 7;
    assert_int_equal(cm_table_reserve(&table, &again), CM_OK);
    assert_ptr_equal(item, again);
    assert_int_equal(*(uint64_t *)again, 0);
    assert_null(cm_table_get(&table, 1));
    assert_int_equal(cm_table_commit(&table), 1);
    assert_ptr_equal(cm_table_get(&table, 1), item);
    cm_table_release(&table);
}

/* Reads the newest item all the time: it must be whole. */
static void *
read_newest(void *context)
{
    struct cm_table *table = context;
    uint32_t number = 0;
    while (number < MANY) {
        number = atomic_load(&table->count);
        const uint64_t *item = cm_table_get(table, number);
        if (number > 0 && *item != number) {
            return table;
        }
    }
    return NULL;
}

static void
can_be_read_while_it_grows(void **state)
{
    (void)state;
    struct cm_table table = {.item_bytes = sizeof(uint64_t)};
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_newest, &table), 0);
    for (uint64_t number = 1; number <= MANY; number++) {
        assert_int_equal(add(&table, number), CM_OK);
    }
    void *wrong;
    assert_int_equal(pthread_join(reader, &wrong), 0);
    assert_null(wrong);
    cm_table_release(&table);
}

static void
ends_when_numbers_do(void **state)
{
    (void)state;
    struct cm_table table = {.item_bytes = sizeof(uint64_t)};
    atomic_store(&table.count, UINT32_MAX - 63); /* as if it were full */
    assert_int_equal(add(&table, 1), CM_LIMIT);
    cm_table_release(&table);
}

static enum cm_status
fill(void *context)
{
    (void)context;
    struct cm_table table = {.item_bytes = sizeof(uint64_t)};
    enum cm_status status = CM_OK;
    for (uint64_t number = 1; number < 1000 && status == CM_OK; number++) {
        status = add(&table, number);
    }
    cm_table_release(&table);
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
        cmocka_unit_test(keeps_items_where_they_are),
        cmocka_unit_test(gives_zeroed_room_until_it_is_committed),
        cmocka_unit_test(can_be_read_while_it_grows),
        cmocka_unit_test(ends_when_numbers_do),
        cmocka_unit_test(survives_each_failed_allocation),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
