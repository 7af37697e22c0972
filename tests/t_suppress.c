/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "fail_each.h"

#include "../reports/suppress.h"

/* How many findings of the lambda document a rule takes out. */
static size_t
taken(const char *rules)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);
    struct cm_suppressions self = {0};
    struct cm_buffer problems = {0};
    size_t result;

    assert_int_equal(cm_suppressions_add(&self, rules, &problems), CM_OK);
    assert_string_equal(cm_buffer_text(&problems), "");
    result = cm_suppressions_apply_leak(&self, &leak);
    assert_int_equal(leak.cycle_count, 1 - result);
    cm_suppressions_release(&self);
    cm_buffer_release(&problems);
    cm_leak_release(&leak);
    return result;
}

static size_t
growth_left(const char *rules, size_t *told)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_suppressions self = {0};
    struct cm_buffer problems = {0};
    size_t left;

    assert_int_equal(cm_suppressions_add(&self, rules, &problems), CM_OK);
    *told = cm_suppressions_apply_leak(&self, &leak);
    left = leak.growth_count;
    cm_suppressions_release(&self);
    cm_buffer_release(&problems);
    cm_leak_release(&leak);
    return left;
}

/* By fingerprint, by the line that allocates, by the place that holds. */
static void
test_growth(void **state)
{
    size_t told;

    (void)state;
    assert_int_equal(growth_left("fingerprint 012345", &told), 4);
    assert_int_equal(told, 1);
    assert_int_equal(growth_left("function step", &told), 3);
    assert_int_equal(told, 2);
    assert_int_equal(growth_left("function main", &told), 4);
    assert_int_equal(growth_left("file x/train.py", &told), 3);
    assert_int_equal(growth_left("type *", &told), 5);
    assert_int_equal(told, 0);
    assert_int_equal(growth_left("file torch.py", &told), 5);
}

/* Whose fix is to cut that cycle, which nobody is told of. */
static void
test_growth_goes_with_the_cycle_that_holds_it(void **state)
{
    static const char *const rules[] = {"fingerprint 3f9a2c", "type Trainer",
                                        "fingerprint 4", "type Other"};
    char text[8192];

    (void)state;
    snprintf(text, sizeof(text),
             "%.*s,'growth':[{'verdict':'leak','site':1,'bytes':9,"
             "'rule':'dead cycle'},{'verdict':'leak','site':1,'bytes':9,"
             "'rule':'losses'}]}",
             (int)strlen(LEAK_LAMBDA) - 1, LEAK_LAMBDA);
    for (size_t i = 0; i < 4; i++) {
        struct cm_leak leak = leak_of(text);
        struct cm_suppressions self = {0};
        struct cm_buffer problems = {0};

        assert_int_equal(cm_suppressions_add(&self, rules[i], &problems),
                         CM_OK);
        assert_int_equal(cm_suppressions_apply_leak(&self, &leak),
                         i < 2 ? 2 : 0);
        assert_int_equal(leak.cycle_count, i < 2 ? 0 : 1);
        assert_int_equal(leak.growth_count, i < 2 ? 1 : 2);
        cm_suppressions_release(&self);
        cm_buffer_release(&problems);
        cm_leak_release(&leak);
    }
}

static void
test_rules(void **state)
{
    static const char *const matching[] = {
        "fingerprint 3",
        "fingerprint 3f9A2C",
        "fingerprint 3f9a2c0000000001",
        "type m.Trainer",
        "type Train?r",
        "type *",
        "file /x/train.py",
        "file train.py",
        "file x/*.py",
        "file model.py",
        "function T.__init__",
        "function __init__",
        "function Enc.*",
        "# a comment\r\n\r\n\t function\tforward \r\n",
        "type Nothing\ntype Trainer",
        "fingerprint 3f9a2c # known",
        "type Train?r\t# our own\r\nfile nothing.py",
        "type __main__.cell", /* as "cell", which has no module here */
    };
    static const char *const others[] = {
        "",
        "fingerprint 3f9a2d",
        "fingerprint 03f9a2c",
        "type Tensor", /* not of the cycle */
        "type trainer",
        "type Train",
        "file rain.py",
        "file torch.py", /* a library frame */
        "file Trainer",
        "function T",
        "function f",
        "#type Trainer",
        "type Trainer#",         /* a comment has a blank before it */
        "type __main__.Trainer", /* it is m.Trainer */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(matching) / sizeof(matching[0]); i++) {
        assert_int_equal(taken(matching[i]), 1);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(taken(others[i]), 0);
    }
}

static void
test_bad_lines_are_named_once(void **state)
{
    struct cm_suppressions self = {0};
    struct cm_buffer problems = {0};

    (void)state;
    assert_int_equal(
        cm_suppressions_add(&self,
                            "type A\nfingerprint xyz\ntype\n# ok\n"
                            "fingerprint 12345678901234567\nTYPE B",
                            &problems),
        CM_OK);
    assert_int_equal(self.count, 1);
    assert_string_equal(cm_buffer_text(&problems),
                        "line 2, 3, 5, 6: expected fingerprint, type, file "
                        "or function and what it is");
    cm_buffer_clear(&problems);
    assert_int_equal(cm_suppressions_add(&self,
                                         "x\nx\nx\nx\nx\nx\nx\nx\nx\n"
                                         "x\nx\nx\n",
                                         &problems),
                     CM_OK);
    assert_non_null(strstr(problems.bytes, "9, 10 and 2 more: "));
    cm_suppressions_release(&self);
    cm_buffer_release(&problems);
}

/* Findings of a process: one of `Net`, made in /x/net.py, one of `Other`. */
static struct cm_findings
make_findings(void)
{
    struct cm_findings findings = {0};

    findings.items = cm_calloc(2, sizeof(findings.items[0]));
    findings.count = 2;
    findings.dead_bytes = 30;
    for (uint32_t i = 0; i < 2; i++) {
        struct cm_finding *finding = &findings.items[i];

        finding->fingerprint = (uint64_t)(i + 1) << 60;
        finding->bytes_total = 10 * (i + 1);
        finding->component = cm_calloc(1, sizeof(uint32_t));
        finding->component[0] = i + 1;
        finding->component_count = 1;
        finding->advice = cm_strdup("mend it");
        finding->place_count = i == 0;
        finding->places[0].code.index = 1;
    }
    return findings;
}

static void
expect_left(const char *rule, uint64_t fingerprint, uint64_t dead_bytes)
{
    struct cm_records *records = cm_records_new((size_t)1 << 20);
    struct cm_texts *texts = cm_records_texts(records);
    struct cm_findings findings = make_findings();
    struct cm_suppressions self = {0};
    struct cm_buffer problems = {0};
    struct cm_heap heap = {0};
    struct cm_type_id types[2];
    struct cm_code_id code;

    for (int i = 0; i < 2; i++) {
        struct cm_type type = {
            .name = cm_texts_intern(texts, i == 0 ? "m.Net" : "m.Other")};
        struct cm_node node = {0};
        struct cm_node_id id;

        assert_int_equal(cm_records_add_type(records, &type, &types[i]),
                         CM_OK);
        node.type = types[i];
        assert_int_equal(cm_heap_add_node(&heap, &node, &id), CM_OK);
    }
    assert_int_equal(
        cm_records_add_code(
            records,
            &(struct cm_code){.filename = cm_texts_intern(texts, "/x/net.py"),
                              .qualified_name =
                                  cm_texts_intern(texts, "Net.run")},
            &code),
        CM_OK);
    assert_int_equal(code.index, 1);
    assert_int_equal(cm_suppressions_add(&self, rule, &problems), CM_OK);
    assert_int_equal(cm_suppressions_apply(&self, &heap, records, &findings),
                     fingerprint == 0 ? 0 : 1);
    assert_int_equal(findings.count, fingerprint == 0 ? 2 : 1);
    assert_int_equal(findings.dead_bytes, dead_bytes);
    if (fingerprint != 0) {
        assert_int_equal(findings.items[0].fingerprint, fingerprint << 60);
    }
    cm_findings_release(&findings);
    cm_suppressions_release(&self);
    cm_buffer_release(&problems);
    cm_heap_release(&heap);
    cm_records_free(records);
}

static void
test_findings_of_the_process(void **state)
{
    (void)state;
    expect_left("type Net", 2, 20);
    expect_left("type Other", 1, 10);
    expect_left("file net.py", 2, 20);
    expect_left("function Net.*", 2, 20);
    expect_left("fingerprint 2", 1, 10);
    expect_left("type Absent", 0, 30);
}

static enum cm_status
attempt(void *context)
{
    struct cm_suppressions self = {0};
    struct cm_buffer problems = {0};
    enum cm_status status = cm_suppressions_add(
        &self, "type A\nfile b\nbad\nfunction c\nfingerprint d", &problems);

    (void)context;
    cm_suppressions_release(&self);
    cm_buffer_release(&problems);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    (void)state;
    cm_fail_each(attempt, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_growth_goes_with_the_cycle_that_holds_it),
        cmocka_unit_test(test_bad_lines_are_named_once),
        cmocka_unit_test(test_findings_of_the_process),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
