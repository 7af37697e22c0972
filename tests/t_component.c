/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Components: by hand, against plain reachability on random graphs, on a
 * million nodes, and with each allocation failing. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "heap_builder.h"
#include "fail_each.h"
#include "random_heap.h"
#include "../graph/component.h"

static uint32_t
component_of(const struct cm_components *self, const struct built *built,
             const char *name)
{
    return self->of_node[built_node(built, name)];
}

static void
test_pair_and_tail(void **state)
{
    struct built *built = built_new("a Node; b Node; t Tensor 8; u Node;"
                                    "a .link b; b .link a; a .t t; u .a a");
    struct cm_components self;

    (void)state;
    assert_int_equal(cm_components_find(&built->heap, &self), CM_OK);
    assert_int_equal(self.count, 3);
    assert_int_equal(component_of(&self, built, "a"),
                     component_of(&self, built, "b"));
    assert_true(self.cyclic[component_of(&self, built, "a")]);
    assert_false(self.cyclic[component_of(&self, built, "t")]);
    assert_false(self.cyclic[component_of(&self, built, "u")]);
    assert_int_equal(
        cm_components_size(&self, component_of(&self, built, "a")), 2);
    cm_components_release(&self);
    built_free(built);
}

static void
test_edge_to_itself_is_cyclic(void **state)
{
    struct built *built = built_new("a Node; b Node; a .me a");
    struct cm_components self;

    (void)state;
    assert_int_equal(cm_components_find(&built->heap, &self), CM_OK);
    assert_int_equal(self.count, 2);
    assert_true(self.cyclic[component_of(&self, built, "a")]);
    assert_false(self.cyclic[component_of(&self, built, "b")]);
    cm_components_release(&self);
    built_free(built);
}

static void
test_empty_heap(void **state)
{
    struct cm_heap heap = {0};
    struct cm_components self;

    (void)state;
    assert_int_equal(cm_components_find(&heap, &self), CM_OK);
    assert_int_equal(self.count, 0);
    cm_components_release(&self);
}

/* Numbers, groups and order, as the header says. */
static void
check_invariants(const struct cm_heap *heap, const struct cm_components *self)
{
    uint32_t at = 0;

    for (uint32_t component = 1; component <= self->count; component++) {
        const uint32_t *nodes = cm_components_nodes(self, component);

        assert_true(cm_components_size(self, component) > 0);
        for (uint32_t i = 0; i < cm_components_size(self, component); i++) {
            assert_int_equal(self->of_node[nodes[i]], component);
            assert_int_equal(self->position[nodes[i]], at++);
            assert_true(i == 0 || nodes[i - 1] < nodes[i]);
        }
    }
    assert_int_equal(at, heap->node_count);
    for (size_t i = 1; i <= heap->edge_count; i++) {
        assert_true(self->of_node[heap->edges[i].tail]
                    >= self->of_node[heap->edges[i].head]);
    }
}

static void
check_against_reachability(const struct cm_heap *heap)
{
    struct cm_components self;
    bool reaches[RANDOM_MAX_NODES + 1][RANDOM_MAX_NODES + 1];

    random_reachability(heap, 0, reaches);
    assert_int_equal(cm_components_find(heap, &self), CM_OK);
    check_invariants(heap, &self);
    for (uint32_t a = 1; a <= heap->node_count; a++) {
        assert_int_equal(self.cyclic[self.of_node[a]], reaches[a][a]);
        for (uint32_t b = 1; b <= heap->node_count; b++) {
            bool together = a == b || (reaches[a][b] && reaches[b][a]);

            assert_int_equal(self.of_node[a] == self.of_node[b], together);
        }
    }
    cm_components_release(&self);
}

static void
test_random_graphs(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 4000; seed++) {
        struct cm_heap heap = {0};

        random_heap(&heap, seed);
        check_against_reachability(&heap);
        cm_heap_release(&heap);
    }
}

static void
test_a_million_in_a_row(void **state)
{
    enum { COUNT = 1000000 };

    (void)state;
    for (int ring = 0; ring <= 1; ring++) {
        struct cm_heap heap = {0};
        struct cm_components self;
        clock_t start;

        row_heap(&heap, COUNT, ring);
        start = clock();
        assert_int_equal(cm_components_find(&heap, &self), CM_OK);
        assert_true(clock() - start < 4 * CLOCKS_PER_SEC);
        assert_int_equal(self.count, ring ? 1 : COUNT);
        assert_int_equal(self.cyclic[1], ring);
        cm_components_release(&self);
        cm_heap_release(&heap);
    }
}

static enum cm_status
attempt(void *context)
{
    const struct built *built = context;
    struct cm_components self;
    enum cm_status status = cm_components_find(&built->heap, &self);

    assert_true(status == CM_OK || self.of_node == NULL);
    cm_components_release(&self);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct built *built = built_new("a Node; b Node; a .l b; b .l a");

    (void)state;
    cm_fail_each(attempt, built);
    built_free(built);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_and_tail),
        cmocka_unit_test(test_edge_to_itself_is_cyclic),
        cmocka_unit_test(test_empty_heap),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_a_million_in_a_row),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
