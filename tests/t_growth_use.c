/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "heap_builder.h"

#include "../graph/holding.h"
#include "../reports/growth.h"
#include "../reports/growth_use.h"
#include "../reports/leak_json.h"
#include "fail_each.h"

/* A stack that a tensor was made at, and code that holds it. */
static const char stacks[] =
    "code run train.py:10 Trainer.run; code step train.py:30 Trainer.step\n"
    "site z step:31 run:14\n"
    "t Tensor 4096 site=z";

static const int64_t series[][CM_LEAK_SERIES_NUMBERS] = {
    {0, 0, 0}, {2, 1, 4096}, {1, 9, 9}, {3, 2, 8192}};

static void
start(struct cm_leak *leak)
{
    *leak = (struct cm_leak){0};
    assert_int_equal(cm_leak_init(leak), CM_OK);
}

static enum cm_status
set(struct cm_leak *leak, const struct built *built, const char *verdict)
{
    const struct cm_holder_use holder[] = {{"list", "[0]"}, {NULL, NULL}};
    const char *const names[] = {"losses[0]"};
    const struct cm_site *site =
        cm_records_site(built->records, built->heap.nodes[1].site);
    const struct cm_place place = {site->frames[0].code, 31, true};
    struct cm_growth_use uses[2];

    cm_growth_use_init(&uses[0]);
    cm_growth_use_init(&uses[1]);
    uses[0].bytes = 5000;
    uses[1] = (struct cm_growth_use){.site = built->heap.nodes[1].site,
                                     .awaited = true,
                                     .category = "saved for backward",
                                     .device = "cuda:0",
                                     .verdict = verdict,
                                     .holder = holder,
                                     .holder_count = 2,
                                     .holder_at = 1,
                                     .retained_bytes = UINT64_MAX - 1,
                                     .made_at = &place,
                                     .made_at_count = 1,
                                     .bytes_per_iteration = 4096,
                                     .since_iteration = 1,
                                     .bytes = 4096,
                                     .count = UINT64_MAX,
                                     .series = series,
                                     .series_count = 4,
                                     .confidence = 7,
                                     .iterations_to_full = -9,
                                     .seconds_to_full = 12,
                                     .names = names,
                                     .name_count = 1};
    return cm_growth_set(leak, built->records, uses, 2);
}

static void
test_a_list_takes_the_place_of_the_one_before(void **state)
{
    struct built *built = built_new(stacks);
    const struct cm_leak_growth *growth;
    struct cm_leak leak;

    (void)state;
    start(&leak);
    assert_int_equal(set(&leak, built, "growing"), CM_OK);
    assert_int_equal(set(&leak, built, "leak"), CM_OK);
    assert_int_equal(leak.growth_count, 2);
    assert_int_equal(leak.site_count, 1);
    growth = &leak.growth[0]; /* faults come first */
    assert_int_equal(cm_growth_verdict(&leak, growth), CM_GROWTH_LEAK);
    assert_int_equal(growth->site, 1);
    assert_int_equal(growth->count, (uint64_t)1 << 53);
    assert_int_equal(growth->peak_bytes, 4096);
    assert_true(growth->confidence == 1);
    assert_int_equal(growth->iterations_to_full, -1);
    assert_int_equal(growth->series_count, 3); /* one would fall */
    assert_string_equal(cm_leak_text(&leak, growth->made_at[0].name),
                        "Trainer.step");
    assert_int_equal(growth->holder[1].annotation.index, 0);
    assert_int_equal(growth->holder_at, 1);
    assert_int_equal(growth->retained_bytes, (uint64_t)1 << 53);
    assert_true(leak.growth[1].retained_bytes == CM_LEAK_UNKNOWN);
    assert_true(growth->fingerprint != leak.growth[1].fingerprint);
    assert_null(cm_leak_check(&leak));
    cm_leak_release(&leak);
    built_free(built);
}

/* At the end of a program its variables are gone. */
static void
test_who_held_it_is_kept(void **state)
{
    struct built *built = built_new(stacks);
    struct cm_growth_use use;
    struct cm_leak leak;

    (void)state;
    start(&leak);
    assert_int_equal(set(&leak, built, "leak"), CM_OK);
    cm_growth_use_init(&use);
    use.site = built->heap.nodes[1].site;
    use.category = "saved for backward";
    use.device = "cuda:0";
    use.verdict = "leak";
    use.bytes = 5;
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth_count, 1);
    assert_int_equal(leak.growth[0].bytes, 5);
    assert_int_equal(leak.growth[0].holder_count, 2);
    assert_int_equal(leak.growth[0].made_at_count, 1);
    assert_int_equal(leak.growth[0].name_count, 1);
    assert_null(cm_leak_check(&leak));
    use.verdict = "growing";
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth[0].holder_count, 2);
    use.verdict = "lingering";
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth[0].holder_count, 0);
    assert_int_equal(set(&leak, built, "leak"), CM_OK);
    use.category = "other";
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth[0].holder_count, 0);
    cm_leak_release(&leak);
    built_free(built);
}

/* However often it is asked again; numbers of slices of time are no numbers of
 * iterations. */
static void
test_when_it_was_seen_is_kept(void **state)
{
    struct built *built = built_new(stacks);
    struct cm_growth_use use;
    struct cm_leak leak;

    (void)state;
    start(&leak);
    cm_leak_set_iteration(&leak, 12);
    assert_int_equal(set(&leak, built, "leak"), CM_OK);
    assert_int_equal(leak.growth[0].holder_iteration, -1);
    cm_growth_use_init(&use);
    use.site = built->heap.nodes[1].site;
    use.category = "saved for backward";
    use.device = "cuda:0";
    use.verdict = "leak";
    for (int64_t iteration = 20; iteration < 60; iteration += 20) {
        cm_leak_set_iteration(&leak, iteration);
        assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
        assert_int_equal(leak.growth[0].holder_iteration, 12);
    }
    cm_leak_set_iteration(&leak, 1);
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth[0].holder_iteration, -1);
    assert_int_equal(leak.growth[0].holder_count, 2);
    cm_leak_release(&leak);
    built_free(built);
}

/* What a list of a function that has ended holds is still told by the list. */
static void
test_what_a_traceback_is_left_with(void **state)
{
    struct built *built = built_new(stacks);
    struct cm_holder_use before[] = {
        {"a.py:3 main", ""}, {"list of 9", "local outs"}, {"Tensor", "[3]"}};
    struct cm_holder_use after[] = {{"module a", ""},
                                    {"OSError", ".last"},
                                    {"frame", "tb_frame"},
                                    {"list of 9", "local outs"},
                                    {"Tensor", "[3]"}};
    struct cm_growth_use use;
    struct cm_leak leak;

    (void)state;
    start(&leak);
    cm_growth_use_init(&use);
    use.holder = before;
    use.holder_count = 3;
    use.holder_at = 1;
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    use.holder = after;
    use.holder_count = 5;
    use.holder_at = 1; /* the exceptions pile up */
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth[0].holder_count, 5);
    use.holder_at = 3;
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth[0].holder_count, 5);
    use.holder = before;
    use.holder_count = 3;
    use.holder_at = 1;
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    use.holder = after;
    use.holder_count = 5;
    use.holder_at = 3;
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth[0].holder_count, 3);
    assert_int_equal(leak.growth[0].holder_at, 1);
    assert_null(cm_leak_check(&leak));
    cm_leak_release(&leak);
    built_free(built);
}

/* And of that list, which the traceback keeps, the newest count is told. */
static void
test_what_a_traceback_keeps_is_counted_anew(void **state)
{
    static const struct {
        const char *function, *variable, *told;
        int64_t iteration;
    } cases[] = {
        {"frame a.py:9 in main", "local outs", "list of 30", -1},
        {"frame a.py:9 in other", "local outs", "list of 9", 10},
        {"frame a.py:9 in main", "local rest", "list of 9", 10},
    };
    struct cm_holder_use before[] = {
        {"a.py:3 main", ""}, {"list of 9", "local outs"}, {"Tensor", "[3]"}};
    struct built *built = built_new(stacks);
    struct cm_growth_use use;
    struct cm_leak leak;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct cm_holder_use after[] = {{"module sys", ""},
                                        {"traceback", ".last_traceback"},
                                        {cases[i].function, "tb_frame"},
                                        {"list of 30", cases[i].variable},
                                        {"Tensor", "[3]"}};

        start(&leak);
        cm_leak_set_iteration(&leak, 10);
        cm_growth_use_init(&use);
        use.holder = before;
        use.holder_count = 3;
        use.holder_at = 1;
        assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
        cm_leak_set_iteration(&leak, 30);
        use.holder = after;
        use.holder_count = 5;
        use.holder_at = 3;
        assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
        assert_string_equal(
            cm_leak_text(&leak, leak.growth[0].holder[1].annotation),
            cases[i].told);
        assert_int_equal(leak.growth[0].holder_iteration, cases[i].iteration);
        cm_leak_release(&leak);
    }
    built_free(built);
}

/* At the end of a program the model has died, and with it its gradients, and
 * a trainer that refers to itself; before it, a leak in a dead cycle is held by
 * nothing else. */
static void
test_what_lingered_is_not_held_by_its_death(void **state)
{
    static const struct cm_holder_use alive[] = {
        {"local `optimizer` of main", ""}, {"gradient", ".grad"}};
    static const struct cm_holder_use dead[] = {
        {CM_HOLDING_DEAD, ""}, {"list of 4", ""}, {"gradient", ".grad"}};
    static const struct {
        const char *verdict;
        bool at_end;
        size_t steps;
    } cases[] = {
        {"lingering", false, 2}, {"leak", false, 3}, {"leak", true, 2}};
    struct built *built = built_new(stacks);
    struct cm_growth_use use;
    struct cm_leak leak;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        start(&leak);
        cm_growth_use_init(&use);
        use.verdict = cases[i].verdict;
        use.holder = alive;
        use.holder_count = 2;
        assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
        use.holder = dead;
        use.holder_count = 3;
        use.at_end = cases[i].at_end;
        assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
        assert_int_equal(leak.growth[0].holder_count, cases[i].steps);
        assert_null(cm_leak_check(&leak));
        cm_leak_release(&leak);
    }
    built_free(built);
}

/* Who held it let it grow to an end; that it grows on is no leak when nobody can
 * be asked any more, and that it has stopped stays told. */
static void
test_what_was_bounded_stays_so(void **state)
{
    static const struct cm_holder_use alive[] = {
        {"local `optimizer` of main", ""}, {"list of 9", ".history"}};
    static const char *const now[] = {"leak", "settled"};
    static const char *const told[] = {"growing", "settled"};
    struct built *built = built_new(stacks);
    struct cm_growth_use use;
    struct cm_leak leak;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        start(&leak);
        cm_growth_use_init(&use);
        use.verdict = "growing";
        use.bounded = true;
        use.holder = alive;
        use.holder_count = 2;
        assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
        use.verdict = now[i];
        use.bounded = false;
        use.holder_count = 0;
        use.at_end = true;
        assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
        assert_string_equal(cm_leak_text(&leak, leak.growth[0].verdict),
                            told[i]);
        assert_int_equal(leak.growth[0].holder_count, 2);
        cm_leak_release(&leak);
    }
    built_free(built);
}

/* Of a long way both ends stay, and where they pile up if it is there. */
static void
test_a_long_way_loses_its_middle(void **state)
{
    enum { STEPS = 2 * CM_GROWTH_MAX_HOLDERS };
    struct built *built = built_new(stacks);
    struct cm_holder_use steps[STEPS];
    char names[STEPS][8];
    struct cm_growth_use use;
    struct cm_leak leak;

    (void)state;
    start(&leak);
    for (size_t i = 0; i < STEPS; i++) {
        snprintf(names[i], sizeof(names[i]), "%zu", i);
        steps[i] = (struct cm_holder_use){names[i], ""};
    }
    cm_growth_use_init(&use);
    use.holder = steps;
    use.holder_count = STEPS;
    use.holder_at = STEPS - 2;
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth[0].holder_count, CM_GROWTH_MAX_HOLDERS);
    assert_int_equal(leak.growth[0].holder_at, CM_GROWTH_MAX_HOLDERS - 2);
    assert_string_equal(
        cm_leak_text(
            &leak,
            leak.growth[0].holder[CM_GROWTH_MAX_HOLDERS - 1].annotation),
        "127");
    use.holder_at = STEPS / 2;
    assert_int_equal(cm_growth_set(&leak, built->records, &use, 1), CM_OK);
    assert_int_equal(leak.growth[0].holder_at, 0);
    cm_leak_release(&leak);
    built_free(built);
}

static void
test_a_verdict_that_is_none_is_refused(void **state)
{
    struct built *built = built_new(stacks);
    struct cm_leak leak;

    (void)state;
    start(&leak);
    assert_int_equal(set(&leak, built, "leak"), CM_OK);
    assert_int_equal(set(&leak, built, "perhaps"), CM_MISUSE);
    assert_int_equal(set(&leak, built, NULL), CM_MISUSE);
    assert_int_equal(leak.growth_count, 2);
    cm_leak_release(&leak);
    built_free(built);
}

static void
test_a_list_is_bounded(void **state)
{
    struct built *built = built_new(stacks);
    size_t count = CM_GROWTH_MAX + 9;
    struct cm_growth_use *uses = cm_calloc(count, sizeof(*uses));
    struct cm_leak leak;

    (void)state;
    start(&leak);
    for (size_t i = 0; i < count; i++) {
        cm_growth_use_init(&uses[i]);
        uses[i].bytes = i;
    }
    uses[0].verdict = "lingering";
    assert_int_equal(cm_growth_set(&leak, built->records, uses, count), CM_OK);
    assert_int_equal(leak.growth_count, CM_GROWTH_MAX);
    assert_int_equal(leak.growth[0].bytes, 0);
    assert_int_equal(leak.growth[1].bytes, count - 1);
    cm_free(uses);
    cm_leak_release(&leak);
    built_free(built);
}

static enum cm_status
add_by(struct cm_leak *leak, struct cm_timeline_rows *rows, const char *by,
       int64_t iteration, uint64_t bytes)
{
    static const char *const categories[] = {"parameter", "other"};
    const uint64_t both[] = {7, bytes};
    const struct cm_timeline_use point = {.device = "cuda:0",
                                          .by = by,
                                          .iteration = iteration,
                                          .seconds = (double)iteration / 10,
                                          .categories = categories,
                                          .bytes = both,
                                          .category_count = 2};

    return cm_timeline_add(leak, rows, &point);
}

static enum cm_status
add(struct cm_leak *leak, struct cm_timeline_rows *rows, int64_t iteration,
    uint64_t bytes)
{
    return add_by(leak, rows, "step", iteration, bytes);
}

/* Slices before training have numbers of their own, those after it do not. */
static void
test_a_timeline_knows_where_slices_begin(void **state)
{
    static const struct {
        const char *by;
        int64_t iteration;
        const char *told;
        size_t points;
        int64_t slices_since;
    } rows[] = {{"time", 1, "time", 1, 0},
                {"time", 2, "time", 2, 0},
                {"optimizer", 1, "optimizer", 1, 0},
                {"optimizer", 2, "optimizer", 2, 0},
                {"time", 3, "optimizer", 3, 3},
                {"time", 4, "optimizer", 4, 3},
                {"optimizer", 5, "optimizer", 5, 0},
                {"time", 6, "optimizer", 6, 6},
                {"step", 7, "step", 7, 0}};
    struct cm_timeline_rows counts = {0};
    struct cm_leak leak;

    (void)state;
    start(&leak);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(
            add_by(&leak, &counts, rows[i].by, rows[i].iteration, 1), CM_OK);
        assert_int_equal(leak.timeline.devices[0].point_count, rows[i].points);
        assert_string_equal(cm_leak_text(&leak, leak.timeline.by),
                            rows[i].told);
        assert_int_equal(leak.timeline.slices_since, rows[i].slices_since);
        assert_null(cm_leak_check(&leak));
    }
    cm_leak_release(&leak);
}

/* Whatever is thinned: the highest point stays, and the order. */
static void
test_a_timeline_is_thinned(void **state)
{
    struct cm_timeline_rows rows = {0};
    struct cm_leak_timeline_device *device;
    uint64_t highest = 0;
    struct cm_leak leak;

    (void)state;
    start(&leak);
    for (int64_t i = 0; i < 10000; i++) {
        assert_int_equal(
            add(&leak, &rows, i, i == 4321 ? 1000000 : (uint64_t)(i % 7)),
            CM_OK);
    }
    device = &leak.timeline.devices[0];
    assert_in_range(device->point_count, 900, CM_TIMELINE_MAX_POINTS);
    for (size_t i = 0; i < device->point_count; i++) {
        assert_int_equal(device->bytes[2 * i], 7);
        highest = device->bytes[2 * i + 1] > highest ? device->bytes[2 * i + 1]
                                                     : highest;
    }
    assert_int_equal(highest, 1000000);
    assert_in_range(device->iterations[device->point_count - 1], 9980, 9999);
    assert_null(cm_leak_check(&leak));
    assert_string_equal(cm_leak_text(&leak, leak.timeline.by), "step");
    cm_leak_release(&leak);
}

static void
test_a_point_that_falls_behind_is_left_out(void **state)
{
    struct cm_timeline_rows rows = {0};
    struct cm_leak leak;

    (void)state;
    start(&leak);
    assert_int_equal(add(&leak, &rows, 5, 1), CM_OK);
    assert_int_equal(add(&leak, &rows, 4, 1), CM_OK);
    assert_int_equal(leak.timeline.devices[0].point_count, 1);
    assert_null(cm_leak_check(&leak));
    cm_leak_release(&leak);
}

static enum cm_status
attempt(void *context)
{
    struct cm_timeline_rows rows = {0};
    struct cm_buffer out = {0};
    struct cm_leak leak = {0};
    enum cm_status status = cm_leak_init(&leak);

    if (status == CM_OK) {
        status = set(&leak, context, "leak");
    }
    if (status == CM_OK) {
        status = set(&leak, context, "lingering");
    }
    for (int64_t i = 0; status == CM_OK && i < 70; i++) {
        status = add(&leak, &rows, i, 1);
    }
    if (status == CM_OK) {
        status = cm_leak_json_write(&leak, &out);
    }
    assert_null(cm_leak_check(&leak));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct built *built = built_new(stacks);

    (void)state;
    cm_fail_each(attempt, built);
    built_free(built);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list_takes_the_place_of_the_one_before),
        cmocka_unit_test(test_who_held_it_is_kept),
        cmocka_unit_test(test_when_it_was_seen_is_kept),
        cmocka_unit_test(test_what_a_traceback_is_left_with),
        cmocka_unit_test(test_what_a_traceback_keeps_is_counted_anew),
        cmocka_unit_test(test_what_lingered_is_not_held_by_its_death),
        cmocka_unit_test(test_what_was_bounded_stays_so),
        cmocka_unit_test(test_a_long_way_loses_its_middle),
        cmocka_unit_test(test_a_verdict_that_is_none_is_refused),
        cmocka_unit_test(test_a_list_is_bounded),
        cmocka_unit_test(test_a_timeline_is_thinned),
        cmocka_unit_test(test_a_timeline_knows_where_slices_begin),
        cmocka_unit_test(test_a_point_that_falls_behind_is_left_out),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
