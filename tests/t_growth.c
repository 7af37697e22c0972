/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/growth.h"

static void
expect_sentence(const char *growth, const char *by, const char *expected)
{
    char json[500];
    struct cm_leak leak;
    struct cm_buffer out = {0};

    snprintf(json, sizeof(json),
             LEAK_HEAD "'timeline':{'by':'%s'},'growth':[{%s}]}", by, growth);
    leak = leak_of(json);
    cm_growth_add_sentence(&leak, &leak.growth[0], &out);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_sentences(void **state)
{
#define SLOPE "'verdict':'leak','bytes_per_iteration':4194304,"
    (void)state;
    expect_sentence(SLOPE "'since_iteration':3", "step",
                    "+4.0 MiB per iteration since iteration 3");
    expect_sentence(SLOPE "'iterations_to_full':1", "step",
                    "+4.0 MiB per iteration; full in about 1 iteration");
    expect_sentence(SLOPE "'iterations_to_full':123456,"
                          "'seconds_to_full':432000",
                    "step",
                    "+4.0 MiB per iteration; full in about 123000 iterations "
                    "(5 days)");
    expect_sentence(SLOPE "'iterations_to_full':9995,'seconds_to_full':20000",
                    "optimizer",
                    "+4.0 MiB per iteration; full in about 10000 iterations "
                    "(6 h)");
    expect_sentence(SLOPE "'seconds_to_full':41.3", "step",
                    "+4.0 MiB per iteration; full in about 41 s");
    expect_sentence(SLOPE "'since_iteration':3,'iterations_to_full':70,"
                          "'seconds_to_full':420",
                    "time",
                    "+4.0 MiB per time slice since time slice 3; full in "
                    "about 7 min");
    expect_sentence(SLOPE "'iterations_to_full':70", "time",
                    "+4.0 MiB per time slice; full in about 70 time slices");
    expect_sentence("'verdict':'leak','bytes_per_iteration':4194304,"
                    "'since_iteration':3,"
                    "'category':'outside the frameworks'",
                    "step",
                    "+4.0 MiB per iteration outside the frameworks since "
                    "iteration 3");
    expect_sentence("'verdict':'leak','bytes_per_iteration':-5", "step",
                    "-5 B per iteration");
    expect_sentence("'verdict':'lingering','bytes':1048576", "step",
                    "1.0 MiB kept through every forward");
    expect_sentence("'verdict':'lingering','bytes':1048576,'category':'mine'",
                    "step", "1.0 MiB of mine kept through every forward");
    expect_sentence("'verdict':'lingering','bytes':1048576,'category':'other',"
                    "'rule':'second copy of the weights'",
                    "step",
                    "1.0 MiB of a second copy of the weights kept through "
                    "every forward");
    expect_sentence("'verdict':'lingering','bytes':1048576,'category':'other',"
                    "'rule':'checkpoint kept'",
                    "step",
                    "1.0 MiB of other tensors kept through every forward");
#undef SLOPE
}

static void
test_fingerprint_outlives_moved_lines_and_other_libraries(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_leak_growth growth = leak.growth[0];
    uint64_t first = cm_growth_fingerprint(&leak, &growth);

    (void)state;
    leak.sites[0].frames[1].line = 99;
    leak.sites[0].frames[0].name = leak.host;
    growth.bytes = 1;
    growth.verdict = leak.growth[1].verdict;
    assert_true(cm_growth_fingerprint(&leak, &growth) == first);
    growth.category = leak.growth[1].category;
    assert_true(cm_growth_fingerprint(&leak, &growth) != first);
    growth.category = leak.growth[0].category;
    leak.sites[0].frames[1].source = leak.sites[1].frames[0].source;
    assert_true(cm_growth_fingerprint(&leak, &growth) != first);
    growth.site = 0;
    assert_true(cm_growth_fingerprint(&leak, &growth) != 0);
    cm_leak_release(&leak);
}

static void
test_verdicts(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    const enum cm_growth_verdict expected[] = {
        CM_GROWTH_LEAK, CM_GROWTH_LINGERING, CM_GROWTH_GROWING,
        CM_GROWTH_SETTLED, CM_GROWTH_OK};

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        enum cm_growth_verdict verdict =
            cm_growth_verdict(&leak, &leak.growth[i]);

        assert_int_equal(verdict, expected[i]);
        assert_string_equal(cm_growth_verdict_name(verdict),
                            cm_leak_text(&leak, leak.growth[i].verdict));
        assert_int_equal(cm_growth_is_told(verdict), i < 3);
        assert_int_equal(cm_growth_is_fault(verdict), i < 2);
    }
    cm_leak_release(&leak);
}

static void
test_what_edges_say(void **state)
{
    (void)state;
    assert_true(cm_growth_edge_speaks(".cache"));
    assert_true(cm_growth_edge_speaks("['model']"));
    assert_true(cm_growth_edge_speaks("cell x"));
    assert_true(cm_growth_edge_speaks("["));
    assert_false(cm_growth_edge_speaks(""));
    assert_false(cm_growth_edge_speaks("[17]"));
    assert_false(cm_growth_edge_speaks("element"));
    assert_false(cm_growth_edge_speaks("__dict__"));
}

/* The parts of a way, as the Python face writes them too. */
static void
test_parts(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_leak_growth *growth = &leak.growth[0];
    struct cm_buffer out = {0};

    (void)state;
    assert_int_equal(cm_growth_part_count(growth), 3);
    cm_growth_add_part(&leak, growth, 0, false, &out);
    assert_string_equal(out.bytes,
                        "train.py:80 main: local `losses` (list, 409 items)");
    cm_buffer_clear(&out);
    cm_growth_add_part(&leak, growth, 0, true, &out);
    assert_string_equal(out.bytes, "local `losses` (list, 409 items)");
    cm_buffer_clear(&out);
    cm_growth_add_part(&leak, growth, 1, true, &out);
    assert_string_equal(out.bytes, "loss");
    growth->holder_iteration = 12;
    cm_buffer_clear(&out);
    cm_growth_add_part(&leak, growth, 0, true, &out);
    assert_string_equal(out.bytes,
                        "local `losses` (list, 409 items at iteration 12)");
    cm_buffer_clear(&out);
    cm_growth_add_part(&leak, growth, 1, true, &out);
    assert_string_equal(out.bytes, "loss");
    growth->holder_count = 1;
    cm_buffer_clear(&out);
    cm_growth_add_part(&leak, growth, 0, true, &out);
    assert_string_equal(out.bytes, "train.py:80 main");
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_objects(void **state)
{
    static const char *const cases[][2] = {{"list of 409", "list, 409 items"},
                                           {"dict of 1", "dict, 1 item"},
                                           {"list of", "list of"},
                                           {" of 7", " of 7"},
                                           {"of 7", "of 7"},
                                           {"roof 7", "roof 7"},
                                           {"", "object"},
                                           {"list of 4x", "list of 4x"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cm_buffer out = {0};

        cm_growth_add_object(cases[i][0], &out);
        assert_string_equal(cm_buffer_text(&out), cases[i][1]);
        cm_buffer_release(&out);
    }
}

static void
test_device(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_text_id name = leak.timeline.devices[0].name;
    struct cm_buffer out = {0};

    (void)state;
    assert_true(cm_growth_add_device(&leak, name, &out));
    assert_string_equal(out.bytes,
                        "cuda:0 grows by 4.0 MiB per iteration; full in about "
                        "54 min");
    leak.growth[0].verdict = leak.growth[4].verdict;
    cm_buffer_clear(&out);
    assert_true(cm_growth_add_device(&leak, name, &out));
    assert_string_equal(out.bytes,
                        "cuda:0 keeps 97 MiB through every forward pass");
    assert_false(cm_growth_add_device(&leak, leak.host, &out));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(
            test_fingerprint_outlives_moved_lines_and_other_libraries),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_what_edges_say),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_device),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
