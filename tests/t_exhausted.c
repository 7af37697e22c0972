/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * That memory ran out, in the file and in words. */
#include "heap_builder.h"
#include "leak_case.h"

#include "../reports/digest.h"
#include "../reports/exhausted.h"
#include "../reports/growth.h"
#include "../reports/leak_json.h"
#include "../reports/memory_use.h"
#include "../reports/summary.h"
#include "digest_case.h"

#define RAN_OUT                                                               \
    "'exhausted':{'iteration':7,'error':'MemoryError','device':'cuda:1',"     \
    "'asked_bytes':4294967296,'holders':[{'way':'`a.kept` (list, 9 items)',"  \
    "'bytes':9437184},{'way':'`b`','bytes':1024}]}"

static void
expect_text(const char *json, bool alone, const char *expected)
{
    struct cm_leak leak = leak_of(json);
    struct cm_buffer out = {0};
    struct cm_summary_options options = {.exhausted = alone};

    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_words(void **state)
{
    (void)state;
    expect_text(LEAK_HEAD RAN_OUT "}", true,
                "cumem: memory ran out on cuda:1 at iteration 7: MemoryError, "
                "4.0 GiB asked for\n"
                "   held  9.0 MiB: `a.kept` (list, 9 items)\n"
                "   held  1.0 KiB: `b`\n");
    expect_text(LEAK_HEAD RAN_OUT "}", false,
                "cumem: memory ran out on cuda:1 at iteration 7: MemoryError, "
                "4.0 GiB asked for\n"
                "   held  9.0 MiB: `a.kept` (list, 9 items)\n"
                "   held  1.0 KiB: `b`\n");
    expect_text(LEAK_HEAD "'exhausted':{'iteration':null,'error':''}}", true,
                "cumem: memory ran out\n");
}

static void
test_what_is_written_is_read(void **state)
{
    struct cm_leak leak = leak_of(LEAK_HEAD RAN_OUT "}"), again = {0};
    struct cm_buffer first = {0}, second = {0};
    char error[CM_LEAK_JSON_ERROR_BYTES];

    (void)state;
    assert_int_equal(cm_leak_json_write(&leak, &first), CM_OK);
    assert_non_null(strstr(first.bytes, "\"exhausted\":{\"iteration\":7,"));
    assert_int_equal(
        cm_leak_json_read(first.bytes, first.length, &again, error), CM_OK);
    assert_int_equal(cm_leak_json_write(&again, &second), CM_OK);
    assert_string_equal(first.bytes, second.bytes);
    cm_leak_release(&leak);
    cm_leak_release(&again);
    cm_buffer_release(&first);
    cm_buffer_release(&second);
}

static void
test_the_largest_of_what_was_seen(void **state)
{
    struct cm_leak leak = leak_of(LEAK_HEAD "'pid':1}");
    struct cm_exhausted_use use = {.error = "E",
                                   .device = "",
                                   .asked_bytes = CM_LEAK_UNKNOWN,
                                   .ways = {"a"},
                                   .bytes = {5},
                                   .count = 1};
    struct cm_buffer out = {0};

    (void)state;
    leak.iteration = 3;
    assert_false(leak.exhausted.known);
    assert_int_equal(cm_exhausted_set(&leak, &use), CM_OK);
    cm_exhausted_add_sentence(&leak, &out);
    cm_exhausted_add_kept(&leak, 0, &out);
    assert_string_equal(cm_buffer_text(&out),
                        "memory ran out at iteration 3: E5 B: a");
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

/* The device is full: not in so many iterations. */
static void
test_what_is_full_is_not_full_soon(void **state)
{
    struct cm_leak leak = leak_of(LEAK_HEAD "'pid':1}");
    struct cm_buffer out = {0};

    (void)state;
    assert_true(cm_growth_add_full(&leak, 5, 0.2, &out));
    assert_string_equal(cm_buffer_text(&out),
                        "full in about 5 iterations (1 s)");
    leak.exhausted.known = true;
    assert_false(cm_growth_add_full(&leak, 5, 0.2, &out));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
expect_warning(struct cm_digest *digest, bool all)
{
    bool finding = !all;
    char *text = cm_digest_take_warning(digest, &finding);

    assert_non_null(text);
    assert_true(finding == all);
    assert_ptr_equal(strstr(text, "cumem: memory ran out: E\n"), text);
    assert_true((strstr(text, "#1 DEAD CYCLE, 4.0 MiB") != NULL) == all);
    cm_free(text);
    assert_null(cm_digest_take_warning(digest, NULL));
}

/* What is found until all is asked for is part of that one text. */
static void
test_all_is_told_at_once(void **state)
{
    struct built *built = built_new(
        "a Node; b Node; t Tensor 4194304; a .link b; b .link a; a .t t");
    struct cm_digest *digest = cm_digest_new(built->records);
    struct cm_exhausted_use use = {
        .error = "E", .device = "", .asked_bytes = CM_LEAK_UNKNOWN};

    (void)state;
    cm_digest_output(digest, NULL, true, 0);
    assert_int_equal(cm_digest_exhausted(digest, &use), CM_OK);
    assert_int_equal(cm_digest_add(digest, &built->heap), CM_OK);
    assert_false(cm_digest_warns(digest));
    cm_digest_exhausted_all(digest);
    expect_warning(digest, true);
    cm_digest_exhausted_all(digest);
    assert_false(cm_digest_warns(digest));
    assert_int_equal(cm_digest_exhausted(digest, &use), CM_OK);
    expect_warning(digest, false);
    cm_digest_free(digest);
    built_free(built);
}

/* With all else; that it stopped is told from then on. */
static void
test_a_leak_is_told_with_it(void **state)
{
    struct built *built = built_new("a Node");
    struct cm_digest *digest = cm_digest_new(built->records);
    struct cm_exhausted_use use = {
        .error = "E", .device = "", .asked_bytes = CM_LEAK_UNKNOWN};
    char *text;

    (void)state;
    cm_digest_output(digest, NULL, true, 0);
    assert_int_equal(cm_digest_exhausted(digest, &use), CM_OK);
    assert_int_equal(cm_case_grow(digest, "leak", 8192), CM_OK);
    assert_int_equal(cm_digest_write(digest, true), CM_OK);
    assert_false(cm_digest_warns(digest));
    cm_digest_exhausted_all(digest);
    text = cm_digest_take_warning(digest, NULL);
    assert_non_null(strstr(text, "#1 LEAK "));
    cm_free(text);
    assert_int_equal(cm_case_grow(digest, "settled", 8192), CM_OK);
    assert_int_equal(cm_digest_write(digest, true), CM_OK);
    text = cm_digest_take_warning(digest, NULL);
    assert_ptr_equal(strstr(text, "cumem: stopped growing: "), text);
    cm_free(text);
    assert_null(cm_digest_take_warning(digest, NULL));
    cm_digest_free(digest);
    built_free(built);
}

/* The row of the moment, and that it was one. */
static void
run_out(struct cm_digest *digest, const char *device, uint64_t asked)
{
    struct cm_exhausted_use use = {
        .error = "E", .device = device, .asked_bytes = asked};
    struct cm_device_use row;

    cm_device_use_init(&row, device);
    row.total = 100;
    row.free = 8;
    row.asked_bytes = asked;
    cm_digest_device(digest, &row);
    assert_int_equal(cm_digest_exhausted(digest, &use), CM_OK);
    cm_digest_exhausted_all(digest);
}

static void
expect_reason(struct cm_digest *digest, const char *expected)
{
    char *text = cm_digest_take_warning(digest, NULL);

    assert_non_null(text);
    assert_ptr_equal(strstr(text, "cumem: memory ran out on cuda:"), text);
    if (expected == NULL) {
        assert_null(strstr(text, "   why   "));
    }
    else {
        assert_non_null(strstr(text, expected));
    }
    cm_free(text);
    assert_null(cm_digest_take_warning(digest, NULL));
}

/* Who has caught the first failure and dies of the second reads why. */
static void
test_another_reason_is_told(void **state)
{
    struct built *built = built_new("a Node");
    struct cm_digest *digest = cm_digest_new(built->records);

    (void)state;
    cm_digest_output(digest, NULL, true, 0);
    run_out(digest, "cuda:0", 9);
    expect_reason(digest, "   why   9 B asked, 0 B cached and 8 B free: ");
    run_out(digest, "cuda:0", 9);
    expect_reason(digest, NULL);
    run_out(digest, "cuda:0", 10);
    expect_reason(digest, "\nmemory cuda:0 (100 B): free 8 B\n"
                          "   why   10 B asked, 0 B cached and 8 B free: ");
    run_out(digest, "cuda:0", 200);
    expect_reason(digest, "   why   200 B asked, more than the device has");
    run_out(digest, "cuda:1", 200);
    expect_reason(digest, "\nmemory cuda:1 ");
    run_out(digest, "cuda:1", 200);
    expect_reason(digest, NULL);
    cm_digest_free(digest);
    built_free(built);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_the_largest_of_what_was_seen),
        cmocka_unit_test(test_what_is_full_is_not_full_soon),
        cmocka_unit_test(test_all_is_told_at_once),
        cmocka_unit_test(test_a_leak_is_told_with_it),
        cmocka_unit_test(test_another_reason_is_told),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
