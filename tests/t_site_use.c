/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/site_use.h"

#include "fail_each.h"

#define SITE(number) ((struct cm_site_id){number})

static void
knows_what_a_site_holds(void **state)
{
    (void)state;
    struct cm_site_uses uses = {0};
    cm_site_uses_add(&uses, SITE(3), 100);
    cm_site_uses_add(&uses, SITE(3), 50);
    cm_site_uses_add(&uses, SITE(4000), 1);
    cm_site_uses_subtract(&uses, SITE(3), 100);
    assert_int_equal(cm_site_uses_of(&uses, SITE(3)).bytes, 50);
    assert_int_equal(cm_site_uses_of(&uses, SITE(3)).count, 1);
    assert_int_equal(cm_site_uses_of(&uses, SITE(4000)).bytes, 1);
    assert_int_equal(cm_site_uses_of(&uses, SITE(1)).count, 0);
    assert_int_equal(cm_site_uses_of(&uses, SITE(4000000)).count, 0);
    cm_site_uses_release(&uses);
}

static void
never_goes_below_nothing(void **state)
{
    (void)state;
    struct cm_site_uses uses = {0};
    cm_site_uses_subtract(&uses, SITE(3), 100);
    assert_int_equal(cm_site_uses_of(&uses, SITE(3)).bytes, 0);
    cm_site_uses_add(&uses, SITE(3), 10);
    cm_site_uses_subtract(&uses, SITE(3), 100);
    assert_int_equal(cm_site_uses_of(&uses, SITE(3)).bytes, 0);
    assert_int_equal(cm_site_uses_of(&uses, SITE(3)).count, 0);
    cm_site_uses_release(&uses);
}

static void
tells_each_change_once(void **state)
{
    (void)state;
    struct cm_site_uses uses = {0};
    struct cm_site_use *changes;
    size_t count;
    for (int i = 0; i < 10; i++) {
        cm_site_uses_add(&uses, SITE(3), 1);
        cm_site_uses_add(&uses, SITE(5), 1);
        cm_site_uses_subtract(&uses, SITE(5), 1);
    }
    assert_int_equal(cm_site_uses_take(&uses, &changes, &count), CM_OK);
    assert_int_equal(count, 2);
    assert_int_equal(changes[0].site.index, 3);
    assert_int_equal(changes[0].count, 10);
    assert_int_equal(changes[1].count, 0);
    cm_free(changes);
    assert_int_equal(cm_site_uses_take(&uses, &changes, &count), CM_OK);
    assert_int_equal(count, 0);
    cm_free(changes);
    cm_site_uses_add(&uses, SITE(5), 7);
    assert_int_equal(cm_site_uses_take(&uses, &changes, &count), CM_OK);
    assert_int_equal(count, 1);
    assert_int_equal(changes[0].bytes, 7);
    cm_free(changes);
    cm_site_uses_release(&uses);
}

static void
refuses_a_number_that_no_site_has(void **state)
{
    (void)state;
    struct cm_site_uses uses = {0};
    cm_site_uses_add(&uses, SITE(UINT32_MAX), 1);
    assert_int_equal(uses.lost, 1);
    assert_int_equal(uses.capacity, 0);
    cm_site_uses_release(&uses);
}

static enum cm_status
everything(void *context)
{
    (void)context;
    struct cm_site_uses uses = {0};
    struct cm_site_use *changes = NULL;
    size_t count;
    for (uint32_t i = 1; i < 3000; i++) {
        cm_site_uses_add(&uses, SITE(i), 1);
    }
    enum cm_status status = cm_site_uses_take(&uses, &changes, &count);
    if (status == CM_OK && uses.lost == 0) {
        assert_int_equal(count, 2999);
    }
    status = uses.lost != 0 ? CM_NO_MEMORY : status;
    cm_free(changes);
    cm_site_uses_release(&uses);
    return status;
}

static void
counts_what_it_had_no_memory_for(void **state)
{
    (void)state;
    cm_fail_each(everything, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_what_a_site_holds),
        cmocka_unit_test(never_goes_below_nothing),
        cmocka_unit_test(tells_each_change_once),
        cmocka_unit_test(refuses_a_number_that_no_site_has),
        cmocka_unit_test(counts_what_it_had_no_memory_for),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
