/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <stdlib.h>

#include "fail_each.h"

#include "../allocator_hooks/holdings.h"

static void
finds_what_was_put(void **state)
{
    (void)state;
    struct cm_holdings self = {0};
    struct cm_holding gone = {0};
    assert_null(cm_holdings_find(&self, 0));
    assert_null(cm_holdings_find(&self, 1));
    assert_false(cm_holdings_remove(&self, 1, NULL));
    assert_int_equal(
        cm_holdings_put(&self, &(struct cm_holding){.key = 8, .bytes = 1}),
        CM_OK);
    assert_int_equal(
        cm_holdings_put(&self, &(struct cm_holding){.key = 8, .bytes = 2}),
        CM_OK);
    assert_int_equal(self.count, 1);
    assert_int_equal(cm_holdings_find(&self, 8)->bytes, 2);
    assert_true(cm_holdings_remove(&self, 8, &gone));
    assert_int_equal(gone.bytes, 2);
    assert_null(cm_holdings_find(&self, 8));
    cm_holdings_release(&self);
    cm_holdings_release(&self);
}

enum { KEYS = 2000, STEPS = 200000 };

/* Against a plain array. */
static void
agrees_with_an_array(void **state)
{
    (void)state;
    static uint64_t bytes[KEYS];
    struct cm_holdings self = {0};
    unsigned seed = 7;
    size_t count = 0;
    for (uint64_t step = 1; step <= STEPS; step++) {
        size_t which = (size_t)rand_r(&seed) % KEYS;
        uint64_t key = (which + 1) << 21; /* as addresses are */
        struct cm_holding gone;
        if (rand_r(&seed) % 5 < 3) {
            count += bytes[which] == 0;
            bytes[which] = step;
            assert_int_equal(
                cm_holdings_put(
                    &self, &(struct cm_holding){.key = key, .bytes = step}),
                CM_OK);
        }
        else {
            assert_true(cm_holdings_remove(&self, key, &gone)
                        == (bytes[which] != 0));
            count -= bytes[which] != 0;
            bytes[which] = 0;
        }
        struct cm_holding *found = cm_holdings_find(&self, key);
        assert_true(bytes[which] == (found != NULL ? found->bytes : 0));
    }
    assert_int_equal(self.count, count);
    cm_holdings_release(&self);
}

/* Every other one is taken out during one walk. */
static void
a_walk_may_remove(void **state)
{
    (void)state;
    for (uint64_t keys = 0; keys < 300; keys++) {
        struct cm_holdings self = {0};
        for (uint64_t key = 1; key <= keys; key++) {
            assert_int_equal(
                cm_holdings_put(&self, &(struct cm_holding){.key = key << 9}),
                CM_OK);
        }
        struct cm_holding *at;
        size_t place = 0;
        while ((at = cm_holdings_next(&self, &place)) != NULL) {
            if ((at->key >> 9) % 2 == 0) {
                assert_true(cm_holdings_remove(&self, at->key, NULL));
                place--;
            }
        }
        assert_int_equal(self.count, (keys + 1) / 2);
        for (uint64_t key = 1; key <= keys; key++) {
            assert_true((cm_holdings_find(&self, key << 9) != NULL)
                        == (key % 2 == 1));
        }
        cm_holdings_release(&self);
    }
}

static void
is_bounded(void **state)
{
    (void)state;
    struct cm_holdings self = {0};
    enum cm_status status = CM_OK;
    uint64_t key = 0;
    while (status == CM_OK && key < 2000000) {
        status = cm_holdings_put(&self, &(struct cm_holding){.key = ++key});
    }
    assert_int_equal(status, CM_LIMIT);
    assert_int_equal(self.count, key - 1);
    assert_int_equal(cm_holdings_put(&self, &(struct cm_holding){.key = 1}),
                     CM_OK);
    cm_holdings_release(&self);
}

static enum cm_status
attempt(void *context)
{
    (void)context;
    struct cm_holdings self = {0};
    enum cm_status status = CM_OK;
    for (uint64_t key = 1; key <= 200 && status == CM_OK; key++) {
        status = cm_holdings_put(&self, &(struct cm_holding){.key = key});
        assert_int_equal(self.count, status == CM_OK ? key : key - 1);
    }
    cm_holdings_release(&self);
    return status;
}

static void
each_allocation_fails(void **state)
{
    (void)state;
    cm_fail_each(attempt, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_put),
        cmocka_unit_test(agrees_with_an_array),
        cmocka_unit_test(a_walk_may_remove),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
