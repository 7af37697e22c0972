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

#define LAMBDA_TEXT                                                           \
    "cumem [rank 3]: up to 32.0 of 64.0 MiB at cuda:0's peak (iteration 4) "  \
    "was dead\n"                                                              \
    "#1 DEAD CYCLE x2, 16 MiB each, at most 32 MiB at once                "   \
    "   [3f9a2c]\n"                                                           \
    "   cut   train.py:57  self.cb = lambda o: self.store(o)\n"               \
    "   fix   capture weakref.ref(self) in the lambda\n"                      \
    "   path  Trainer .cb > <lambda> > cell self ~~> Trainer .acts[0] > "     \
    "Tensor [4, 5] float32\n"                                                 \
    "   alloc model.py:12 Enc.forward: h = self.proj(x)\n"

static void
test_finding(void **state)
{
    const struct cm_summary_options options = {.report_name = "r.json"};

    (void)state;
    expect_summary(LEAK_LAMBDA, &options, LAMBDA_TEXT "cyclereport r.json\n");
}

static void
test_nothing_found(void **state)
{
    const struct cm_summary_options none = {0}, some = {.suppressed = 3};

    (void)state;
    expect_summary(LEAK_HEAD "'pid':1}", &none,
                   "cumem: no dead cycle holds device memory\n");
    expect_summary(LEAK_HEAD "'pid':1}", &some,
                   "cumem: no dead cycle holds device memory (3 "
                   "suppressed)\n");
    expect_summary(LEAK_HEAD "'cycles':[{'class':'resurrected',"
                             "'peak_bytes':5}]}",
                   &none, "cumem: no dead cycle holds device memory\n");
}

static void
test_only_what_is_new(void **state)
{
    const uint64_t other = 1, this = 0x3f9a2c0000000001;
    const struct cm_summary_options shown = {.only = &this, .only_count = 1};
    const struct cm_summary_options not = {.only = &other, .only_count = 1};

    (void)state;
    expect_summary(LEAK_LAMBDA, &shown, LAMBDA_TEXT);
    expect_summary(LEAK_LAMBDA, &not,
                   "cumem [rank 3]: no dead cycle holds device memory\n");
}

static void
test_what_is_hidden_is_counted(void **state)
{
    const struct cm_summary_options options = {
        .min_bytes = CM_DEFAULT_MIN_BYTES, .top = 1, .suppressed = 4};
    struct cm_summary_counts counts;
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'lost':{'events':1,'nodes':20,'reason':'too many'},"
                          "'cycles':[{'fingerprint':'1','peak_bytes':2000000},"
                          "{'fingerprint':'2','peak_bytes':3000000},"
                          "{'fingerprint':'3','peak_bytes':3},"
                          "{'fingerprint':'4','peak_bytes':4000000,"
                          "'library':{'package':'torch'}}]}");
    struct cm_buffer out = {0};
    size_t shown[4];

    (void)state;
    cm_leak_sort(&leak);
    cm_summary_count(&leak, &options, &counts, shown);
    assert_int_equal(counts.shown, 1);
    assert_int_equal(leak.cycles[shown[0]].fingerprint, 2);
    assert_int_equal(counts.more, 1);
    assert_int_equal(counts.library, 1);
    assert_int_equal(counts.small, 1);
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_non_null(strstr(out.bytes,
                           "lost: 1 events, 20 objects: too many\n"
                           "hidden: 1 more (--top), 1 in libraries, 1 under "
                           "1 MiB (--all), 4 suppressed\n"));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_colour_adds_sequences_only(void **state)
{
    const struct cm_summary_options options = {.colour = true};
    struct cm_leak leak = leak_of(LEAK_LAMBDA);
    struct cm_buffer out = {0}, plain = {0};

    (void)state;
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    for (const char *c = out.bytes; *c != '\0'; c++) {
        if (*c == '\x1b') {
            c += strcspn(c, "m");
            continue;
        }
        cm_buffer_add_char(&plain, *c);
    }
    assert_string_equal(cm_buffer_text(&plain), LAMBDA_TEXT);
    assert_true(out.length > plain.length);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
    cm_buffer_release(&plain);
}

static enum cm_status
attempt(void *context)
{
    const struct cm_summary_options options = {.all_frames = true};
    struct cm_buffer out = {0};
    enum cm_status status = cm_summary_write(context, &options, &out);

    cm_buffer_release(&out);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);

    (void)state;
    cm_fail_each(attempt, &leak);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finding),
        cmocka_unit_test(test_nothing_found),
        cmocka_unit_test(test_only_what_is_new),
        cmocka_unit_test(test_what_is_hidden_is_counted),
        cmocka_unit_test(test_colour_adds_sequences_only),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
