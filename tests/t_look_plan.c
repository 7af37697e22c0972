/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../detector/look_plan.h"

#define MS UINT64_C(1000000)

static struct cm_look_plan
plan(void)
{
    return (struct cm_look_plan){
        .bytes = 1000, .every = 10, .run_for_look = 100, .begun_ns = 500 * MS};
}

static void
is_due_after_so_many_bytes(void **state)
{
    (void)state;
    struct cm_look_plan self = plan();
    assert_false(cm_look_plan_due(&self, 999));
    assert_true(cm_look_plan_due(&self, 1000));
    cm_look_plan_looked(&self, MS, 1500);
    assert_false(cm_look_plan_due(&self, 2499));
    assert_true(cm_look_plan_due(&self, 2500));
    cm_look_plan_collected(&self, MS, 2500); /* it has seen everything */
    assert_false(cm_look_plan_due(&self, 3499));
    self.bytes = 0;
    assert_false(cm_look_plan_due(&self, UINT64_MAX));
}

static void
is_due_each_so_many_iterations(void **state)
{
    (void)state;
    struct cm_look_plan self = plan();
    assert_false(cm_look_plan_due_after(&self, 0));
    assert_false(cm_look_plan_due_after(&self, 9));
    assert_true(cm_look_plan_due_after(&self, 10));
    assert_false(cm_look_plan_due_after(&self, -10));
    self.every = 0;
    assert_false(cm_look_plan_due_after(&self, 10));
}

/* Whatever the looks cost, and however they are wanted. */
static void
takes_no_more_than_its_share(void **state)
{
    (void)state;
    struct cm_look_plan self = plan();
    uint64_t now = self.begun_ns, spent = 0, longest = 0;
    cm_look_plan_collected(&self, 5 * MS, 0);
    for (int i = 0; i < 100000; i++) {
        now += MS;
        if (cm_look_plan_affords(&self, now)) {
            uint64_t took = (uint64_t)(1 + i % 7) * MS;
            cm_look_plan_looked(&self, took, 0);
            now += took;
            spent += took;
            longest = took > longest ? took : longest;
            /* One look may cost more than the one before. */
            assert_true(spent <= (now - self.begun_ns) / 100 + 7 * MS);
        }
    }
    assert_true(self.spent_ns == spent && self.longest_ns == longest);
    assert_true(self.count > 100 && self.skipped <= self.count + 1);
    assert_true(spent * 100 <= now - self.begun_ns);
}

static void
knows_the_first_price_from_a_collection(void **state)
{
    (void)state;
    struct cm_look_plan self = plan();
    cm_look_plan_collected(&self, 10 * MS, 0);
    assert_false(cm_look_plan_affords(&self, self.begun_ns + 999 * MS));
    assert_false(cm_look_plan_affords(&self, self.begun_ns + 999 * MS));
    assert_int_equal(self.skipped, 1);
    assert_true(cm_look_plan_affords(&self, self.begun_ns + 1000 * MS));
    struct cm_look_plan fresh = plan(); /* no collection ever came */
    assert_true(cm_look_plan_affords(&fresh, fresh.begun_ns));
    assert_true(cm_look_plan_affords(&fresh, 0)); /* a clock that went back */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_due_after_so_many_bytes),
        cmocka_unit_test(is_due_each_so_many_iterations),
        cmocka_unit_test(takes_no_more_than_its_share),
        cmocka_unit_test(knows_the_first_price_from_a_collection),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
