/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "page_builder.h"

#include "fail_each.h"

#include "../reports/draw.h"

static void
draw(const struct cm_leak *leak, enum cm_draw_way way, size_t most,
     struct cm_drawing *drawing)
{
    struct cm_draw self = {0};

    assert_int_equal(cm_draw_init(&self, leak), CM_OK);
    assert_int_equal(cm_draw_cycle(&self, 0, way, most, drawing), CM_OK);
    cm_draw_release(&self);
}

static const struct cm_draw_edge *
find_edge(const struct cm_drawing *drawing, const char *tail, const char *head)
{
    for (size_t i = 0; i < drawing->edge_count; i++) {
        const struct cm_draw_edge *edge = &drawing->edges[i];

        if (strcmp(drawing->nodes[edge->tail].title, tail) == 0
            && strcmp(drawing->nodes[edge->head].title, head) == 0) {
            return edge;
        }
    }
    fail_msg("no reference from %s to %s", tail, head);
    return NULL;
}

/* Trainer with an instance dict, a closure and a list. */
static void
make_trainer(struct cm_leak *leak)
{
    uint32_t members[5], tensor, list, cut;

    start_leak(leak);
    members[0] = add_vertex(leak, "object", "Trainer");
    members[1] = add_vertex(leak, "container", "dict");
    members[2] = add_vertex(leak, "function", "function <lambda>");
    members[3] = add_vertex(leak, "container", "tuple");
    members[4] = add_vertex(leak, "cell", "cell self");
    list = add_vertex(leak, "container", "list");
    tensor = add_tensor(leak, MIB, "Tensor [4] float32 cuda:0 1.0 MiB");
    add_edge(leak, members[0], members[1], "__dict__");
    add_edge(leak, members[1], members[2], "['cb']");
    add_edge(leak, members[2], members[3], "__closure__");
    add_edge(leak, members[3], members[4], "cell self");
    cut = add_edge(leak, members[4], members[0], "cell self");
    add_edge(leak, members[1], list, "['acts']");
    add_edge(leak, list, tensor, "[0]");
    add_cycle(leak, members, 5, &tensor, 1, cut);
}

static void
test_containers_are_folded(void **state)
{
    struct cm_leak leak;
    struct cm_drawing drawing = {0};

    (void)state;
    make_trainer(&leak);
    draw(&leak, CM_DRAW_FOLDED, CM_DRAW_BRIEF, &drawing);
    assert_int_equal(drawing.node_count, 4);
    assert_int_equal(drawing.edge_count, 4);
    assert_string_equal(find_edge(&drawing, "Trainer", "<lambda>")->label,
                        ".cb");
    assert_string_equal(
        find_edge(&drawing, "Trainer", "Tensor [4] float32")->label,
        ".acts[0]");
    assert_true(find_edge(&drawing, "cell self", "Trainer")->suspect);
    assert_true(drawing.nodes[0].owner && drawing.nodes[0].member);
    assert_string_equal(drawing.nodes[3].detail, "1.0 MiB cuda:0");
    cm_drawing_release(&drawing);
    cm_leak_release(&leak);
}

static void
test_raw_has_everything(void **state)
{
    struct cm_leak leak;
    struct cm_drawing drawing = {0};

    (void)state;
    make_trainer(&leak);
    draw(&leak, CM_DRAW_RAW, 0, &drawing);
    assert_int_equal(drawing.node_count, 7);
    assert_int_equal(drawing.edge_count, 7);
    assert_string_equal(
        find_edge(&drawing, "function <lambda>", "tuple")->label,
        "__closure__");
    cm_drawing_release(&drawing);
    cm_leak_release(&leak);
}

/* A ring of containers keeps one of them; a long row keeps some. */
static void
test_rings_and_rows_of_containers(void **state)
{
    struct cm_leak leak;
    struct cm_drawing drawing = {0};
    uint32_t members[40], tensor, cut = 0;

    (void)state;
    start_leak(&leak);
    for (uint32_t i = 0; i < 40; i++) {
        members[i] = add_vertex(&leak, "container", "list");
    }
    for (uint32_t i = 0; i < 40; i++) {
        cut = add_edge(&leak, members[i], members[(i + 1) % 40], "[0]");
    }
    tensor = add_tensor(&leak, MIB, "Tensor [4] float32");
    add_edge(&leak, members[20], tensor, "[1]");
    add_cycle(&leak, members, 40, &tensor, 1, cut);
    draw(&leak, CM_DRAW_FOLDED, CM_DRAW_BRIEF, &drawing);
    assert_true(drawing.node_count >= 2 && drawing.node_count <= 12);
    for (size_t i = 0; i < drawing.edge_count; i++) {
        assert_true(strlen(drawing.edges[i].label) <= 9 * strlen("[0]"));
    }
    cm_drawing_release(&drawing);
    cm_leak_release(&leak);
}

static void
test_counts(void **state)
{
    struct cm_leak leak;
    struct cm_drawing drawing = {0};
    uint32_t members[101], tensors[100], cut = 0;
    uint32_t folded = 0, tensors_folded = 0;
    uint64_t bytes = 0;

    (void)state;
    start_leak(&leak);
    members[0] = add_vertex(&leak, "object", "Hub");
    for (uint32_t i = 1; i <= 100; i++) {
        members[i] = add_vertex(&leak, "object", "Spoke");
        tensors[i - 1] = add_tensor(&leak, i * MIB, "Tensor [4] float32");
        add_edge(&leak, members[0], members[i], ".spoke");
        cut = add_edge(&leak, members[i], members[0], ".hub");
        add_edge(&leak, members[i], tensors[i - 1], ".value");
    }
    add_cycle(&leak, members, 101, tensors, 100, cut);
    draw(&leak, CM_DRAW_FOLDED, CM_DRAW_BRIEF, &drawing);
    assert_true(drawing.node_count <= CM_DRAW_BRIEF);
    for (size_t i = 0; i < drawing.node_count; i++) {
        const struct cm_draw_node *node = &drawing.nodes[i];

        bytes += node->bytes;
        folded += node->vertex == 0 && node->member ? node->folded : 0;
        tensors_folded +=
            node->vertex == 0 && !node->member ? node->folded : 0;
    }
    assert_int_equal(bytes, 5050 * MIB);
    assert_int_equal(tensors_folded, 99);
    assert_in_range(folded, 98, 100);
    assert_true(find_edge(&drawing, "Spoke", "Hub")->suspect);
    cm_drawing_release(&drawing);
    cm_leak_release(&leak);
}

static void
test_parallel_references(void **state)
{
    struct cm_leak leak;
    struct cm_drawing drawing = {0};
    uint32_t members[2], tensor, cut = 0;

    (void)state;
    start_leak(&leak);
    members[0] = add_vertex(&leak, "object", "A");
    members[1] = add_vertex(&leak, "object", "B");
    for (uint32_t i = 0; i < 1000; i++) {
        add_edge(&leak, members[0], members[1], ".many");
        cut = add_edge(&leak, members[1], members[0], i == 999 ? ".back" : "");
    }
    tensor = add_tensor(&leak, MIB, "Tensor [4] float32");
    add_edge(&leak, members[0], tensor, ".value");
    add_cycle(&leak, members, 2, &tensor, 1, cut);
    draw(&leak, CM_DRAW_MERGED, 0, &drawing);
    assert_int_equal(drawing.edge_count, 3);
    assert_int_equal(find_edge(&drawing, "A", "B")->count, 1000);
    assert_true(find_edge(&drawing, "B", "A")->suspect);
    assert_string_equal(find_edge(&drawing, "B", "A")->label, ".back");
    cm_drawing_release(&drawing);
    cm_leak_release(&leak);
}

static enum cm_status
draw_each_way(void *context)
{
    enum cm_status status = CM_OK;

    for (int way = CM_DRAW_RAW; status == CM_OK && way <= CM_DRAW_FOLDED;
         way++) {
        struct cm_draw self = {0};
        struct cm_drawing drawing = {0};

        status = cm_draw_init(&self, context);
        if (status == CM_OK) {
            status =
                cm_draw_cycle(&self, 0, (enum cm_draw_way)way, 3, &drawing);
        }
        cm_drawing_release(&drawing);
        cm_draw_release(&self);
    }
    return status;
}

static void
test_out_of_memory(void **state)
{
    struct cm_leak leak;

    (void)state;
    make_trainer(&leak);
    cm_fail_each(draw_each_way, &leak);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_containers_are_folded),
        cmocka_unit_test(test_raw_has_everything),
        cmocka_unit_test(test_rings_and_rows_of_containers),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_parallel_references),
        cmocka_unit_test(test_out_of_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
