/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Dominators: by hand, against taking each component away from random graphs,
 * on long rows and on the shapes that make naive walks quadratic. */

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
#include "../graph/dominator.h"

struct found {
    struct cm_components components;
    struct cm_dominators dominators;
};

static void
find(const struct cm_heap *heap, struct found *result)
{
    assert_int_equal(cm_components_find(heap, &result->components), CM_OK);
    assert_int_equal(
        cm_dominators_find(heap, &result->components, &result->dominators),
        CM_OK);
}

static void
release(struct found *self)
{
    cm_dominators_release(&self->dominators);
    cm_components_release(&self->components);
}

static uint32_t
component_of(const struct found *self, const struct built *built,
             const char *name)
{
    return self->components.of_node[built_node(built, name)];
}

static void
test_diamond(void **state)
{
    struct built *built =
        built_new("a Node; b Node; c Node; d Node; t Tensor 100; u Tensor 7;"
                  "a .b b; a .c c; b .d d; c .d d; d .t t; b .u u");
    struct found self;

    (void)state;
    find(&built->heap, &self);
    assert_int_equal(self.dominators.parent[component_of(&self, built, "d")],
                     component_of(&self, built, "a"));
    assert_int_equal(self.dominators.parent[component_of(&self, built, "a")],
                     0);
    assert_int_equal(self.dominators.retained[component_of(&self, built, "a")],
                     107);
    assert_int_equal(self.dominators.retained[component_of(&self, built, "b")],
                     7);
    assert_int_equal(self.dominators.retained[component_of(&self, built, "d")],
                     100);
    assert_int_equal(self.dominators.retained[0], 107);
    release(&self);
    built_free(built);
}

static void
test_storage_of_two_users(void **state)
{
    struct built *built =
        built_new("a Node; t Tensor 100; v Tensor of=t; a .t t; a .v v;"
                  "b Node; w Tensor of=t; b .w w");
    struct found self;

    (void)state;
    find(&built->heap, &self);
    /* a and b are both sources: only the root is above all three users. */
    assert_int_equal(cm_dominators_of_storage(&self.dominators, 1), 0);
    assert_int_equal(self.dominators.retained[component_of(&self, built, "a")],
                     0);
    assert_int_equal(self.dominators.retained[0], 100);
    release(&self);
    built_free(built);
}

static void
test_storage_held_elsewhere_is_retained_by_none(void **state)
{
    struct built *built = built_new("a Node; t Tensor 100 uses=2; a .t t");
    struct found self;

    (void)state;
    find(&built->heap, &self);
    assert_int_equal(self.dominators.retained[0], 0);
    release(&self);
    built_free(built);
}

static bool
is_source(const struct cm_heap *heap, const struct cm_components *components,
          uint32_t component)
{
    for (size_t i = 1; i <= heap->edge_count; i++) {
        if (components->of_node[heap->edges[i].head] == component
            && components->of_node[heap->edges[i].tail] != component) {
            return false;
        }
    }
    return true;
}

/* Does every way from the sources to `target` pass through `gate`? */
static bool
is_dominated(const struct cm_heap *heap, const struct found *found,
             uint32_t target, uint32_t gate)
{
    bool met[RANDOM_MAX_NODES + 1] = {false};
    const uint32_t *of_node = found->components.of_node;

    for (uint32_t c = 1; c <= found->components.count; c++) {
        met[c] = c != gate && is_source(heap, &found->components, c);
    }
    for (size_t round = 0; round < heap->node_count; round++) {
        for (size_t i = 1; i <= heap->edge_count; i++) {
            uint32_t head = of_node[heap->edges[i].head];

            if (met[of_node[heap->edges[i].tail]] && head != gate) {
                met[head] = true;
            }
        }
    }
    return !met[target];
}

static bool
is_ancestor(const struct cm_dominators *self, uint32_t above, uint32_t item)
{
    while (item != 0 && item != above) {
        item = self->parent[item];
    }
    return item == above;
}

static void
check_by_removal(const struct cm_heap *heap)
{
    struct found self;

    find(heap, &self);
    for (uint32_t target = 1; target <= self.components.count; target++) {
        for (uint32_t gate = 1; gate <= self.components.count; gate++) {
            assert_int_equal(is_ancestor(&self.dominators, gate, target),
                             is_dominated(heap, &self, target, gate));
        }
    }
    /* Sizes are powers of two: a sum says which storages are in it. */
    for (uint32_t gate = 1; gate <= self.components.count; gate++) {
        uint64_t bytes = 0;

        for (uint32_t node = 1; node <= heap->node_count; node++) {
            uint32_t target = self.components.of_node[node];

            if (is_dominated(heap, &self, target, gate)) {
                bytes += heap->storages[heap->nodes[node].storage.index].bytes;
            }
        }
        assert_int_equal(self.dominators.retained[gate], bytes);
    }
    release(&self);
}

static void
test_random_graphs(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 4000; seed++) {
        struct cm_heap heap = {0};

        random_heap(&heap, seed);
        check_by_removal(&heap);
        cm_heap_release(&heap);
    }
}

static double
seconds_for(const struct cm_heap *heap)
{
    struct found self;
    clock_t start = clock();

    find(heap, &self);
    release(&self);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

static void
test_a_million_in_a_row(void **state)
{
    struct cm_heap heap = {0};

    (void)state;
    row_heap(&heap, 1000000, false);
    assert_true(seconds_for(&heap) < 6.0);
    cm_heap_release(&heap);
}

/* A deep row whose end, like its start, refers to many: a walk up the tree
 * for each of them would take depth * many steps. */
static void
test_deep_and_wide(void **state)
{
    enum { DEEP = 200000, WIDE = 200000 };
    struct cm_heap heap = {0};

    (void)state;
    for (uint32_t i = 0; i < DEEP + WIDE; i++) {
        plain_node(&heap, 0);
    }
    for (uint32_t i = 1; i <= WIDE; i++) {
        plain_edge(&heap, 1, DEEP + i);
    }
    for (uint32_t i = 1; i < DEEP; i++) {
        plain_edge(&heap, i, i + 1);
    }
    for (uint32_t i = 1; i <= WIDE; i++) {
        plain_edge(&heap, DEEP, DEEP + i);
    }
    assert_int_equal(cm_heap_seal(&heap), CM_OK);
    assert_true(seconds_for(&heap) < 4.0);
    cm_heap_release(&heap);
}

static enum cm_status
attempt(void *context)
{
    const struct built *built = context;
    struct cm_components components;
    struct cm_dominators self = {0};
    enum cm_status status = cm_components_find(&built->heap, &components);

    if (status == CM_OK) {
        status = cm_dominators_find(&built->heap, &components, &self);
    }
    cm_dominators_release(&self);
    cm_components_release(&components);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct built *built = built_new("a Node; t Tensor 8; a .t t");

    (void)state;
    cm_fail_each(attempt, built);
    built_free(built);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diamond),
        cmocka_unit_test(test_storage_of_two_users),
        cmocka_unit_test(test_storage_held_elsewhere_is_retained_by_none),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_a_million_in_a_row),
        cmocka_unit_test(test_deep_and_wide),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
