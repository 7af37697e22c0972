/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/growth_anew.h"
#include "../detector/growth_items.h"
#include "fail_each.h"

struct job {
    struct cm_blocks *blocks;
    struct cm_growth growth;
};

static struct job
begin(void)
{
    struct job job = {.blocks = cm_blocks_new(100)};
    job.growth.table.max_series = 100;
    return job;
}

static void
end(struct job *job)
{
    cm_growth_release(&job->growth);
    cm_blocks_free(job->blocks);
}

/* From now on the site has a series. */
static void
see(struct job *job)
{
    cm_blocks_event(job->blocks, &(struct cm_event){.kind = CM_EVENT_ALLOCATE,
                                                    .address = 0x7f0000000000,
                                                    .bytes = 1 << 20,
                                                    .site = {7}});
    cm_growth_boundary(&job->growth, job->blocks, 0, 1);
    cm_growth_judge(&job->growth, 1);
}

static enum cm_growth_items
hangs(struct job *job, uint64_t items, uint64_t hung, int64_t iterations)
{
    int64_t lasts;
    struct cm_growth_fill fill = {items, hung, iterations, true};
    struct cm_site_id site = {7};
    return cm_growth_note_items(&job->growth, 0, site, &fill, &lasts);
}

static void
knows_whether_there_are_more_items(void **state)
{
    (void)state;
    struct job job = begin();
    /* It has no series yet. */
    assert_int_equal(hangs(&job, 90, 5, 3), CM_GROWTH_MORE_ITEMS);
    see(&job);
    assert_int_equal(hangs(&job, 90, 5, 4), CM_GROWTH_NEW_ITEMS);
    assert_int_equal(hangs(&job, 90, 6, 4), CM_GROWTH_NEW_ITEMS);
    assert_int_equal(hangs(&job, 90, 6, 5), CM_GROWTH_SAME_ITEMS);
    assert_int_equal(hangs(&job, 90, 90, 6), CM_GROWTH_SAME_ITEMS);
    assert_int_equal(hangs(&job, 91, 7, 7), CM_GROWTH_MORE_ITEMS);
    /* Fewer are looked at anew. */
    assert_int_equal(hangs(&job, 80, 7, 8), CM_GROWTH_NEW_ITEMS);
    assert_int_equal(hangs(&job, 90, 9, 9), CM_GROWTH_MORE_ITEMS);
    assert_int_equal(hangs(&job, 0, 9, 10), CM_GROWTH_MORE_ITEMS);
    assert_int_equal(hangs(&job, 80, 9, 11), CM_GROWTH_SAME_ITEMS);
    assert_int_equal(hangs(&job, 80, 93, 12), CM_GROWTH_MORE_ITEMS);
    end(&job);
}

/* Where each has it, it is the items that grow, seen once or again. */
static void
knows_when_each_item_has_it(void **state)
{
    (void)state;
    struct job job = begin();
    see(&job);
    assert_int_equal(hangs(&job, 9, 9, 9), CM_GROWTH_MORE_ITEMS);
    assert_int_equal(hangs(&job, 9, 9, 10), CM_GROWTH_MORE_ITEMS);
    assert_int_equal(hangs(&job, 11, 10, 11), CM_GROWTH_MORE_ITEMS);
    end(&job);
}

/* An item every few iterations: none came, and nothing hangs from one more. */
static void
waits_until_more_hangs_there(void **state)
{
    (void)state;
    struct job job = begin();
    see(&job);
    int64_t lasts;
    struct cm_site_id site = {7};
    struct cm_growth_fill fill = {90, 5, 6, false}; /* within the seventh */
    assert_int_equal(cm_growth_note_items(&job.growth, 0, site, &fill, &lasts),
                     CM_GROWTH_NEW_ITEMS);
    fill.hung = 6;
    fill.iterations = 7; /* the end of that */
    assert_int_equal(cm_growth_note_items(&job.growth, 0, site, &fill, &lasts),
                     CM_GROWTH_NEW_ITEMS);
    fill.hung = 5;
    fill.iterations = 9;
    assert_int_equal(cm_growth_note_items(&job.growth, 0, site, &fill, &lasts),
                     CM_GROWTH_NEW_ITEMS);
    assert_int_equal(lasts, 2);
    assert_int_equal(
        cm_growth_note_items(&job.growth, 1, site, &fill, &lasts),
        CM_GROWTH_MORE_ITEMS); /* of another device nothing is known */
    end(&job);
}

static bool
more(struct job *job, uint64_t items, uint64_t hung, int64_t iterations)
{
    int64_t lasts;
    struct cm_growth_fill fill = {items, hung, iterations, true};
    struct cm_site_id site = {7};
    return cm_growth_note_each(&job->growth, 0, site, &fill, &lasts);
}

static void
knows_items_that_get_more_alone(void **state)
{
    (void)state;
    struct job job = begin();
    assert_false(more(&job, 8, 16, 1)); /* it has no series yet */
    see(&job);
    assert_false(more(&job, 8, 16, 8));
    assert_false(more(&job, 15, 30, 15));
    assert_true(more(&job, 16, 32, 16));
    assert_true(more(&job, 100, 199, 100)); /* the newest has one yet */
    assert_false(more(&job, 0, 0, 101));    /* they hang elsewhere now */
    assert_true(more(&job, 102, 204, 102));
    /* Fewer are looked at anew. */
    assert_false(more(&job, 7, 14, 103));
    assert_true(more(&job, 15, 30, 111));
    end(&job);
}

static void
knows_items_that_each_have_more(void **state)
{
    (void)state;
    struct job job = begin();
    see(&job);
    assert_false(more(&job, 30, 60, 20));
    assert_false(more(&job, 30, 90, 30));   /* there are no more */
    assert_false(more(&job, 60, 190, 40));  /* and of more each has more, */
    assert_false(more(&job, 120, 190, 50)); /* or less */
    assert_false(more(&job, 170, 269, 60)); /* not half as many more */
    assert_true(more(&job, 180, 285, 70));
    end(&job);
}

static void
tells_since_when_each_has_as_much(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_growth_fill fill = {10, 20, 10, true};
    struct cm_site_id site = {7};
    int64_t lasts;
    see(&job);
    (void)cm_growth_note_each(&job.growth, 0, site, &fill, &lasts);
    assert_int_equal(lasts, 0);
    fill = (struct cm_growth_fill){12, 24, 15, true};
    (void)cm_growth_note_each(&job.growth, 0, site, &fill, &lasts);
    assert_int_equal(lasts, 5);
    fill = (struct cm_growth_fill){12, 40, 18, true};
    (void)cm_growth_note_each(&job.growth, 0, site, &fill, &lasts);
    assert_int_equal(lasts, 0);
    assert_false(cm_growth_note_each(&job.growth, 1, site, &fill, &lasts));
    end(&job);
}

static void
remembers_the_end_that_the_look_before_knew(void **state)
{
    (void)state;
    struct job job = begin();
    struct cm_site_id site = {7};
    assert_false(cm_growth_note_bound(&job.growth, 0, site, true));
    see(&job);
    assert_false(cm_growth_note_bound(&job.growth, 0, site, true));
    assert_true(cm_growth_note_bound(&job.growth, 0, site, false));
    assert_false(cm_growth_note_bound(&job.growth, 0, site, true));
    cm_growth_begin_anew(&job.growth, 1, true);
    assert_false(cm_growth_note_bound(&job.growth, 0, site, false));
    end(&job);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_whether_there_are_more_items),
        cmocka_unit_test(knows_when_each_item_has_it),
        cmocka_unit_test(waits_until_more_hangs_there),
        cmocka_unit_test(knows_items_that_get_more_alone),
        cmocka_unit_test(knows_items_that_each_have_more),
        cmocka_unit_test(tells_since_when_each_has_as_much),
        cmocka_unit_test(remembers_the_end_that_the_look_before_knew),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
