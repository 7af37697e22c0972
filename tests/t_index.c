/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/index.h"
#include "fail_each.h"

enum { MANY = 5000 };

struct wanted {
    const uint32_t *things;
    uint32_t thing;
    long asked;
};

static bool
same(const void *context, uint32_t number)
{
    struct wanted *wanted = (struct wanted *)context;
    wanted->asked++;
    return wanted->things[number] == wanted->thing;
}

/* Puts things 1000+number under a hash that `hash_of` gives them. */
static void
fill_and_find(uint32_t (*hash_of)(uint32_t thing), long most_asked)
{
    static uint32_t things[MANY + 1];
    struct cm_index index = {0};
    struct wanted wanted = {.things = things};
    for (uint32_t number = 1; number <= MANY; number++) {
        uint32_t thing = number + 1000;
        wanted.thing = thing;
        assert_int_equal(cm_index_find(&index, hash_of(thing), same, &wanted),
                         0);
        assert_int_equal(cm_index_reserve(&index), CM_OK);
        things[number] = thing;
        cm_index_put(&index, hash_of(thing), number);
    }
    wanted.asked = 0;
    for (uint32_t number = 1; number <= MANY; number++) {
        wanted.thing = number + 1000;
        assert_int_equal(
            cm_index_find(&index, hash_of(wanted.thing), same, &wanted),
            number);
    }
    assert_true(wanted.asked <= most_asked);
    assert_int_equal(index.count, MANY);
    cm_index_release(&index);
    assert_int_equal(index.capacity, 0);
}

static uint32_t
good_hash(uint32_t thing)
{
    return cm_hash(0, &thing, sizeof(thing));
}

/* Four hashes for all: full of collisions, and the probe goes round the end. */
static uint32_t
bad_hash(uint32_t thing)
{
    return UINT32_MAX - thing % 4;
}

static void
finds_what_was_put(void **state)
{
    (void)state;
    fill_and_find(good_hash, MANY + 10);
}

static void
finds_in_spite_of_collisions(void **state)
{
    (void)state;
    fill_and_find(bad_hash, (long)MANY * MANY);
}

static void
hashes_every_byte_and_the_length(void **state)
{
    (void)state;
    unsigned char bytes[32] = {0};
    for (size_t length = 1; length <= sizeof(bytes); length++) {
        uint32_t zero = cm_hash(0, bytes, length);
        assert_int_not_equal(zero, cm_hash(0, bytes, length - 1));
        assert_int_not_equal(zero, cm_hash(1, bytes, length));
        for (size_t at = 0; at < length; at++) {
            bytes[at] = 1;
            assert_int_not_equal(zero, cm_hash(0, bytes, length));
            bytes[at] = 0;
        }
    }
}

static void
spreads_addresses(void **state)
{
    (void)state;
    /* Keys as ours are: addresses in steps of 64 bytes. */
    enum { BUCKETS = 1024 };
    static int buckets[BUCKETS];
    for (uint64_t at = 0; at < BUCKETS * 8; at++) {
        uint64_t address = 0x7f0000000000u + at * 64;
        buckets[cm_hash(0, &address, sizeof(address)) % BUCKETS]++;
    }
    for (int at = 0; at < BUCKETS; at++) {
        assert_true(buckets[at] < 40); /* 8 expected */
    }
}

static enum cm_status
fill(void *context)
{
    (void)context;
    struct cm_index index = {0};
    enum cm_status status = CM_OK;
    for (uint32_t number = 1; number < 100 && status == CM_OK; number++) {
        status = cm_index_reserve(&index);
        if (status == CM_OK) {
            cm_index_put(&index, good_hash(number), number);
        }
    }
    cm_index_release(&index);
    return status;
}

static void
is_empty_again_with_its_room(void **state)
{
    (void)state;
    uint32_t things[] = {0, 7};
    struct cm_index index = {0};
    struct wanted wanted = {.things = things, .thing = 7};
    cm_index_clear(&index);
    assert_int_equal(cm_index_reserve(&index), CM_OK);
    cm_index_put(&index, good_hash(7), 1);
    size_t capacity = index.capacity;
    cm_index_clear(&index);
    assert_int_equal(cm_index_find(&index, good_hash(7), same, &wanted), 0);
    assert_int_equal(index.count, 0);
    assert_int_equal(index.capacity, capacity);
    for (uint32_t number = 1; number <= 3 * MANY; number++) {
        assert_int_equal(cm_index_reserve(&index), CM_OK);
        cm_index_put(&index, good_hash(number), number);
    }
    cm_index_clear(&index);
    assert_int_equal(index.capacity, 0); /* longer to empty than to have */
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
        cmocka_unit_test(finds_what_was_put),
        cmocka_unit_test(finds_in_spite_of_collisions),
        cmocka_unit_test(hashes_every_byte_and_the_length),
        cmocka_unit_test(spreads_addresses),
        cmocka_unit_test(is_empty_again_with_its_room),
        cmocka_unit_test(survives_each_failed_allocation),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
