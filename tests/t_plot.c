/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../reports/plot.h"

static const char *const classes[] = {"parameter", "other"};

static struct cm_plot
plot_of(const double *x, const uint64_t *bytes, size_t count)
{
    return (struct cm_plot){.count = count,
                            .layers = 2,
                            .x = x,
                            .bytes = bytes,
                            .classes = classes,
                            .unit = "iteration",
                            .height = 100,
                            .since = -1};
}

/* The highest layer first, each down to the ground. */
static void
test_layers_are_stacked(void **state)
{
    const double x[] = {10, 20};
    const uint64_t bytes[] = {256, 256, 512, 512};
    struct cm_plot plot = plot_of(x, bytes, 2);
    struct cm_buffer out = {0};

    (void)state;
    cm_plot_add(&plot, &out);
    assert_non_null(
        strstr(cm_buffer_text(&out),
               "<path class=\"other\" d=\"M0 1000L0 500 2000 0 2000 1000Z\"/>"
               "<path class=\"parameter\" d=\"M0 1000L0 750 2000 500 2000 "
               "1000Z\"/>"));
    assert_non_null(strstr(out.bytes, "data-unit=\"1\" data-rows=\"10 0 256 "
                                      "256;10 0 256 256\""));
    assert_non_null(strstr(out.bytes, ">512 B</text>"));
    assert_null(strstr(out.bytes, "since"));
    cm_buffer_release(&out);
}

static void
test_a_layer_without_bytes_is_left_out(void **state)
{
    const double x[] = {0, 1};
    const uint64_t bytes[] = {5, 0, 6, 0};
    struct cm_plot plot = plot_of(x, bytes, 2);
    struct cm_buffer out = {0};

    (void)state;
    cm_plot_add(&plot, &out);
    assert_null(strstr(cm_buffer_text(&out), "class=\"other\""));
    cm_buffer_release(&out);
}

/* Of a thousand points thirty are drawn, the highest among them. */
static void
test_the_highest_point_stays(void **state)
{
    double x[1000] = {0};
    uint64_t bytes[2000] = {0};
    struct cm_plot plot = plot_of(x, bytes, 1000);
    struct cm_buffer out = {0};

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        x[i] = (double)i;
        bytes[2 * i] = i == 477 ? 4096 : 16;
        bytes[2 * i + 1] = 0;
    }
    plot.most = 30;
    cm_plot_add(&plot, &out);
    assert_non_null(strstr(cm_buffer_text(&out), " 955 0 "));
    cm_buffer_release(&out);
}

/* Texts of lines that end beside each other do not cover each other. */
static void
test_slopes_are_apart(void **state)
{
    static const int64_t series[][3] = {{0, 0, 0}, {9, 1, 500}};
    const double x[] = {0, 9};
    const uint64_t bytes[] = {1000, 0, 1000, 0};
    struct cm_plot plot = plot_of(x, bytes, 2);
    struct cm_buffer out = {0};

    (void)state;
    plot.line_count = 2;
    plot.lines[0] = (struct cm_plot_line){7, 4194304, "iteration", series, 2};
    plot.lines[1] = (struct cm_plot_line){8, 1, "time slice", series, 2};
    cm_plot_add(&plot, &out);
    assert_non_null(strstr(cm_buffer_text(&out),
                           "y=\"50\">#7 +4.0 MiB / iteration</text>"));
    assert_non_null(strstr(out.bytes, "y=\"64\">#8 +1 B / time slice</text>"));
    assert_non_null(strstr(out.bytes, "data-line=\"0 0;9 500\""));
    cm_buffer_release(&out);
}

/* The largest numbers, and a single point: an end, and nothing outside. */
static void
test_numbers_at_the_edge(void **state)
{
    const double most = 9007199254740992.0;
    const double x[] = {most - 2, most}, one[] = {most};
    const uint64_t bytes[] = {UINT64_C(1) << 53, UINT64_C(1) << 53, 0, 0};
    struct cm_plot plot = plot_of(x, bytes, 2);
    struct cm_buffer out = {0};

    (void)state;
    plot.since = most;
    cm_plot_add(&plot, &out);
    plot = plot_of(one, bytes, 1);
    cm_plot_add(&plot, &out);
    plot = plot_of(one, bytes + 2, 1);
    cm_plot_add(&plot, &out);
    assert_int_equal(cm_buffer_status(&out), CM_OK);
    assert_true(out.length < 8000);
    assert_null(strstr(out.bytes, "nan"));
    assert_null(strstr(out.bytes, "inf"));
    cm_buffer_release(&out);
}

static void
test_spark(void **state)
{
    static const int64_t series[][3] = {{5, 0, 0}, {10, 0, 50}, {15, 0, 100}};
    struct cm_buffer out = {0};

    (void)state;
    cm_plot_add_spark(series, 1, &out);
    assert_int_equal(out.length, 0);
    cm_plot_add_spark(series, 3, &out);
    assert_non_null(strstr(cm_buffer_text(&out), "\"0 23 50 12 100 1\""));
    cm_buffer_release(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_are_stacked),
        cmocka_unit_test(test_a_layer_without_bytes_is_left_out),
        cmocka_unit_test(test_the_highest_point_stays),
        cmocka_unit_test(test_slopes_are_apart),
        cmocka_unit_test(test_numbers_at_the_edge),
        cmocka_unit_test(test_spark),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
