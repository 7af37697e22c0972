/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <stdlib.h> // free()

#include "page_builder.h"

#include <cgraph.h>
#include <time.h>

#include "../reports/child.h"
#include "../reports/dot.h"
#include "../reports/escape.h"

static double
seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t
count_of(const char *text, const char *word)
{
    size_t count = 0;

    for (; (text = strstr(text, word)) != NULL; text++) {
        count++;
    }
    return count;
}

/* ===== DOT ============================================================== */

/* Reads the text, writes it again, and expects the same. */
static void
expect_round_trip(const char *text, size_t nodes, size_t edges)
{
    Agraph_t *graph = agmemread(text);
    char *again = NULL;
    size_t bytes = 0;
    FILE *file;

    assert_non_null(graph);
    assert_int_equal(agnnodes(graph), nodes);
    assert_int_equal(agnedges(graph), edges);
    file = open_memstream(&again, &bytes);
    assert_non_null(file);
    assert_int_equal(agwrite(graph, file), 0);
    fclose(file);
    assert_string_equal(again, text);
    free(again);
    agclose(graph);
}

static void
expect_label(const char *text, const char *node, const char *label)
{
    Agraph_t *graph = agmemread(text);
    char name[8];
    struct cm_buffer guarded = {0};
    Agnode_t *found;

    assert_non_null(graph);
    snprintf(name, sizeof(name), "%s", node);
    found = agnode(graph, name, 0);
    assert_non_null(found);
    cm_escape_graphviz(&guarded, label);
    snprintf(name, sizeof(name), "label");
    assert_string_equal(agget(found, name), cm_buffer_text(&guarded));
    cm_buffer_release(&guarded);
    agclose(graph);
}

static void
test_O8_dot_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        struct cm_leak leak;
        struct cm_buffer out = {0};

        start_leak(&leak);
        add_ring(&leak, 3, hostile_texts[i]);
        assert_int_equal(cm_dot_write(&leak, 0, &out), CM_OK);
        expect_round_trip(cm_buffer_text(&out), 4, 4);
        expect_label(cm_buffer_text(&out), "n1", hostile_texts[i]);
        cm_buffer_release(&out);
        cm_leak_release(&leak);
    }
}

static void
test_dot_long_label(void **state)
{
    struct cm_leak leak;
    struct cm_buffer out = {0};
    char *text = cm_alloc(40001);

    (void)state;
    assert_non_null(text);
    memset(text, '\\', 40000);
    text[40000] = '\0';
    start_leak(&leak);
    add_ring(&leak, 2, text);
    assert_int_equal(cm_dot_write(&leak, 0, &out), CM_OK);
    expect_round_trip(cm_buffer_text(&out), 3, 3);
    cm_buffer_release(&out);
    cm_leak_release(&leak);
    cm_free(text);
}

/* ===== SVG ============================================================== */

/* One element, nothing that runs or refers, no name of ours in two places. */
static void
expect_harmless(const char *svg)
{
    static const char *const forbidden[] = {
        "<script", "<img",  "<image", "<a ", "<use",   "<foreignObject",
        "href",    "id=\"", "style=", "<!",  "onload", "<b>",
    };

    assert_non_null(svg);
    assert_memory_equal(svg, "<svg ", 5);
    assert_int_equal(count_of(svg, "<svg"), 1);
    assert_int_equal(count_of(svg, "</svg>"), 1);
    assert_int_equal(count_of(svg, "<g "), count_of(svg, "</g>"));
    assert_int_equal(count_of(svg, "<text"), count_of(svg, "</text>"));
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        assert_null(strstr(svg, forbidden[i]));
    }
}

static void
test_svg_is_harmless(void **state)
{
    struct cm_leak leak;
    char *svgs[HOSTILE_COUNT];
    size_t cycles[HOSTILE_COUNT];

    (void)state;
    start_leak(&leak);
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        add_ring(&leak, 3, hostile_texts[i]);
        cycles[i] = i;
    }
    assert_int_equal(cm_dot_svgs(&leak, cycles, HOSTILE_COUNT, svgs), CM_OK);
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        expect_harmless(svgs[i]);
        assert_int_equal(count_of(svgs[i], "<rect"), 4);
        assert_int_equal(count_of(svgs[i], "class=\"e x\""), 1);
        cm_free(svgs[i]);
    }
    cm_leak_release(&leak);
}

static void
test_svg_is_the_same_again(void **state)
{
    struct cm_leak leak;
    struct cm_buffer first = {0}, second = {0};

    (void)state;
    start_leak(&leak);
    add_ring(&leak, 8, "Node");
    assert_int_equal(cm_dot_svg(&leak, 0, &first), CM_OK);
    assert_int_equal(cm_dot_svg(&leak, 0, &second), CM_OK);
    assert_string_equal(cm_buffer_text(&first), cm_buffer_text(&second));
    assert_non_null(strstr(cm_buffer_text(&first), "<style>"));
    cm_buffer_release(&first);
    cm_buffer_release(&second);
    cm_leak_release(&leak);
}

/* ===== bounds =========================================================== */

/* `degree` references from each of `count` objects, to pseudo-random ones. */
static void
make_random(struct cm_leak *leak, uint32_t count, uint32_t degree)
{
    uint32_t *members = cm_alloc((count + 1) * sizeof(*members));
    uint32_t seed = 12345, tensor, cut = 0;

    assert_non_null(members);
    start_leak(leak);
    for (uint32_t i = 0; i < count; i++) {
        members[i] = add_vertex(leak, "object", "Node");
    }
    for (uint32_t i = 0; i < count; i++) {
        cut = add_edge(leak, members[i], members[(i + 1) % count], ".next");
        for (uint32_t j = 0; j < degree; j++) {
            seed = seed * 1664525u + 1013904223u;
            add_edge(leak, members[i], members[seed % count], ".other");
        }
    }
    tensor = add_tensor(leak, MIB, "Tensor [4] float32");
    add_edge(leak, members[0], tensor, ".value");
    add_cycle(leak, members, count, &tensor, 1, cut);
    cm_free(members);
}

static void
make_hub(struct cm_leak *leak, uint32_t count)
{
    uint32_t *members = cm_alloc((count + 1) * sizeof(*members));
    uint32_t tensor, cut = 0;

    assert_non_null(members);
    start_leak(leak);
    members[0] = add_vertex(leak, "container", "dict");
    for (uint32_t i = 1; i < count; i++) {
        members[i] = add_vertex(leak, "object", "Node");
        add_edge(leak, members[0], members[i], "['k']");
        cut = add_edge(leak, members[i], members[0], ".hub");
    }
    tensor = add_tensor(leak, MIB, "Tensor [4] float32");
    add_edge(leak, members[count - 1], tensor, ".value");
    add_cycle(leak, members, count, &tensor, 1, cut);
    cm_free(members);
}

static void
make_parallel(struct cm_leak *leak, uint32_t count)
{
    uint32_t members[2], tensor, cut = 0;

    start_leak(leak);
    members[0] = add_vertex(leak, "object", "A");
    members[1] = add_vertex(leak, "object", "B");
    for (uint32_t i = 0; i < count; i++) {
        add_edge(leak, members[0], members[1], ".many");
        cut = add_edge(leak, members[1], members[0], ".back");
    }
    tensor = add_tensor(leak, MIB, "Tensor [4] float32");
    add_edge(leak, members[0], tensor, ".value");
    add_cycle(leak, members, 2, &tensor, 1, cut);
}

/* Both drawings come, soon; releases the document. */
static void
expect_drawn(struct cm_leak *leak)
{
    struct cm_buffer whole = {0};
    size_t cycle = 0;
    char *brief = NULL;
    double start = seconds();

    assert_int_equal(cm_dot_svg(leak, 0, &whole), CM_OK);
    assert_true(whole.length > 1000);
    assert_int_equal(cm_dot_svgs(leak, &cycle, 1, &brief), CM_OK);
    expect_harmless(brief);
    assert_true(strlen(brief) < 20000);
    assert_true(seconds() - start < 40);
    cm_free(brief);
    cm_buffer_release(&whole);
    cm_leak_release(leak);
}

static void
test_O5_hard_shapes(void **state)
{
    struct cm_leak leak;

    (void)state;
    make_random(&leak, 140, 1);
    expect_drawn(&leak);
    make_random(&leak, 200, 2);
    expect_drawn(&leak);
    make_random(&leak, 300, 2);
    expect_drawn(&leak);
    make_hub(&leak, 5000);
    expect_drawn(&leak);
    make_parallel(&leak, 1000);
    expect_drawn(&leak);
    start_leak(&leak);
    add_ring(&leak, 20000, "Node");
    expect_drawn(&leak);
}

static size_t
rects_within(const struct cm_leak *leak, struct cm_child_limits limits,
             enum cm_status expected)
{
    struct cm_buffer out = {0};
    size_t rects;

    assert_int_equal(cm_dot_svg_within(leak, 0, &limits, &out), expected);
    rects = count_of(cm_buffer_text(&out), "<rect");
    cm_buffer_release(&out);
    return rects;
}

/* O6: what takes too long whole is drawn in brief, or not at all. */
static void
test_O6_cheaper_ways(void **state)
{
    struct cm_child_limits limits = {
        .bytes = (size_t)1 << 30, .cpu_seconds = 60, .wall_ms = 60000};
    struct cm_leak leak;

    (void)state;
    make_random(&leak, 1900, 3);
    assert_int_equal(rects_within(&leak, limits, CM_OK), 1901);
    limits.wall_ms = 400;
    assert_in_range(rects_within(&leak, limits, CM_OK), 2, 12);
    limits.wall_ms = 0;
    assert_int_equal(rects_within(&leak, limits, CM_LIMIT), 0);
    cm_leak_release(&leak);
}

static void
test_nothing_to_draw(void **state)
{
    struct cm_leak leak;

    (void)state;
    start_leak(&leak);
    assert_int_equal(cm_dot_svgs(&leak, NULL, 0, NULL), CM_OK);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_O8_dot_round_trip),
        cmocka_unit_test(test_dot_long_label),
        cmocka_unit_test(test_svg_is_harmless),
        cmocka_unit_test(test_svg_is_the_same_again),
        cmocka_unit_test(test_O5_hard_shapes),
        cmocka_unit_test(test_O6_cheaper_ways),
        cmocka_unit_test(test_nothing_to_draw),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
