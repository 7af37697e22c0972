/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/iterations.h"
#include "fail_each.h"

#define SECOND UINT64_C(1000000000)

/* How many iterations the optimizers A, B, ... end in this order. */
static int64_t
after(struct cm_iterations *self, const char *steps)
{
    int64_t before = self->done;
    for (; *steps != '\0'; steps++) {
        int64_t done = self->done;
        bool ended = cm_iterations_optimizer(self, (uintptr_t)*steps);
        assert_int_equal(self->done, done + ended);
    }
    return self->done - before;
}

static void
ends_with_each_step_of_one_optimizer(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    assert_int_equal(after(&iterations, "AAAAA"), 5);
    assert_int_equal(cm_iterations_steps(&iterations, 'A'), 5);
    assert_int_equal(cm_iterations_steps(&iterations, 'B'), 0);
    assert_int_equal(iterations.by, CM_BY_OPTIMIZER);
}

static void
counts_several_optimizers_once(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    after(&iterations, "AB"); /* not known yet that there are two */
    assert_int_equal(after(&iterations, "ABABABAB"), 4);
    assert_int_equal(after(&iterations, "BABA"), 2);
}

/* Not those that are done with: the last trial's, a phase's. */
static void
are_several_where_they_go_on(void **state)
{
    (void)state;
    struct cm_iterations two = {0}, sweep = {0}, phases = {0};
    after(&two, "AB");
    assert_false(cm_iterations_are_several(&two)); /* not known yet */
    after(&two, "AB");
    assert_true(cm_iterations_are_several(&two));
    after(&sweep, "AAABBBCCC");
    assert_false(cm_iterations_are_several(&sweep));
    after(&phases, "AABBBB");
    assert_false(cm_iterations_are_several(&phases));
    after(&phases, "A");
    assert_true(cm_iterations_are_several(&phases));
}

/* What is cleared before the first one's part is gone by then. */
static void
ends_where_the_last_of_them_steps(void **state)
{
    (void)state;
    struct cm_iterations two = {0}, critic = {0}, three = {0};
    after(&two, "AB");
    assert_int_equal(after(&two, "A"), 0);
    assert_int_equal(after(&two, "B"), 1);
    after(&critic, "DDDDDG");
    assert_int_equal(after(&critic, "DDDDD"), 0);
    assert_int_equal(after(&critic, "G"), 1);
    after(&three, "ABC");
    assert_int_equal(after(&three, "AB"), 0);
    assert_int_equal(after(&three, "C"), 1);
}

static void
counts_a_critic_with_its_generator(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    after(&iterations, "DDDDDGDDDDDG");
    assert_int_equal(after(&iterations, "DDDDDGDDDDDGDDDDDG"), 3);
}

static void
forgets_an_optimizer_that_is_done_with(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    after(&iterations, "ABABAB");
    assert_int_equal(after(&iterations, "BBBBBBBBBBBBBBBB"), 1);
    assert_int_equal(after(&iterations, "BBBB"), 4);
    assert_int_equal(after(&iterations, "CCCCCCCCCCCCCCCCCCC"), 3);
}

#define TWENTY(one)                                                           \
    one one one one one one one one one one one one one one one one one one   \
        one one

/* That the second trial has taken over for good is known when it has come far;
 * from then on each step is an iteration, as it was in the first one. */
static void
counts_each_step_of_a_long_trial(void **state)
{
    (void)state;
    struct cm_iterations sweep = {0}, turns = {0};
    assert_int_equal(after(&sweep, TWENTY("A")), 20);
    assert_int_equal(after(&sweep, TWENTY("B")), 4);
    assert_int_equal(after(&sweep, TWENTY("C") TWENTY("D")), 40);
    after(&turns, TWENTY("A") TWENTY("B"));
    assert_int_equal(after(&turns, TWENTY("A") TWENTY("B")), 40);
}

/* The third phase of a program trains what the second one did, and more; who is
 * seldom beside one that steps often was not taken over from. */
static void
lets_a_late_one_in_once_it_has_come(void **state)
{
    (void)state;
    struct cm_iterations phases = {0}, critic = {0};
    after(&phases, TWENTY("A") TWENTY("B") "CB");
    assert_int_equal(after(&phases, "CBCBCBCB"), 4);
    after(&critic, TWENTY("D") "G" TWENTY("D") "G");
    assert_false(critic.taken_over);
}

/* A model and an optimizer for each trial of a sweep: one iteration for each
 * trial at least, though the others never step again. */
static void
counts_each_trial_of_a_sweep(void **state)
{
    (void)state;
    struct cm_iterations one = {0}, many = {0}, pairs = {0};
    after(&one, "AAABBB");
    assert_int_equal(after(&one, "CCCDDDEEEFFF"), 4);
    assert_int_equal(after(&one, "GG"), 1);
    after(&many, "AAAAAAAAAAAAAAABBBBBBBBBBBBBBB");
    assert_int_equal(after(&many, "CCCCCCCCCCCCCCCDDDDDDDDDDDDDDD"), 2);
    after(&pairs, "ABABABCDCDCD");
    assert_int_equal(after(&pairs, "EFEFEFGHGHGHIJIJIJ"), 3);
}

/* Cross validation lets go of its models, whose addresses come again; then the
 * models of a search are kept. */
static void
counts_trials_after_some_that_were_let_go(void **state)
{
    (void)state;
    struct cm_iterations sweep = {0}, agents = {0};
    after(&sweep, "AAABBBCCCAAABBBCCCDDDAAABBB");
    assert_true(sweep.come_again);
    after(&sweep, "EEEFFFGGGHHHIIIJJJ");
    assert_false(sweep.come_again);
    assert_int_equal(after(&sweep, "KKKLLLMMMNNNOOOPPP"), 6);
    after(&agents, "AAABBBCCCDDDEEEFFFGGGHHHAAABBBCCCDDDEEEFFFGGGHHH");
    assert_true(agents.come_again);
    after(&agents, "XXX");
    assert_in_range(after(&agents, "AAABBBCCCDDDEEEFFFGGGHHHXXX"
                                   "AAABBBCCCDDDEEEFFFGGGHHHXXX"),
                    1, 3);
    assert_true(agents.come_again);
}

/* Each sample has a model and an optimizer that steps once. */
static void
counts_each_step_that_is_a_new_ones(void **state)
{
    (void)state;
    struct cm_iterations kept = {0}, gone = {0};
    for (uintptr_t i = 1; i <= 100; i++) {
        cm_iterations_optimizer(&kept, i);
        cm_iterations_optimizer(&gone, i > 50 ? 50 + i % 2 : i);
    }
    assert_in_range(kept.done, 75, 80);
    assert_in_range(gone.done, 75, 80);
    assert_false(gone.come_again);
}

/* How many iterations `turns` of so many optimizers end. */
static int64_t
after_turns(struct cm_iterations *self, uintptr_t optimizers, uintptr_t turns)
{
    int64_t before = self->done;
    for (uintptr_t i = 0; i < turns * optimizers; i++) {
        cm_iterations_optimizer(self, 1 + i % optimizers);
    }
    return self->done - before;
}

/* The parameters' own, as they step in the backward pass. */
static void
counts_many_that_come_again(void **state)
{
    (void)state;
    static const uintptr_t many[] = {30, 32, 33, 50, 100, 300, 2000};
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
        struct cm_iterations iterations = {0};
        after_turns(&iterations, many[i], 3);
        assert_int_equal(after_turns(&iterations, many[i], 10), 10);
        assert_true(iterations.come_again);
        assert_true(iterations.parts_told);
    }
}

/* Once, at the first whole one: what ended before, in the first turn, was none. */
static void
knows_that_those_before_were_parts(void **state)
{
    (void)state;
    struct cm_iterations many = {0}, two = {0};
    int times = 0;
    for (uintptr_t i = 0; i < 1000; i++) {
        times += cm_iterations_optimizer(&many, 1 + i % 50) && many.parted;
        after(&two, "AB");
        assert_false(two.parted);
    }
    assert_int_equal(times, 1);
}

/* A phase that trains something else follows. */
static void
counts_who_comes_after_many(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    after_turns(&iterations, 'w', 5);
    after(&iterations, TWENTY("x"));
    assert_int_equal(after(&iterations, "xxx"), 3);
    after_turns(&iterations, 'w', 5);
    for (size_t i = 0; i < 200; i++) {
        after(&iterations, "xyz");
    }
    assert_int_equal(after(&iterations, "xyzxyz"), 2);
}

/* As agents that learn one after the other: none is done with. */
static void
keeps_those_that_take_turns(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    after(&iterations, "AAAABBBBCCCCAAAABBBBCCCC");
    int64_t ends = after(&iterations, "AAAABBBBCCCCAAAABBBBCCCC"
                                      "AAAABBBBCCCCAAAABBBBCCCC");
    assert_in_range(ends, 4, 6); /* now at the first one's, now at another's */
    assert_int_equal(iterations.active_count, 3);
}

static void
bears_more_optimizers_than_it_knows(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    for (uintptr_t i = 1; i < 1000; i++) {
        cm_iterations_optimizer(&iterations, i);
    }
    assert_in_range(iterations.active_count, 1, CM_MOST_OPTIMIZERS);
    assert_in_range(iterations.done, 1, 1000);
}

static void
believes_the_program_above_all(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    after(&iterations, "AA");
    assert_true(cm_iterations_told(&iterations));
    assert_int_equal(after(&iterations, "AAAA"), 0);
    assert_false(cm_iterations_time(&iterations, 100 * SECOND));
    assert_int_equal(iterations.done, 3);
    assert_int_equal(cm_iterations_steps(&iterations, 'A'), 6);
    assert_string_equal(cm_iterations_name(iterations.by), "step");
}

#define TENTH (SECOND / 10)

static void
takes_slices_of_time_where_nobody_steps(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    assert_true(cm_iterations_time_due(&iterations, 5 * SECOND));
    assert_false(cm_iterations_time(&iterations, 5 * SECOND));
    assert_false(cm_iterations_time_due(&iterations, 5 * SECOND + TENTH / 2));
    assert_false(cm_iterations_time(&iterations, 5 * SECOND + TENTH / 2));
    assert_true(cm_iterations_time_due(&iterations, 5 * SECOND + TENTH));
    assert_true(cm_iterations_time(&iterations, 5 * SECOND + TENTH));
    assert_true(cm_iterations_time(&iterations, 60 * SECOND));
    assert_false(cm_iterations_time(&iterations, 60 * SECOND));
    assert_string_equal(cm_iterations_name(iterations.by), "time");
    assert_true(cm_iterations_optimizer(&iterations, 'A'));
    assert_false(cm_iterations_time_due(&iterations, 70 * SECOND));
    assert_false(cm_iterations_time(&iterations, 70 * SECOND));
}

/* In an hour there are some hundred, and ten of them are minutes. */
static void
lengthens_its_slices_with_the_run(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    for (uint64_t now = SECOND; now < 3600 * SECOND; now += TENTH / 2) {
        cm_iterations_time(&iterations, now);
        uint64_t slice = cm_iterations_slice_ns(&iterations);
        assert_in_range(slice, 0, (now - SECOND) / 16 + TENTH);
        assert_in_range(64 * slice, now - SECOND, UINT64_MAX);
        uint64_t clock =
            (uint64_t)(cm_iterations_clock((double)iterations.done) * TENTH);
        assert_in_range(now - SECOND - clock, 0, slice - 1);
    }
    assert_in_range(iterations.done, 300, 500);
}

/* What is emptied at the end of an epoch is no leak until then. */
static void
an_epoch_of_slices_ends_too(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    uint64_t now = SECOND;
    int64_t end = cm_iterations_epoch_end(&iterations, 2);
    while (iterations.done < end) {
        now += SECOND / 10;
        cm_iterations_time(&iterations, now);
    }
    assert_in_range(now / SECOND, 25 * 60, 35 * 60);
    assert_int_equal(cm_iterations_epoch_end(&iterations, end), end + 32);
    cm_iterations_told(&iterations);
    assert_int_equal(cm_iterations_epoch_end(&iterations, 2), 1002);
}

static void
begins_anew_where_something_steps(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    for (uint64_t i = 1; i < 9; i++) {
        cm_iterations_time(&iterations, i * SECOND);
    }
    assert_int_equal(iterations.done, 7);
    assert_true(cm_iterations_optimizer(&iterations, 'A'));
    assert_int_equal(iterations.done, 1);
    assert_true(iterations.anew);
    after(&iterations, "A");
    assert_int_equal(iterations.done, 2);
    assert_false(iterations.anew);
    assert_true(cm_iterations_told(&iterations));
    assert_int_equal(iterations.done, 3);
    assert_false(iterations.anew);
}

/* Whether nothing steps for `idle` seconds, from `at` on, before it is too long,
 * and slices begin ten seconds later. */
static bool
stays(struct cm_iterations *self, uint64_t at, uint64_t idle)
{
    uint64_t over = (at + idle) * SECOND;
    return !cm_iterations_idle(self, over - 1)
           && !cm_iterations_idle(self, over)
           && !cm_iterations_idle(self, over + 10 * SECOND - 1)
           && self->waiting_ns == over
           && cm_iterations_idle(self, over + 10 * SECOND);
}

/* `steps` within so many seconds, the first after so many of the clock. */
static struct cm_iterations
trained(int steps, uint64_t setup, uint64_t seconds)
{
    struct cm_iterations self = {0};
    (void)cm_iterations_time(&self, 1000 * SECOND);
    for (int step = 0; step < steps; step++) {
        uint64_t at =
            (1000 + setup) * SECOND
            + seconds * SECOND * (uint64_t)step / (uint64_t)(steps - 1);
        assert_int_equal(after(&self, "A"), 1);
        assert_false(cm_iterations_idle(&self, at));
    }
    return self;
}

/* Twice as long as training took, or the way to it, a minute at least, two hours
 * at most; and longer while each step may take minutes. */
static void
takes_slices_again_where_nobody_steps_any_more(void **state)
{
    (void)state;
    static const struct {
        int steps;
        uint64_t setup, trained, patience; /* seconds */
    } rows[] = {{20, 0, 2, 60},      {20, 20, 2, 60},   {20, 200, 2, 400},
                {20, 0, 300, 600},   {20, 9, 300, 600}, {20, 0, 7200, 7200},
                {20, 9000, 2, 7200}, {10, 0, 2, 600}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cm_iterations iterations =
            trained(rows[i].steps, rows[i].setup, rows[i].trained);
        assert_true(stays(&iterations, 1000 + rows[i].setup + rows[i].trained,
                          rows[i].patience));
    }
}

/* One number goes on, and an epoch of slices has half an hour from there. */
static void
counts_on_in_slices_and_back(void **state)
{
    (void)state;
    struct cm_iterations iterations = trained(20, 0, 1);
    assert_true(stays(&iterations, 1001, 60));
    assert_false(cm_iterations_idle(&iterations, 2000 * SECOND));
    assert_int_equal(iterations.by, CM_BY_TIME);
    assert_int_equal(iterations.sliced, 20);
    for (uint64_t i = 0; i < 40; i++) {
        cm_iterations_time(&iterations, 2000 * SECOND + i * 2 * TENTH);
        assert_false(iterations.anew);
        assert_int_equal(cm_iterations_slice_ns(&iterations),
                         i < 32 ? TENTH : 2 * TENTH);
    }
    assert_int_equal(iterations.done, 59);
    assert_int_equal(cm_iterations_epoch_end(&iterations, 20), 20 + 9 * 32);
    assert_int_equal(cm_iterations_epoch_end(&iterations, 400), 432);
    assert_true(cm_iterations_optimizer(&iterations, 'A'));
    assert_int_equal(iterations.done, 60);
    assert_int_equal(iterations.sliced, 0);
    assert_false(iterations.anew);
    assert_int_equal(cm_iterations_epoch_end(&iterations, 60), 1060);
}

/* The second evaluation that is as long as the first is known for one; what is
 * longer than hours is none. */
static void
learns_how_long_nothing_steps(void **state)
{
    (void)state;
    struct cm_iterations iterations = trained(20, 0, 1);
    assert_true(stays(&iterations, 1001, 60));
    after(&iterations, "A");
    assert_false(cm_iterations_idle(&iterations, 1301 * SECOND));
    assert_int_equal(iterations.longest_ns, 300 * SECOND);
    assert_true(stays(&iterations, 1301, 602));
    after(&iterations, "A");
    assert_false(cm_iterations_idle(&iterations, 90000 * SECOND));
    assert_true(stays(&iterations, 90000, 7200));
}

/* No tensor was made for five minutes either, as in a notebook; then one is,
 * and a step comes soon. */
static void
waits_for_who_comes_back(void **state)
{
    (void)state;
    struct cm_iterations iterations = trained(20, 0, 1);
    assert_false(cm_iterations_idle(&iterations, 1300 * SECOND));
    assert_false(cm_iterations_idle(&iterations, 1309 * SECOND));
    after(&iterations, "A");
    assert_false(cm_iterations_idle(&iterations, 1311 * SECOND));
    assert_int_equal(iterations.by, CM_BY_OPTIMIZER);
    assert_int_equal(iterations.waiting_ns, 0);
}

/* Who stepped before need not be who steps now; until then it is known. */
static void
forgets_who_stepped_before_slices(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    after(&iterations, "ABABABABABABABABABAB");
    cm_iterations_idle(&iterations, SECOND);
    assert_true(stays(&iterations, 1, 60));
    assert_true(cm_iterations_are_several(&iterations));
    assert_int_equal(after(&iterations, "CCC"), 3);
    assert_false(cm_iterations_are_several(&iterations));
}

/* Each iteration is minutes long, of sixty parts with a step each. */
static void
hears_those_who_step_within_an_iteration(void **state)
{
    (void)state;
    struct cm_iterations iterations = {0};
    after(&iterations, "ABABABABABABABABABAB");
    for (uint64_t i = 0; i < 15; i++) {
        cm_iterations_optimizer(&iterations, 'A');
        assert_false(cm_iterations_idle(&iterations, i * 59 * SECOND));
    }
    assert_int_equal(iterations.by, CM_BY_OPTIMIZER);
}

/* A program that says itself where its iterations end. */
static void
takes_no_slices_of_who_tells(void **state)
{
    (void)state;
    struct cm_iterations iterations = trained(20, 0, 1);
    assert_true(cm_iterations_told(&iterations));
    for (uint64_t hour = 1; hour < 30; hour++) {
        assert_false(cm_iterations_idle(&iterations, hour * 3600 * SECOND));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_with_each_step_of_one_optimizer),
        cmocka_unit_test(counts_several_optimizers_once),
        cmocka_unit_test(are_several_where_they_go_on),
        cmocka_unit_test(ends_where_the_last_of_them_steps),
        cmocka_unit_test(counts_a_critic_with_its_generator),
        cmocka_unit_test(forgets_an_optimizer_that_is_done_with),
        cmocka_unit_test(counts_each_trial_of_a_sweep),
        cmocka_unit_test(counts_each_step_of_a_long_trial),
        cmocka_unit_test(lets_a_late_one_in_once_it_has_come),
        cmocka_unit_test(counts_trials_after_some_that_were_let_go),
        cmocka_unit_test(counts_each_step_that_is_a_new_ones),
        cmocka_unit_test(counts_many_that_come_again),
        cmocka_unit_test(knows_that_those_before_were_parts),
        cmocka_unit_test(counts_who_comes_after_many),
        cmocka_unit_test(keeps_those_that_take_turns),
        cmocka_unit_test(bears_more_optimizers_than_it_knows),
        cmocka_unit_test(believes_the_program_above_all),
        cmocka_unit_test(takes_slices_of_time_where_nobody_steps),
        cmocka_unit_test(lengthens_its_slices_with_the_run),
        cmocka_unit_test(an_epoch_of_slices_ends_too),
        cmocka_unit_test(begins_anew_where_something_steps),
        cmocka_unit_test(takes_slices_again_where_nobody_steps_any_more),
        cmocka_unit_test(counts_on_in_slices_and_back),
        cmocka_unit_test(learns_how_long_nothing_steps),
        cmocka_unit_test(waits_for_who_comes_back),
        cmocka_unit_test(forgets_who_stepped_before_slices),
        cmocka_unit_test(hears_those_who_step_within_an_iteration),
        cmocka_unit_test(takes_no_slices_of_who_tells),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
