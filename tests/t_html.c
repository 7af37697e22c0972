/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"
#include "page_builder.h"

#include "fail_each.h"

#include "../reports/buffer.h"
#include "../reports/html.h"
#include "../reports/page.h"

static size_t
count_of(const char *text, const char *word)
{
    size_t count = 0;

    for (; (text = strstr(text, word)) != NULL; text++) {
        count++;
    }
    return count;
}

static void
write_page(struct cm_leak *leak, const struct cm_html_options *options,
           struct cm_buffer *out)
{
    cm_leak_sort(leak);
    assert_int_equal(cm_html_write(leak, options, out), CM_OK);
}

static void
test_frame(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0}, again = {0};
    struct cm_html_options options = {0};
    const char *page;

    (void)state;
    start_leak(&leak);
    add_ring(&leak, 3, "job.Node");
    write_page(&leak, &options, &out);
    page = cm_buffer_text(&out);
    assert_memory_equal(page, "<!DOCTYPE html><!-- written by cyclereport -->",
                        46);
    assert_non_null(strstr(page, "default-src 'none'"));
    assert_null(strstr(page, "unsafe-inline"));
    assert_null(strstr(page, "http:"));
    assert_null(strstr(page, "https:"));
    assert_null(strstr(page, " style=\""));
    assert_int_equal(count_of(page, "<article"), 1);
    assert_int_equal(count_of(page, "<li data-kind="), 1);
    assert_non_null(strstr(page, "made without Graphviz"));
    assert_non_null(strstr(page, "#1 DEAD CYCLE, 4.0 MiB"));
    write_page(&leak, &options, &again);
    assert_string_equal(page, cm_buffer_text(&again));
    cm_buffer_release(&out);
    cm_buffer_release(&again);
    cm_leak_release(&leak);
}

/* The policy names exactly the style and the script that are there. */
static void
test_policy(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};
    char hash[CM_PAGE_HASH_BYTES];
    const char *script;

    (void)state;
    start_leak(&leak);
    write_page(&leak, &options, &out);
    script = strstr(cm_buffer_text(&out), "<script>") + strlen("<script>");
    cm_page_hash(script, (size_t)(strstr(script, "</script>") - script), hash);
    assert_non_null(strstr(cm_buffer_text(&out), hash));
    script = strstr(cm_buffer_text(&out), "<style>") + strlen("<style>");
    cm_page_hash(script, (size_t)(strstr(script, "</style>") - script), hash);
    assert_non_null(strstr(cm_buffer_text(&out), hash));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

static void
test_nothing_found(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {.suppressed = 2};

    (void)state;
    start_leak(&leak);
    write_page(&leak, &options, &out);
    assert_non_null(
        strstr(cm_buffer_text(&out), "<h1>No dead cycle holds device memory"));
    assert_non_null(strstr(cm_buffer_text(&out), "2 suppressed"));
    assert_int_equal(count_of(cm_buffer_text(&out), "<article"), 0);
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* Each group: shown, in a library, under the bound; and what is over `top`. */
static void
test_groups(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {.min_bytes = MIB, .top = 2};
    const char *page;

    (void)state;
    start_leak(&leak);
    for (int i = 0; i < 6; i++) {
        add_ring(&leak, 2, "job.Node");
    }
    leak.cycles[3].library_package = text_id(&leak, "torch");
    leak.cycles[4].peak_bytes = 1000;
    leak.cycles[5].class = text_id(&leak, "resurrected");
    write_page(&leak, &options, &out);
    page = cm_buffer_text(&out);
    assert_int_equal(count_of(page, "<article"), 4);
    assert_non_null(strstr(page, "1 more in the report"));
    assert_non_null(strstr(page, "<summary>1 in libraries, 4.0 MiB"));
    assert_non_null(strstr(page, "<summary>1 under 1 MiB, 1000 B"));
    cm_buffer_clear(&out);
    options = (struct cm_html_options){.min_bytes = MIB, .all = true};
    write_page(&leak, &options, &out);
    assert_int_equal(count_of(cm_buffer_text(&out), "<article"), 5);
    assert_null(strstr(cm_buffer_text(&out), "in libraries,"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

static void
test_pick(void **state)
{
    struct cm_leak leak;
    struct cm_html_options options = {.min_bytes = MIB, .top = 2};
    size_t cycles[8];

    (void)state;
    start_leak(&leak);
    for (int i = 0; i < 4; i++) {
        add_ring(&leak, 2, "job.Node");
    }
    leak.cycles[1].class = text_id(&leak, "resurrected");
    assert_int_equal(cm_html_pick(&leak, &options, cycles, 8), 2);
    assert_int_equal(cycles[0], 0);
    assert_int_equal(cycles[1], 2);
    assert_int_equal(cm_html_pick(&leak, &options, cycles, 1), 1);
    cm_leak_release(&leak);
}

static void
test_drawings(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    const char *drawings[] = {"<svg class=\"drawing\"></svg>", NULL};
    struct cm_html_options options = {.drawings = drawings};

    (void)state;
    start_leak(&leak);
    add_ring(&leak, 2, "job.Node");
    add_ring(&leak, 2, "job.Node");
    write_page(&leak, &options, &out);
    assert_int_equal(count_of(cm_buffer_text(&out), drawings[0]), 1);
    assert_int_equal(count_of(cm_buffer_text(&out), "Not drawn"), 1);
    assert_null(strstr(cm_buffer_text(&out), "without Graphviz"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

static void
set_device(struct cm_leak *leak, struct cm_leak_device device)
{
    leak->devices = cm_calloc(1, sizeof(*leak->devices));
    assert_non_null(leak->devices);
    leak->devices[0] = device;
    leak->device_count = leak->device_capacity = 1;
}

static void
test_bar(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};
    struct cm_leak_device device = {.total = 1000 * MIB,
                                    .reserved = 500 * MIB,
                                    .peak_allocated = 400 * MIB,
                                    .dead_peak = 100 * MIB,
                                    .dead_peak_iteration = 7};

    (void)state;
    start_leak(&leak);
    add_ring(&leak, 2, "job.Node");
    device.name = text_id(&leak, "cuda:0");
    set_device(&leak, device);
    write_page(&leak, &options, &out);
    assert_non_null(strstr(cm_buffer_text(&out),
                           "<h1>Up to 100.0 of 400.0 MiB at cuda:0&#39;s peak "
                           "(iteration 7) was dead.</h1>"));
    assert_non_null(strstr(cm_buffer_text(&out),
                           "<rect class=\"dead\" x=\"0\" y=\"0\" "
                           "width=\"100\""));
    assert_non_null(strstr(cm_buffer_text(&out),
                           "<rect class=\"live\" x=\"100\" y=\"0\" "
                           "width=\"300\""));
    assert_non_null(strstr(cm_buffer_text(&out),
                           "<rect class=\"rest\" x=\"500\" y=\"0\" "
                           "width=\"500\""));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* What is known of the device, and why an allocation failed. */
static void
test_memory(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};
    struct cm_leak_device device;

    (void)state;
    start_leak(&leak);
    cm_leak_device_init(&device);
    device.name = text_id(&leak, "cuda:0");
    device.total = 1000 * MIB;
    device.allocated = 400 * MIB;
    device.reserved = 500 * MIB;
    set_device(&leak, device);
    write_page(&leak, &options, &out);
    assert_null(strstr(cm_buffer_text(&out), "id=\"memory\""));
    leak.devices[0].outside_frameworks = 200 * MIB;
    leak.devices[0].other_processes = 100 * MIB;
    leak.devices[0].free = 200 * MIB;
    leak.devices[0].asked_bytes = 900 * MIB;
    cm_buffer_clear(&out);
    write_page(&leak, &options, &out);
    assert_non_null(strstr(cm_buffer_text(&out), "id=\"memory\""));
    assert_non_null(strstr(cm_buffer_text(&out),
                           "<rect class=\"outside\" x=\"500\" y=\"0\" "
                           "width=\"200\""));
    assert_non_null(strstr(cm_buffer_text(&out),
                           "<rect class=\"rest\" x=\"800\" y=\"0\" "
                           "width=\"200\""));
    assert_non_null(strstr(cm_buffer_text(&out),
                           "<p class=\"why\">900 MiB asked, 100 MiB cached "
                           "and 200 MiB free: the rest is in use.</p>"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

static enum cm_status write_once(void *context);

/* Every list of a device longer than what is shown, and no memory. */
static void
test_memory_is_bounded(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};
    struct cm_leak_device device;

    (void)state;
    start_leak(&leak);
    cm_leak_device_init(&device);
    device.name = text_id(&leak, "cuda:0");
    device.pools = cm_calloc(100, sizeof(*device.pools));
    device.iterations = cm_calloc(4000, sizeof(int64_t));
    leak.held = cm_calloc(100, sizeof(*leak.held));
    assert_true(device.pools && device.iterations && leak.held);
    device.pool_count = 100;
    device.iteration_count = 1000;
    device.iterations[3] = 1;
    leak.held_count = 100;
    for (size_t i = 0; i < 100; i++) {
        leak.held[i].device = device.name;
    }
    set_device(&leak, device);
    write_page(&leak, &options, &out);
    assert_int_equal(count_of(cm_buffer_text(&out), "60 more in the report"),
                     2);
    assert_true(out.length < 60000);
    cm_buffer_release(&out);
    cm_fail_each(write_once, &leak);
    cm_leak_release(&leak);
}

static void
test_numbers_out_of_order(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};
    struct cm_leak_device device = {.total = 1,
                                    .reserved = 2,
                                    .peak_allocated = UINT64_MAX,
                                    .dead_peak = UINT64_MAX};

    (void)state;
    start_leak(&leak);
    add_ring(&leak, 2, "job.Node");
    leak.edges[1].made_at[0].line = 0;
    leak.edges[1].made_at[0].before = text_id(&leak, "a\nb");
    leak.cycles[0].count = UINT64_MAX;
    leak.cycles[0].total_bytes = UINT64_MAX;
    device.name = text_id(&leak, "cuda:0");
    set_device(&leak, device);
    write_page(&leak, &options, &out);
    assert_int_equal(count_of(cm_buffer_text(&out), "<article"), 1);
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* Elements of a page whose every text is `text`. */
static size_t
elements(const char *text)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {.all_frames = true};
    size_t result;

    start_leak(&leak);
    add_ring(&leak, 3, text);
    leak.cycles[0].advice = text_id(&leak, text);
    leak.cycles[0].rule = text_id(&leak, text);
    leak.cycles[0].library_package = text_id(&leak, text);
    leak.host = leak.torch = leak.lost_reason = text_id(&leak, text);
    leak.lost_events = 1;
    write_page(&leak, &options, &out);
    result = count_of(cm_buffer_text(&out), "<");
    cm_buffer_release(&out);
    cm_leak_release(&leak);
    return result;
}

static void
test_hostile_texts_add_no_element(void **state)
{
    size_t expected = elements("benign");

    (void)state;
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        if (hostile_texts[i][0] == '\0' || strchr(hostile_texts[i], '\n')
            || strchr(hostile_texts[i], '`')) {
            continue; /* these change how much there is to say */
        }
        assert_int_equal(elements(hostile_texts[i]), expected);
    }
}

static void
test_ten_thousand(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};

    (void)state;
    start_leak(&leak);
    for (int i = 0; i < 10000; i++) {
        add_ring(&leak, 3, "job.Node");
    }
    write_page(&leak, &options, &out);
    assert_true(out.length < 300 * 1024);
    assert_int_equal(count_of(cm_buffer_text(&out), "<article"),
                     CM_HTML_MAX_FINDINGS);
    assert_non_null(strstr(cm_buffer_text(&out), "9940 more in the report"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* Whatever stands in the document, the page has an end. */
static void
test_O9_page_is_bounded(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};
    char *text = cm_alloc(300001);

    (void)state;
    assert_non_null(text);
    memset(text, '<', 300000);
    text[300000] = '\0';
    start_leak(&leak);
    for (int i = 0; i < 50; i++) {
        add_ring(&leak, 3, "job.Node");
        leak.cycles[i].advice = text_id(&leak, text);
    }
    write_page(&leak, &options, &out);
    assert_true(out.length < CM_HTML_MAX_BYTES);
    assert_non_null(strstr(cm_buffer_text(&out), "the page is full"));
    assert_non_null(strstr(cm_buffer_text(&out), "</html>"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
    cm_free(text);
}

static void
test_long_path(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};

    (void)state;
    start_leak(&leak);
    add_ring(&leak, 1000, "job.Node");
    write_page(&leak, &options, &out);
    assert_true(out.length < 40000);
    assert_non_null(strstr(cm_buffer_text(&out), " more steps"));
    assert_non_null(strstr(cm_buffer_text(&out), "class=\"suspect"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

static enum cm_status
write_once(void *context)
{
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};
    enum cm_status status = cm_html_write(context, &options, &out);

    cm_buffer_release(&out);
    return status;
}

static void
test_out_of_memory(void **state)
{
    struct cm_leak leak;

    (void)state;
    start_leak(&leak);
    add_ring(&leak, 3, "job.Node");
    leak.cycles[0].rule = text_id(&leak, "self_reference");
    cm_fail_each(write_once, &leak);
    cm_leak_release(&leak);
}

static void
test_growth(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_html_options options = {.min_bytes = MIB};
    struct cm_buffer out = {0};
    size_t cycles[4];
    const char *page;

    (void)state;
    cm_leak_sort(&leak);
    assert_int_equal(cm_html_pick(&leak, &options, cycles, 4), 0);
    assert_int_equal(cm_html_write(&leak, &options, &out), CM_OK);
    page = cm_buffer_text(&out);
    assert_non_null(strstr(page, "<h1>cuda:0 grows by 4.0 MiB per iteration"));
    assert_non_null(strstr(page, "<h2>#1 Leak: activations</h2>"));
    assert_non_null(strstr(page, "<h2>#2 Lingering: gradients</h2>"));
    assert_non_null(strstr(page, "<pre>#1 LEAK +4.0 MiB per iteration since"));
    assert_non_null(strstr(page, "class=\"plot\" data-height=\"150\""));
    assert_non_null(strstr(page, "2 that settled, or are well"));
    assert_non_null(strstr(page, "may be switched off"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

/* One finding, its lines and their sum; each has its own row below. */
static void
test_a_fault_of_several_lines(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    struct cm_html_options options = {0};
    struct cm_buffer out = {0};
    const char *page, *row;
    size_t rows = 0;

    (void)state;
    cm_leak_sort(&leak);
    assert_int_equal(cm_html_write(&leak, &options, &out), CM_OK);
    page = cm_buffer_text(&out);
    assert_non_null(strstr(page, "<li><b>+635 KiB per iteration</b></li>"
                                 "<li><b>6.2 MiB</b> now in 30 blocks</li>"
                                 "<li>since iteration 1</li>"));
    assert_non_null(strstr(page, "iteration 12: 6.2 MiB</p>"));
    assert_non_null(strstr(page, "#1 +635 KiB / iteration"));
    assert_non_null(strstr(page, "<h3>Also allocated at</h3>"
                                 "<ul class=\"held\">\n<li><b>2.4 MiB</b>"));
    assert_non_null(strstr(page, "   also  net.py:5 forward: h5 = f(x)\n"));
    assert_non_null(strstr(page, "<h2>#5 Leak: other tensors</h2>"));
    assert_null(strstr(page, "<h2>#6 "));
    for (row = page; (row = strstr(row, "<a href=\"#finding-1\">#1</a> leak"));
         row++) {
        rows++;
    }
    assert_int_equal(rows, 3);
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

static void
expect_foot(const char *json, const char *expected)
{
    struct cm_leak leak = leak_of(json);
    struct cm_buffer out = {0};
    struct cm_html_options options = {0};

    write_page(&leak, &options, &out);
    assert_non_null(strstr(cm_buffer_text(&out), expected));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_what_was_done_unasked(void **state)
{
    (void)state;
    expect_foot(LEAK_HEAD "'collector':{'seen':0},"
                          "'looks':{'count':3,'duration_us':41000,"
                          "'growth_count':2,'growth_duration_us':500000,"
                          "'skipped':4,'collections':1,"
                          "'saved_bytes':2791728742,'run_us':130000000}}",
                "<p>None was seen.</p>\n<p>Looks: 3 scans, 41.0 ms, and 2 "
                "for growth, 500.0 ms: 0.4 % of the run; 4 put off.</p>\n"
                "<p>CUMEM_AUTO_COLLECT: 1 collection gave back 2.6 GiB.</p>");
    expect_foot(LEAK_HEAD "'looks':{'count':1,'duration_us':30,"
                          "'run_us':1000000}}",
                "<p>Looks: 1 scan, 30 \u00b5s: under 0.1 % of the run.</p>\n"
                "</section>");
    expect_foot(LEAK_HEAD "'looks':{'growth_count':1,"
                          "'growth_duration_us':2500}}",
                "<p>Looks: 0 scans, and 1 for growth, 2.5 ms.</p>");
    expect_foot(LEAK_HEAD "'looks':{'collections':2,'saved_bytes':1024}}",
                "<p>Not recorded on this page: cumem.watch() and the report "
                "at exit have them.</p>\n"
                "<p>CUMEM_AUTO_COLLECT: 2 collections gave back 1.0 KiB.</p>");
    expect_foot(LEAK_HEAD "'collector':{'seen':0}}",
                "<p>None was seen.</p>\n</section>");
}

static void
test_out_of_memory_with_growth(void **state)
{
    const char *const files[] = {LEAK_GROWTH, LEAK_FAULTS};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct cm_leak leak = leak_of(files[i]);

        cm_leak_sort(&leak);
        cm_fail_each(write_once, &leak);
        cm_leak_release(&leak);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame),
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_nothing_found),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_drawings),
        cmocka_unit_test(test_bar),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_numbers_out_of_order),
        cmocka_unit_test(test_hostile_texts_add_no_element),
        cmocka_unit_test(test_ten_thousand),
        cmocka_unit_test(test_O9_page_is_bounded),
        cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_a_fault_of_several_lines),
        cmocka_unit_test(test_what_was_done_unasked),
        cmocka_unit_test(test_out_of_memory_with_growth),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
