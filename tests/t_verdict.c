/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Besides the cases: thousands of simulated series.  The thresholds were
 * chosen on one half of them with `t_verdict fit`; the other half is judged. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../detector/iterations.h"
#include "growth_fit.h"

enum { MIB = 1 << 20, SERIES = 100 };

static struct cm_verdict_result
verdict_of(const struct cm_series *series, int64_t now)
{
    struct cm_verdict_result result;
    cm_verdict(series, now, &cm_verdict_defaults, &result);
    return result;
}

/* `height` more in each iteration after `start`, until `end`. */
static void
add_line(struct cm_series *series, int64_t from, int64_t to, int64_t start,
         int64_t end, uint64_t height)
{
    for (int64_t i = from; i <= to; i++) {
        int64_t after = (i < end ? i : end) - start;
        uint64_t things = after > 0 ? (uint64_t)after : 0;
        cm_series_add(series, i, 1 + 2 * things, 64 * MIB + things * height);
    }
}

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-6 * fabs(b))

static void
says_ok_of_what_is_flat_or_empty(void **state)
{
    (void)state;
    struct cm_series series = {0};
    assert_int_equal(verdict_of(&series, 0).verdict, CM_VERDICT_OK);
    for (int64_t i = 0; i < 1000; i++) {
        cm_series_add(&series, i, 1, 64 * MIB);
        struct cm_verdict_result result = verdict_of(&series, i);
        assert_int_equal(result.verdict, CM_VERDICT_OK);
        assert_true(result.bytes_per_iteration == 0);
    }
}

/* Quiet first, told within ten iterations, surer from then on. */
static void
tell_leak(int64_t start)
{
    struct cm_series series = {0};
    struct cm_verdict_result growing = {0}, told = {0}, later;
    int64_t warmup = cm_verdict_defaults.warmup, i = 0;
    for (; i < start + 50 && told.verdict != CM_VERDICT_LEAK; i++) {
        add_line(&series, i, i, start, INT64_MAX, 4 * MIB);
        if (cm_series_suspect(&series, i)) {
            told = verdict_of(&series, i);
        }
        if (told.verdict == CM_VERDICT_GROWING) {
            growing = told;
        }
    }
    assert_in_range(i - 1 - start, 5, 10);
    assert_int_equal(growing.verdict, CM_VERDICT_GROWING);
    assert_int_equal(told.since_iteration, start > warmup ? start : warmup);
    assert_near(told.bytes_per_iteration, 4.0 * MIB);
    assert_near(told.count_per_iteration, 2.0);
    add_line(&series, i, start + 2000, start, INT64_MAX, 4 * MIB);
    later = verdict_of(&series, start + 2000);
    assert_int_equal(later.verdict, CM_VERDICT_LEAK);
    assert_near(later.bytes_per_iteration, 4.0 * MIB);
    assert_true(growing.confidence < told.confidence);
    assert_true(told.confidence < later.confidence);
}

static void
tells_a_leak_within_ten_iterations(void **state)
{
    (void)state;
    tell_leak(0);
    tell_leak(3);
    tell_leak(500);
    tell_leak(20000);
}

static void
takes_back_what_stopped(void **state)
{
    (void)state;
    struct cm_series series = {0};
    add_line(&series, 0, 200, 5, 200, MIB);
    assert_int_equal(verdict_of(&series, 200).verdict, CM_VERDICT_LEAK);
    add_line(&series, 201, 206, 5, 200, MIB);
    assert_int_equal(verdict_of(&series, 206).verdict, CM_VERDICT_SETTLED);
    add_line(&series, 207, 5000, 5, 200, MIB);
    assert_int_equal(verdict_of(&series, 5000).verdict, CM_VERDICT_SETTLED);
    assert_false(cm_series_suspect(&series, 5000));
}

/* A list that is emptied each epoch is told in the first one and never again;
 * what then grows for ten times as long is a leak. */
static void
learns_from_what_was_taken_back(void **state)
{
    (void)state;
    enum { EPOCH = 100, EPOCHS = 30 };
    struct cm_series series = {0};
    bool told = false;
    for (int64_t i = 0; i < EPOCH * EPOCHS; i++) {
        cm_series_add(&series, i, 1, (64 + (uint64_t)i % EPOCH) * MIB);
        enum cm_verdict verdict = verdict_of(&series, i).verdict;
        told |= verdict == CM_VERDICT_LEAK;
        assert_true(i < EPOCH || verdict != CM_VERDICT_LEAK);
    }
    assert_true(told);
    for (int64_t i = 0; i < 12 * EPOCH; i++) {
        cm_series_add(&series, EPOCH * EPOCHS + i, 1,
                      (64 + (uint64_t)i) * MIB);
    }
    assert_int_equal(verdict_of(&series, EPOCH * (EPOCHS + 12)).verdict,
                     CM_VERDICT_LEAK);
}

static void
does_not_warn_of_what_has_a_bound(void **state)
{
    (void)state;
    struct cm_series series = {0};
    struct cm_verdict_rules rules = cm_verdict_defaults;
    struct cm_verdict_result result;
    rules.bounded = true;
    for (int64_t i = 0; i < 500; i++) {
        add_line(&series, i, i, 0, INT64_MAX, MIB);
        cm_verdict(&series, i, &rules, &result);
        assert_int_not_equal(result.verdict, CM_VERDICT_LEAK);
    }
    assert_int_equal(result.verdict, CM_VERDICT_GROWING);
    assert_near(result.bytes_per_iteration, 1.0 * MIB);
}

/* 512 bytes an iteration warn when they are a mebibyte, not before. */
static void
waits_until_it_is_worth_a_warning(void **state)
{
    (void)state;
    struct cm_series series = {0};
    int64_t told = -1;
    for (int64_t i = 0; i < 4000 && told < 0; i++) {
        add_line(&series, i, i, 0, INT64_MAX, 512);
        if (verdict_of(&series, i).verdict == CM_VERDICT_LEAK) {
            told = i;
        }
    }
    assert_in_range(told, 2048, 2200);
}

static void
finds_where_growth_began(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 0; i < 3000; i++) { /* a step every 40, from 1000 on */
        uint64_t steps = i > 1000 ? (uint64_t)(i - 1000) / 40 : 0;
        cm_series_add(&series, i, 1 + steps, (64 + 8 * steps) * MIB);
    }
    struct cm_verdict_result result = verdict_of(&series, 2999);
    assert_int_equal(result.verdict, CM_VERDICT_LEAK);
    assert_in_range(result.since_iteration, 1000 - 128, 1000 + 128);
    assert_true(fabs(result.bytes_per_iteration - 0.2 * MIB) < 0.01 * MIB);
    assert_true(fabs(result.count_per_iteration - 0.025) < 0.002);
}

static void
calls_state_that_came_late_settled(void **state)
{
    (void)state;
    struct cm_series series = {0};
    cm_series_add(&series, 50, 3, 64 * MIB);
    assert_int_equal(verdict_of(&series, 60).verdict, CM_VERDICT_SETTLED);
    assert_false(cm_series_suspect(&series, 60));
}

/* A MiB in each of the first slices: eight in each of the last ones. */
static void
grows_since_the_beginning_though_slices_get_longer(void **state)
{
    (void)state;
    struct cm_series series = {0};
    struct cm_verdict_rules rules = cm_verdict_defaults;
    struct cm_verdict_result result;
    rules.slices = true;
    for (int64_t i = 1; i < 300; i++) {
        uint64_t held = (uint64_t)cm_iterations_clock((double)i);
        cm_series_add(&series, i, held, held * MIB);
        cm_verdict(&series, i, &rules, &result);
        if (i >= 16) {
            double slice = exp2((double)(i / 32));
            assert_int_equal(result.verdict, CM_VERDICT_LEAK);
            assert_true(fabs(result.bytes_per_iteration - slice * MIB)
                        < 0.05 * slice * MIB);
            assert_true(fabs(result.count_per_iteration - slice)
                        < 0.05 * slice);
        }
        if (i == 124) {
            assert_in_range(result.since_iteration, 1, 4);
        }
    }
}

static void
calls_a_leak_that_lingers_a_leak(void **state)
{
    (void)state;
    struct cm_series series = {0};
    for (int64_t i = 0; i < 40; i++) {
        cm_series_note_forward(&series, i, (uint64_t)i * 4 * MIB);
        add_line(&series, i, i, 0, INT64_MAX, 4 * MIB);
    }
    assert_int_equal(verdict_of(&series, 39).verdict, CM_VERDICT_LEAK);
}

/* ---- hostile numbers */

static void
answers_whatever_the_numbers(void **state)
{
    (void)state;
    static struct growth_case random = {.random = 5};
    for (int i = 0; i < 3000; i++) {
        struct cm_series series = {0};
        struct cm_verdict_rules rules = cm_verdict_defaults;
        struct cm_verdict_result result;
        int64_t now = (int64_t)growth_bits(&random);
        uint64_t mask = UINT64_MAX >> growth_pick(&random, 0, 63);
        for (int k = growth_pick(&random, 0, 120); k > 0; k--) {
            uint64_t step = growth_bits(&random) & mask;
            now = (int64_t)((uint64_t)now + step);
            cm_series_add(&series, now, growth_bits(&random) & mask,
                          growth_bits(&random) & mask);
            cm_series_note_forward(&series, now, growth_bits(&random) & mask);
        }
        rules.warmup = (int64_t)growth_bits(&random);
        rules.only_replaced = growth_pick(&random, 0, 1);
        rules.slices = growth_pick(&random, 0, 1);
        rules.sliced =
            growth_pick(&random, 0, 1) ? (int64_t)growth_bits(&random) : 0;
        now = growth_pick(&random, 0, 1) ? now : (int64_t)growth_bits(&random);
        (void)cm_series_suspect(&series, now);
        cm_verdict(&series, now, &rules, &result);
        assert_true(result.confidence >= 0 && result.confidence <= 1);
        assert_true(isfinite(result.bytes_per_iteration));
        assert_true(isfinite(result.count_per_iteration));
        assert_string_not_equal(cm_verdict_text(result.verdict), "unknown");
    }
}

static void
has_a_word_for_each_verdict(void **state)
{
    (void)state;
    assert_string_equal(cm_verdict_text(CM_VERDICT_OK), "ok");
    assert_string_equal(cm_verdict_text(CM_VERDICT_GROWING), "growing");
    assert_string_equal(cm_verdict_text(CM_VERDICT_LEAK), "leak");
    assert_string_equal(cm_verdict_text(CM_VERDICT_LINGERING), "lingering");
    assert_string_equal(cm_verdict_text(CM_VERDICT_SETTLED), "settled");
    assert_string_equal(cm_verdict_text((enum cm_verdict)99), "unknown");
}

/* ---- simulations */

enum { SITES = 40, PROGRAMS = 20 };

struct program {
    struct growth_case sites[SITES];
    bool leaky[SITES], told[SITES];
    struct cm_series_table series;
};

static void
make_program(struct program *self, int leaks, struct growth_case *pick)
{
    for (int site = 0; site < SITES; site++) {
        enum growth_class class;
        size_t kind;
        do {
            kind = (size_t)growth_pick(pick, 0, GROWTH_KINDS - 1);
            class = growth_kinds[kind].class;
        } while (class == GROWTH_RAMP
                 || (class != GROWTH_GOOD) != (site < leaks));
        growth_make(&self->sites[site], kind, growth_bits(pick) >> 8);
        self->leaky[site] = site < leaks;
        self->told[site] = false;
    }
    self->series = (struct cm_series_table){.max_series = SITES};
}

/* As at a boundary: what changed is added, what is suspect is judged. */
static void
run_boundary(struct program *self, int t)
{
    for (uint32_t site = 0; site < SITES; site++) {
        const struct growth_case *made = &self->sites[site];
        struct cm_verdict_rules rules = cm_verdict_defaults;
        struct cm_verdict_result result;
        struct cm_series *series;
        assert_int_equal(cm_series_table_get(&self->series, site, 0, &series),
                         CM_OK);
        if (t == 0 || growth_bytes(made, t) != growth_bytes(made, t - 1)) {
            cm_series_add(series, t, 1, growth_bytes(made, t));
        }
        if (!self->told[site] && cm_series_suspect(series, t)) {
            rules.bounded = made->bounded;
            cm_verdict(series, t, &rules, &result);
            self->told[site] = result.verdict == CM_VERDICT_LEAK;
        }
    }
}

/* Programs of forty sites, of which three to six leak, or none. */
static void
finds_several_leaks_at_once(void **state)
{
    (void)state;
    static struct program program;
    struct growth_case pick = {.random = 11};
    int leaks = 0, missed = 0, good = 0, alarms = 0;
    for (int i = 0; i < PROGRAMS; i++) {
        make_program(&program, i % 4 ? growth_pick(&pick, 3, 6) : 0, &pick);
        for (int t = 0; t < GROWTH_ITERATIONS; t++) {
            run_boundary(&program, t);
        }
        for (int site = 0; site < SITES; site++) {
            leaks += program.leaky[site];
            missed += program.leaky[site] && !program.told[site];
            good += !program.leaky[site];
            alarms += !program.leaky[site] && program.told[site];
        }
        cm_series_table_release(&program.series);
    }
    printf("# %d programs: %d leaks, %d missed; %d good sites, %d told\n",
           PROGRAMS, leaks, missed, good, alarms);
    assert_true(missed * 100 <= leaks * 3);
    assert_true(alarms * 100 <= good);
}

static struct growth_total held_out; /* by the first of these two tests */

static void
judges_series_it_was_not_made_for(void **state)
{
    (void)state;
    static struct growth_total chosen;
    growth_run(&cm_verdict_defaults, 0, SERIES, &chosen);
    growth_print(&chosen, "the half that the thresholds were chosen on");
    growth_run(&cm_verdict_defaults, 1, SERIES, &held_out);
    growth_print(&held_out, "held out");
    assert_true(held_out.precision >= 0.99);
    assert_true(held_out.recall >= 0.97);
    assert_in_range(held_out.steady_delay, 1, 10);
}

/* What no series can tell is told, and taken back soon after it ended. */
static void
takes_back_every_ramp(void **state)
{
    (void)state;
    struct growth_row *row = &held_out.rows[GROWTH_KINDS - 1];
    assert_int_equal(growth_kinds[GROWTH_KINDS - 1].class, GROWTH_RAMP);
    assert_int_equal(row->series, SERIES);
    assert_int_equal(row->settled, row->series);
    assert_in_range(growth_median(row->delays, row->told), 0, 10);
    assert_true(row->delays[row->told - 1] <= 20);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_ok_of_what_is_flat_or_empty),
        cmocka_unit_test(tells_a_leak_within_ten_iterations),
        cmocka_unit_test(takes_back_what_stopped),
        cmocka_unit_test(learns_from_what_was_taken_back),
        cmocka_unit_test(does_not_warn_of_what_has_a_bound),
        cmocka_unit_test(waits_until_it_is_worth_a_warning),
        cmocka_unit_test(finds_where_growth_began),
        cmocka_unit_test(calls_state_that_came_late_settled),
        cmocka_unit_test(grows_since_the_beginning_though_slices_get_longer),
        cmocka_unit_test(calls_a_leak_that_lingers_a_leak),
        cmocka_unit_test(answers_whatever_the_numbers),
        cmocka_unit_test(has_a_word_for_each_verdict),
        cmocka_unit_test(finds_several_leaks_at_once),
        cmocka_unit_test(judges_series_it_was_not_made_for),
        cmocka_unit_test(takes_back_every_ramp),
    };
    if (argc > 1 && strcmp(argv[1], "fit") == 0) {
        return growth_fit(SERIES);
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
