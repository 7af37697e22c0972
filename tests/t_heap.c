/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "../detector/heap.h"
#include "fail_each.h"

/* Three nodes, 1 -> 2, 1 -> 3, 3 -> 1, with one storage used by 2 and 3. */
static void
build(struct cm_heap *heap)
{
    struct cm_storage storage = {.key = 0xabc, .bytes = 512, .use_count = 2};
    struct cm_node node = {.species = CM_OBJECT, .first_edge = 77};
    struct cm_node_id id;
    assert_int_equal(cm_heap_add_node(heap, &node, &id), CM_OK);
    assert_int_equal(id.index, 1);
    node.species = CM_TENSOR;
    for (uint32_t expected = 2; expected <= 3; expected++) {
        assert_int_equal(cm_heap_add_storage(heap, &storage, &node.storage),
                         CM_OK);
        assert_int_equal(cm_heap_add_node(heap, &node, &id), CM_OK);
        assert_int_equal(id.index, expected);
    }
    const struct cm_edge edges[] = {
        {.tail = 1, .head = 2, .role = CM_ATTRIBUTE},
        {.tail = 1, .head = 3, .role = CM_ITEM},
        {.tail = 3, .head = 1, .role = CM_ATTRIBUTE},
    };
    for (size_t at = 0; at < 3; at++) {
        assert_int_equal(cm_heap_add_edge(heap, &edges[at]), CM_OK);
    }
    assert_int_equal(cm_heap_seal(heap), CM_OK);
}

static void
is_whole_when_empty(void **state)
{
    (void)state;
    struct cm_heap heap = {0};
    assert_int_equal(cm_heap_seal(&heap), CM_OK);
    assert_null(cm_heap_check(&heap));
    assert_int_equal(cm_heap_footprint(&heap), 0);
    cm_heap_release(&heap);
}

static void
gives_each_node_its_edges(void **state)
{
    (void)state;
    struct cm_heap heap = {0};
    build(&heap);
    assert_null(cm_heap_check(&heap));
    assert_int_equal(heap.nodes[1].first_edge, 1);
    assert_int_equal(heap.nodes[1].edge_count, 2);
    assert_int_equal(heap.nodes[2].first_edge, 3);
    assert_int_equal(heap.nodes[2].edge_count, 0);
    assert_int_equal(heap.nodes[3].first_edge, 3);
    assert_int_equal(heap.nodes[3].edge_count, 1);
    assert_true(cm_heap_footprint(&heap) >= 3 * sizeof(struct cm_node));
    cm_heap_release(&heap);
    assert_int_equal(heap.node_count, 0);
    assert_int_equal(cm_heap_footprint(&heap), 0);
}

static void
counts_uses_of_a_storage(void **state)
{
    (void)state;
    struct cm_heap heap = {0};
    build(&heap);
    assert_int_equal(heap.storage_count, 1);
    assert_int_equal(heap.storages[1].uses_here, 2);
    assert_int_equal(heap.storages[1].use_count, 2);
    struct cm_storage storage = {.key = 0xabc, .site = {5}, .bytes = 7};
    struct cm_storage_id id;
    assert_int_equal(cm_heap_add_storage(&heap, &storage, &id), CM_OK);
    assert_int_equal(id.index, 1);
    assert_int_equal(heap.storages[1].site.index, 5); /* was not known */
    assert_int_equal(heap.storages[1].bytes, 512);
    for (uint64_t key = 0; key < 1000; key++) {
        storage.key = key << 12;
        assert_int_equal(cm_heap_add_storage(&heap, &storage, &id), CM_OK);
        assert_int_equal(id.index, key + 2);
    }
    assert_null(cm_heap_check(&heap));
    cm_heap_release(&heap);
}

/* What is built in the room of another heap is as in a new one. */
static void
is_empty_again_with_its_room(void **state)
{
    (void)state;
    struct cm_heap heap = {0};
    build(&heap);
    heap.iteration = 7;
    heap.uncollectable = true;
    size_t bytes = cm_heap_footprint(&heap);
    cm_heap_clear(&heap);
    assert_int_equal(heap.node_count + heap.edge_count + heap.storage_count,
                     0);
    assert_int_equal(heap.iteration, 0);
    assert_false(heap.uncollectable);
    assert_int_equal(cm_heap_footprint(&heap), bytes);
    build(&heap);
    assert_null(cm_heap_check(&heap));
    assert_int_equal(heap.storages[1].uses_here, 2);
    assert_int_equal(cm_heap_footprint(&heap), bytes);
    cm_heap_release(&heap);
}

static void
refuses_edges_out_of_order_or_place(void **state)
{
    (void)state;
    struct cm_heap heap = {0};
    build(&heap);
    const struct cm_edge wrong[] = {
        {.tail = 1, .head = 2}, /* 3 was there already */
        {.tail = 3, .head = 4}, {.tail = 4, .head = 1},
        {.tail = 3, .head = 0}, {.tail = 0, .head = 3},
    };
    for (size_t at = 0; at < sizeof(wrong) / sizeof(wrong[0]); at++) {
        assert_int_equal(cm_heap_add_edge(&heap, &wrong[at]), CM_MISUSE);
    }
    assert_int_equal(heap.edge_count, 3);
    cm_heap_release(&heap);
}

/* Each line breaks one invariant of a good heap and must be named. */
static void
names_what_is_broken(void **state)
{
    (void)state;
    for (int fault = 0; fault < 10; fault++) {
        struct cm_heap heap = {0};
        build(&heap);
        switch (fault) {
        case 0: heap.nodes[1].species = CM_SPECIES_COUNT; break;
        case 1: heap.nodes[2].storage.index = 2; break;
        case 2: heap.nodes[3].first_edge = 2; break;
        case 3: heap.nodes[3].edge_count = 2; break;
        case 4: heap.edges[2].tail = 2; break;
        case 5: heap.edges[3].head = 4; break;
        case 6: heap.edges[1].role = CM_ROLE_COUNT; break;
        case 7: heap.nodes[3].edge_count = 0; break;
        case 8: heap.storages[1].key++; break;
        default: heap.storages[1].uses_here = 0; break;
        }
        assert_non_null(cm_heap_check(&heap));
        cm_heap_release(&heap);
    }
}

static enum cm_status
fill(void *context)
{
    (void)context;
    struct cm_heap heap = {0};
    enum cm_status status = CM_OK;
    for (uint32_t at = 0; at < 100 && status == CM_OK; at++) {
        struct cm_storage storage = {.key = at};
        struct cm_node node = {.species = CM_TENSOR};
        struct cm_node_id id;
        status = cm_heap_add_storage(&heap, &storage, &node.storage);
        if (status == CM_OK) {
            status = cm_heap_add_node(&heap, &node, &id);
        }
    }
    for (uint32_t at = 1; at <= heap.node_count && status == CM_OK; at++) {
        struct cm_edge edge = {.tail = at, .head = 1};
        status = cm_heap_add_edge(&heap, &edge);
    }
    if (cm_heap_seal(&heap) != CM_OK || cm_heap_check(&heap) != NULL) {
        status = CM_MISUSE;
    }
    cm_heap_release(&heap);
    return status;
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    cm_fail_each(fill, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_whole_when_empty),
        cmocka_unit_test(gives_each_node_its_edges),
        cmocka_unit_test(counts_uses_of_a_storage),
        cmocka_unit_test(is_empty_again_with_its_room),
        cmocka_unit_test(refuses_edges_out_of_order_or_place),
        cmocka_unit_test(names_what_is_broken),
        cmocka_unit_test(survives_each_failed_allocation),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
