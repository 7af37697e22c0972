/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "fail_each.h"

#include "../reports/summary.h"

static void
expect_summary(const char *json, const struct cm_summary_options *options,
               const char *expected)
{
    struct cm_leak leak = leak_of(json);
    struct cm_buffer out = {0};

    cm_leak_sort(&leak);
    assert_int_equal(cm_summary_write(&leak, options, &out), CM_OK);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

/* It is there to be copied. */
static void
test_the_command_is_one_for_a_shell(void **state)
{
    static const char *const names[][2] = {
        {"l\303\251ak-%1.json", "l\303\251ak-%1.json"},
        {"out dir/leak.json", "'out dir/leak.json'"},
        {"it's.json", "'it'\\''s.json'"},
        {"-x.json", "./-x.json"},
        {"$(x);.json", "'$(x);.json'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct cm_summary_options options = {.report_name = names[i][0]};
        char text[200];

        snprintf(text, sizeof(text),
                 "cumem: 1 dead cycle holds device memory\n"
                 "hidden: 1 in libraries (lit) | cyclereport --all %s\n",
                 names[i][1]);
        expect_summary(LEAK_HEAD "'cycles':[{'fingerprint':'1','peak_bytes':9,"
                                 "'library':{'package':'lit'}}]}",
                       &options, text);
    }
}

/* Each package once, three of them; and the command apart where it is long. */
static void
test_libraries_are_named(void **state)
{
#define OF(number, package)                                                   \
    "{'fingerprint':'" number                                                 \
    "','peak_bytes':9,'library':{'package':'" package "'}}"
    struct cm_summary_options options = {.report_name = "r.json"};
    const char *two = LEAK_HEAD "'cycles':[" OF("1", "lit") "," //
        OF("2", "pkg") "," OF("3", "lit") "]}";
    const char *four = LEAK_HEAD "'cycles':[" OF("1", "a") "," //
        OF("2", "b") "," OF("3", "c") "," OF("4", "d") "]}";

    (void)state;
    expect_summary(
        two, &options,
        "cumem: 3 dead cycles hold device memory\n"
        "hidden: 3 in libraries (lit, pkg) | cyclereport --all r.json\n");
    options.report_name = "a-name-that-makes-the-line-too-long.json";
    expect_summary(
        four, &options,
        "cumem: 4 dead cycles hold device memory\n"
        "hidden: 4 in libraries (a, b, c, ...)\n"
        "cyclereport --all a-name-that-makes-the-line-too-long.json\n");
#undef OF
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libraries_are_named),
        cmocka_unit_test(test_the_command_is_one_for_a_shell),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
