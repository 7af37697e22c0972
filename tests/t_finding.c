/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Findings: what is counted, once, by whom; what is folded; the same answer
 * on random graphs as by trying all ways; size, time and lack of memory. */

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
#include "../graph/dominator.h"
#include "../graph/finding.h"

struct seen {
    struct built *built;
    struct cm_findings findings;
};

static void
look(struct seen *self, const char *text)
{
    self->built = built_new(text);
    assert_int_equal(cm_findings_find(&self->built->heap, self->built->records,
                                      &self->findings),
                     CM_OK);
}

static void
look_away(struct seen *self)
{
    cm_findings_release(&self->findings);
    built_free(self->built);
}

static const struct cm_finding *
finding(const struct seen *self, size_t index)
{
    assert_true(index < self->findings.count);
    return &self->findings.items[index];
}

/* The one whose component has this node. */
static const struct cm_finding *
finding_with(const struct seen *self, const char *name)
{
    uint32_t node = built_node(self->built, name);

    for (size_t i = 0; i < self->findings.count; i++) {
        const struct cm_finding *item = &self->findings.items[i];

        for (size_t j = 0; j < item->component_count; j++) {
            if (item->component[j] == node) {
                return item;
            }
        }
    }
    fail_msg("no finding has %s", name);
    return NULL;
}

static void
check_nodes(const struct seen *self, const uint32_t *nodes, size_t count,
            const char *expected)
{
    char text[256] = "";

    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(text);

        snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? " " : "",
                 self->built->names[nodes[i]]);
    }
    assert_string_equal(text, expected);
}

static void
test_payload_off_the_cycle(void **state)
{
    struct seen self;

    (void)state;
    look(&self, "a Node; b Node; d dict; l list; t Tensor 100; u Tensor 300;"
                "v Tensor of=u; z Node; a .parent b; b .kid a; b .d d;"
                "d ['k'] l; l [0] t; l [1] u; a .v v; z .z z");
    assert_int_equal(self.findings.count, 1);
    assert_int_equal(finding(&self, 0)->bytes_each, 400);
    assert_int_equal(finding(&self, 0)->bytes_total, 400);
    assert_int_equal(self.findings.dead_bytes, 400);
    assert_int_equal(finding(&self, 0)->freed_count, 2);
    /* From the holder of what is cut, round; the largest payload first. */
    check_nodes(&self, finding(&self, 0)->component,
                finding(&self, 0)->component_count, "a b");
    assert_int_equal(finding(&self, 0)->round_count, 2);
    check_nodes(&self, finding(&self, 0)->payload,
                finding(&self, 0)->payload_count, "v u t");
    check_nodes(&self, finding(&self, 0)->via, finding(&self, 0)->via_count,
                "l d");
    look_away(&self);
}

static void
test_nothing_to_tell(void **state)
{
    static const char *const heaps[] = {
        "", "a Node; a .me a",                    /* no device memory */
        "a Node; t Tensor 100; a .t t",           /* no cycle */
        "a Node; t Tensor 100; a .me a; t ref a", /* not below the cycle */
    };

    (void)state;
    for (size_t i = 0; i < sizeof heaps / sizeof *heaps; i++) {
        struct seen self;

        look(&self, heaps[i]);
        assert_int_equal(self.findings.count, 0);
        assert_int_equal(self.findings.dead_bytes, 0);
        look_away(&self);
    }
}

static void
test_held_elsewhere(void **state)
{
    struct seen self;

    (void)state;
    /* A dead view of live weights, and a tensor of its own. */
    look(&self, "a Node; w Tensor 1000 uses=2; t Tensor 30 uses=1; a .me a;"
                "a .w w; a .t t");
    assert_int_equal(finding(&self, 0)->bytes_each, 30);
    assert_int_equal(finding(&self, 0)->freed_count, 1);
    assert_int_equal(finding(&self, 0)->held_elsewhere_count, 1);
    assert_int_equal(self.findings.dead_bytes, 30);
    look_away(&self);
    /* All uses are here after all. */
    look(&self, "a Node; w Tensor 1000 uses=2; v Tensor of=w; a .me a;"
                "a .w w; a .v v");
    assert_int_equal(finding(&self, 0)->bytes_each, 1000);
    look_away(&self);
    /* Nothing but the view: told, with no bytes. */
    look(&self, "a Node; w Tensor 1000 uses=2; a .me a; a .w w");
    assert_int_equal(self.findings.count, 1);
    assert_int_equal(finding(&self, 0)->bytes_each, 0);
    assert_int_equal(finding(&self, 0)->held_elsewhere_count, 1);
    look_away(&self);
}

/* One finding, each byte on its own device. */
static void
test_equal_cycles_on_two_devices(void **state)
{
    struct seen self;

    (void)state;
    look(&self, "a Node; t Tensor 100 on=cuda:0; a .me a; a .t t;"
                "b Node; u Tensor 300 on=cuda:1; b .me b; b .t u;"
                "c Node; v Tensor 500 on=cuda:1; w Tensor 9 on=cuda:0 uses=2;"
                "c .me c; c .t v; c .w w");
    assert_int_equal(self.findings.count, 1);
    assert_int_equal(finding(&self, 0)->device_count, 2);
    assert_int_equal(finding(&self, 0)->bytes_on[0].bytes, 100);
    assert_int_equal(finding(&self, 0)->bytes_on[1].bytes, 800);
    look_away(&self);
}

static void
test_shared_by_two_cycles(void **state)
{
    const struct cm_finding *first, *second;
    struct seen self;

    (void)state;
    look(&self, "a Node; b Leaf; t Tensor 100; u Tensor 7; a .me a; b .me b;"
                "a .t t; b .t t; b .u u");
    assert_int_equal(self.findings.count, 2);
    assert_int_equal(self.findings.dead_bytes, 107);
    first = finding_with(&self, "a");
    second = finding_with(&self, "b");
    assert_int_equal(first->bytes_each, 100);
    assert_int_equal(second->bytes_each, 7);
    assert_true(first->carries_shared);
    assert_false(second->carries_shared);
    assert_int_equal(first->shared_count, 1);
    assert_int_equal(first->shared_with[0], second->fingerprint);
    assert_int_equal(second->shared_count, 1);
    assert_int_equal(second->shared_with[0], first->fingerprint);
    look_away(&self);
}

static void
test_nearest_of_two_cycles_carries(void **state)
{
    struct seen self;

    (void)state;
    look(&self, "a Node; b Leaf; t Tensor 100; a .me a; a .b b; b .me b;"
                "b .t t");
    assert_int_equal(finding_with(&self, "b")->bytes_each, 100);
    assert_true(finding_with(&self, "b")->carries_shared);
    assert_int_equal(finding_with(&self, "a")->bytes_each, 0);
    assert_int_equal(finding_with(&self, "a")->shared_count, 1);
    assert_int_equal(finding_with(&self, "a")->payload_count, 1);
    look_away(&self);
}

static void
test_equal_cycles_share_without_counting_twice(void **state)
{
    struct seen self;

    (void)state;
    look(&self, "t Tensor 100; a Node; b Node; a .me a; b .me b; a .t t;"
                "b .t t");
    assert_int_equal(self.findings.count, 1);
    assert_int_equal(finding(&self, 0)->count, 2);
    assert_int_equal(finding(&self, 0)->bytes_total, 100);
    assert_int_equal(finding(&self, 0)->shared_count, 0);
    look_away(&self);
}

static void
test_folding(void **state)
{
    struct seen self;

    (void)state;
    /* Two pairs of other sizes and orders are one finding, largest first. */
    look(&self, "a Node; b Node; t Tensor 100; a .l b; b .r a; a .t t;"
                "x Node; y Node; u Tensor 50; x .r y; y .l x; y .t u;"
                "o Other; v Tensor 120; o .me o; o .t v");
    assert_int_equal(self.findings.count, 2);
    assert_int_equal(finding(&self, 0)->count, 2);
    assert_int_equal(finding(&self, 0)->bytes_each, 100);
    assert_int_equal(finding(&self, 0)->bytes_total, 150);
    assert_int_equal(finding(&self, 1)->bytes_total, 120);
    assert_int_not_equal(finding(&self, 0)->fingerprint,
                         finding(&self, 1)->fingerprint);
    look_away(&self);
}

static void
test_allocating_function_tells_apart(void **state)
{
    struct seen self;

    (void)state;
    look(&self, "code f a.py:1 f; code g a.py:9 g; site s f:2; site u g:10;"
                "a Node; t Tensor 8 site=s; a .me a; a .t t;"
                "b Node; v Tensor 8 site=u; b .me b; b .t v");
    assert_int_equal(self.findings.count, 2);
    look_away(&self);
}

static uint64_t
fingerprint_with(bool cut, enum cm_class class)
{
    struct built *built = built_new("a Node; t Tensor 8; a .me a; a .t t");
    struct cm_findings findings;
    uint64_t result;

    built->heap.nodes[1].cut = cut;
    built->heap.frozen_generation = class == CM_CLASS_FROZEN;
    built->heap.uncollectable = class == CM_CLASS_UNCOLLECTABLE;
    assert_int_equal(cm_findings_find(&built->heap, built->records, &findings),
                     CM_OK);
    assert_int_equal(findings.items[0].class, class);
    result = findings.items[0].fingerprint;
    cm_findings_release(&findings);
    built_free(built);
    return result;
}

static void
test_cut_cycles_do_not_fold_with_whole_ones(void **state)
{
    uint64_t whole = fingerprint_with(false, CM_CLASS_COLLECTABLE);

    (void)state;
    assert_int_equal(whole, fingerprint_with(false, CM_CLASS_COLLECTABLE));
    assert_int_not_equal(whole, fingerprint_with(true, CM_CLASS_COLLECTABLE));
    assert_int_not_equal(whole, fingerprint_with(false, CM_CLASS_FROZEN));
    assert_int_not_equal(whole,
                         fingerprint_with(false, CM_CLASS_UNCOLLECTABLE));
}

static void
test_classes(void **state)
{
    struct seen self;

    (void)state;
    look(&self, "a Node del; t Tensor 8; a .me a; a .t t");
    assert_int_equal(finding(&self, 0)->class, CM_CLASS_FINALIZER);
    assert_int_equal(finding(&self, 0)->bytes_each, 8);
    look_away(&self);
    look(&self, "a Node; h Holder del; t Tensor 8; a .me a; a .h h; h .t t");
    assert_int_equal(finding(&self, 0)->class, CM_CLASS_COLLECTABLE);
    look_away(&self);
    look(&self, "a Node del; t Tensor 8 survived; u Tensor 9; a .me a;"
                "a .t t; a .u u");
    assert_int_equal(finding(&self, 0)->class, CM_CLASS_RESURRECTED);
    assert_int_equal(finding(&self, 0)->bytes_each, 0);
    assert_int_equal(finding(&self, 0)->freed_count, 0);
    assert_int_equal(self.findings.dead_bytes, 0);
    look_away(&self);
}

/* Every storage below a cycle is freed by one finding, and no other is. */
static void
check_by_reachability(const struct cm_heap *heap,
                      const struct cm_records *records)
{
    bool reaches[RANDOM_MAX_NODES + 1][RANDOM_MAX_NODES + 1];
    struct cm_findings findings;
    uint64_t expected = 0, total = 0;

    random_reachability(heap, 0, reaches);
    for (uint32_t node = 1; node <= heap->node_count; node++) {
        bool dead = reaches[node][node];

        for (uint32_t above = 1; above <= heap->node_count; above++) {
            dead = dead || (reaches[above][above] && reaches[above][node]);
        }
        expected += dead ? UINT64_C(1) << (node - 1) : 0;
    }
    assert_int_equal(cm_findings_find(heap, records, &findings), CM_OK);
    for (size_t i = 0; i < findings.count; i++) {
        const struct cm_finding *item = &findings.items[i];
        uint64_t listed = 0;

        for (size_t j = 0; j < item->freed_count; j++) {
            listed += heap->storages[item->freed[j]].bytes;
        }
        assert_int_equal(listed, item->bytes_each);
        assert_int_equal(item->rule == NULL, false);
        assert_true(item->component_count > 0 && item->round_count > 0);
        assert_true(item->payload_count > 0);
        assert_true(i == 0 || item[-1].bytes_total >= item->bytes_total);
        total += item->bytes_total;
    }
    /* Sizes are powers of two: no storage can stand in for another. */
    assert_int_equal(findings.dead_bytes, expected);
    assert_int_equal(total, expected);
    cm_findings_release(&findings);
}

static void
test_random_graphs(void **state)
{
    struct cm_records *records = cm_records_new(1 << 20);

    (void)state;
    for (uint32_t seed = 0; seed < 4000; seed++) {
        struct cm_heap heap = {0};

        random_heap(&heap, seed);
        check_by_reachability(&heap, records);
        cm_heap_release(&heap);
    }
    cm_records_free(records);
}

/* `cycles` rings of `size` nodes, each holding a tensor. */
static void
many_rings(struct cm_heap *heap, uint32_t cycles, uint32_t size)
{
    for (uint32_t i = 0; i < cycles; i++) {
        uint32_t first = i * (size + 1) + 1;

        for (uint32_t j = 0; j < size; j++) {
            plain_node(heap, 0);
        }
        plain_node(heap, 4096);
        for (uint32_t j = 0; j < size; j++) {
            plain_edge(heap, first + j, first + (j + 1) % size);
            if (j == 0) {
                plain_edge(heap, first, first + size);
            }
        }
    }
    assert_int_equal(cm_heap_seal(heap), CM_OK);
}

static void
test_ten_thousand_equal_cycles(void **state)
{
    enum { CYCLES = 10000, SIZE = 10 };
    struct cm_records *records = cm_records_new(1 << 20);
    struct cm_heap heap = {0};
    struct cm_findings findings;
    clock_t start;

    (void)state;
    many_rings(&heap, CYCLES, SIZE);
    start = clock();
    assert_int_equal(cm_findings_find(&heap, records, &findings), CM_OK);
    print_message("# %.1f ms\n",
                  1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
    assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].count, CYCLES);
    assert_int_equal(findings.dead_bytes, UINT64_C(4096) * CYCLES);
    cm_findings_release(&findings);
    cm_heap_release(&heap);
    cm_records_free(records);
}

static void
test_a_million_in_a_ring(void **state)
{
    enum { COUNT = 1000000 };
    struct cm_records *records = cm_records_new(1 << 20);
    struct cm_heap heap = {0};
    struct cm_findings findings;
    clock_t start;

    (void)state;
    row_heap(&heap, COUNT, true);
    start = clock();
    assert_int_equal(cm_findings_find(&heap, records, &findings), CM_OK);
    assert_true(clock() - start < 12 * CLOCKS_PER_SEC);
    assert_int_equal(findings.count, 1);
    assert_string_equal(findings.items[0].rule, "back_link");
    assert_int_equal(findings.items[0].component_count, 256);
    assert_int_equal(findings.items[0].bytes_each, 4096);
    cm_findings_release(&findings);
    cm_heap_release(&heap);
    cm_records_free(records);
}

/* Objects that each refer to themselves and to the next: every cycle reaches
 * every tensor further down. */
static void
test_a_row_of_cycles(void **state)
{
    enum { COUNT = 100000 };
    struct cm_records *records = cm_records_new(1 << 20);
    struct cm_heap heap = {0};
    struct cm_findings findings;
    clock_t start;

    (void)state;
    for (uint32_t i = 1; i <= COUNT; i++) {
        plain_node(&heap, 64);
    }
    for (uint32_t i = 1; i <= COUNT; i++) {
        plain_edge(&heap, i, i);
        if (i < COUNT) {
            plain_edge(&heap, i, i + 1);
        }
    }
    assert_int_equal(cm_heap_seal(&heap), CM_OK);
    start = clock();
    assert_int_equal(cm_findings_find(&heap, records, &findings), CM_OK);
    assert_true(clock() - start < 4 * CLOCKS_PER_SEC);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.dead_bytes, UINT64_C(64) * COUNT);
    assert_int_equal(findings.items[0].bytes_each, 64);
    cm_findings_release(&findings);
    cm_heap_release(&heap);
    cm_records_free(records);
}

/* Every object refers to one dict that refers to every object: what asks who
 * holds a thing must not ask that for each of the things it holds. */
static void
test_one_registry_of_many(void **state)
{
    enum { COUNT = 100000 };
    struct cm_records *records = cm_records_new(1 << 20);
    struct cm_text_id name =
        cm_texts_intern(cm_records_texts(records), ".registry");
    struct cm_heap heap = {0};
    struct cm_findings findings;
    clock_t start;

    (void)state;
    plain_node(&heap, 0);
    heap.nodes[1].species = CM_DICT;
    for (uint32_t i = 2; i <= COUNT; i++) {
        plain_node(&heap, i == COUNT ? 64 : 0);
    }
    for (uint32_t i = 1; i <= COUNT; i++) {
        struct cm_edge edge = {.tail = i, .head = 1};

        for (uint32_t j = 2; i == 1 && j <= COUNT; j++) {
            edge.head = j;
            edge.role = CM_VALUE;
            assert_int_equal(cm_heap_add_edge(&heap, &edge), CM_OK);
        }
        if (i > 1) {
            edge.role = CM_ATTRIBUTE;
            edge.label = name;
            assert_int_equal(cm_heap_add_edge(&heap, &edge), CM_OK);
        }
    }
    assert_int_equal(cm_heap_seal(&heap), CM_OK);
    start = clock();
    assert_int_equal(cm_findings_find(&heap, records, &findings), CM_OK);
    assert_true(clock() - start < 4 * CLOCKS_PER_SEC);
    assert_string_equal(findings.items[0].rule, "self_reference");
    cm_findings_release(&findings);
    cm_heap_release(&heap);
    cm_records_free(records);
}

/* Cycles of 1, 2, 3, ... nodes: every one is of its own kind. */
static void
test_too_many_kinds(void **state)
{
    enum { KINDS = CM_MAX_FINDINGS + 5 };
    struct cm_records *records = cm_records_new(1 << 20);
    struct cm_heap heap = {0};
    struct cm_findings findings;
    uint32_t first = 1;

    (void)state;
    for (uint32_t size = 1; size <= KINDS; size++) {
        for (uint32_t i = 0; i < size; i++) {
            plain_node(&heap, i == 0 ? 1 : 0);
        }
        for (uint32_t i = 0; i < size; i++) {
            plain_edge(&heap, first + i, first + (i + 1) % size);
        }
        first += size;
    }
    assert_int_equal(cm_heap_seal(&heap), CM_OK);
    assert_int_equal(cm_findings_find(&heap, records, &findings), CM_OK);
    assert_int_equal(findings.count, CM_MAX_FINDINGS);
    assert_int_equal(findings.left_out, 5);
    assert_int_equal(findings.dead_bytes, KINDS);
    cm_findings_release(&findings);
    cm_heap_release(&heap);
    cm_records_free(records);
}

static enum cm_status
attempt(void *context)
{
    const struct built *built = context;
    struct cm_findings findings;
    enum cm_status status =
        cm_findings_find(&built->heap, built->records, &findings);

    assert_true(status == CM_OK || findings.count == 0);
    cm_findings_release(&findings);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    /* Shared storage, a library, a place and a reason. */
    struct built *built = built_new(
        "code i /v/site-packages/lit/h.py:3 H.f lib; store i attr me self 4;"
        "methods H i; o H; t Tensor 8; o .me o; o .t t; a Node; b Node;"
        "a .l b; b .l a; a .o o; u Tensor 9; b .u u; x Eng; x ref x; x ref u");

    (void)state;
    cm_fail_each(attempt, built);
    built_free(built);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payload_off_the_cycle),
        cmocka_unit_test(test_nothing_to_tell),
        cmocka_unit_test(test_held_elsewhere),
        cmocka_unit_test(test_equal_cycles_on_two_devices),
        cmocka_unit_test(test_shared_by_two_cycles),
        cmocka_unit_test(test_nearest_of_two_cycles_carries),
        cmocka_unit_test(test_equal_cycles_share_without_counting_twice),
        cmocka_unit_test(test_folding),
        cmocka_unit_test(test_allocating_function_tells_apart),
        cmocka_unit_test(test_cut_cycles_do_not_fold_with_whole_ones),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_ten_thousand_equal_cycles),
        cmocka_unit_test(test_a_million_in_a_ring),
        cmocka_unit_test(test_a_row_of_cycles),
        cmocka_unit_test(test_one_registry_of_many),
        cmocka_unit_test(test_too_many_kinds),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
