/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Fingerprints: the same under every order of nodes and edges, different for
 * different structures and names, blind to what is data. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "heap_builder.h"
#include "fail_each.h"
#include "random_heap.h"
#include "../graph/fingerprint.h"

/* Of the first cyclic component. */
static uint64_t
fingerprint_of_heap(const struct cm_heap *heap,
                    const struct cm_records *records)
{
    struct cm_components components;
    struct cm_fingerprints self = {0};
    uint64_t result = 0;

    assert_int_equal(cm_components_find(heap, &components), CM_OK);
    assert_int_equal(cm_fingerprints_init(&self, heap, records, &components),
                     CM_OK);
    for (uint32_t i = 1; i <= components.count && result == 0; i++) {
        if (components.cyclic[i]) {
            result = cm_fingerprint_of(&self, i, 0, 0);
        }
    }
    cm_fingerprints_release(&self);
    cm_components_release(&components);
    return result;
}

static uint64_t
fingerprint_of(const char *text)
{
    struct built *built = built_new(text);
    uint64_t result = fingerprint_of_heap(&built->heap, built->records);

    built_free(built);
    return result;
}

/* A graph of up to eight nodes, one bit an edge, some labels and species. */
struct small {
    uint32_t count;
    uint8_t species[RANDOM_MAX_NODES];
    uint8_t label[RANDOM_MAX_NODES][RANDOM_MAX_NODES]; /* 0: no edge */
};

static uint64_t
fingerprint_of_small(const struct small *graph, struct cm_records *records)
{
    static const char *const labels[] = {"", ".a", ".b", "[0]"};
    struct cm_heap heap = {0};
    uint64_t result;

    for (uint32_t i = 0; i < graph->count; i++) {
        struct cm_node node = {.species = graph->species[i]};
        struct cm_node_id id;

        assert_int_equal(cm_heap_add_node(&heap, &node, &id), CM_OK);
    }
    for (uint32_t tail = 0; tail < graph->count; tail++) {
        for (uint32_t head = 0; head < graph->count; head++) {
            uint8_t label = graph->label[tail][head];
            struct cm_edge edge = {
                .tail = tail + 1,
                .head = head + 1,
                .label =
                    cm_texts_intern(cm_records_texts(records), labels[label])};

            if (label != 0) {
                assert_int_equal(cm_heap_add_edge(&heap, &edge), CM_OK);
            }
        }
    }
    assert_int_equal(cm_heap_seal(&heap), CM_OK);
    result = fingerprint_of_heap(&heap, records);
    cm_heap_release(&heap);
    return result;
}

/* Strongly connected: a ring through all nodes, and chords. */
static void
random_small(struct small *graph, struct random_numbers *numbers)
{
    *graph = (struct small){.count = 2 + random_below(numbers, 7)};
    for (uint32_t i = 0; i < graph->count; i++) {
        graph->species[i] = (uint8_t)random_below(numbers, 2);
        graph->label[i][(i + 1) % graph->count] =
            (uint8_t)(1 + random_below(numbers, 3));
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        graph->label[random_below(numbers, graph->count)]
                    [random_below(numbers, graph->count)] =
            (uint8_t)(1 + random_below(numbers, 3));
    }
}

static void
permute(const struct small *graph, struct random_numbers *numbers,
        struct small *result)
{
    uint32_t to[RANDOM_MAX_NODES];

    *result = (struct small){.count = graph->count};
    for (uint32_t i = 0; i < graph->count; i++) {
        uint32_t j = random_below(numbers, i + 1);

        to[i] = to[j];
        to[j] = i;
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        result->species[to[i]] = graph->species[i];
        for (uint32_t j = 0; j < graph->count; j++) {
            result->label[to[i]][to[j]] = graph->label[i][j];
        }
    }
}

static void
test_order_does_not_matter(void **state)
{
    struct cm_records *records = cm_records_new(1 << 20);
    struct random_numbers numbers = {1};

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct small graph, permuted;

        random_small(&graph, &numbers);
        permute(&graph, &numbers, &permuted);
        assert_int_equal(fingerprint_of_small(&graph, records),
                         fingerprint_of_small(&permuted, records));
    }
    cm_records_free(records);
}

/* One change: another species, another label, or an edge less or more. */
static void
change(struct small *graph, struct random_numbers *numbers)
{
    uint32_t tail = random_below(numbers, graph->count);
    uint32_t head = random_below(numbers, graph->count);
    uint8_t *label = &graph->label[tail][head];

    if (random_below(numbers, 3) == 0) {
        graph->species[tail] ^= 1;
    }
    else if (*label == 0 || head == (tail + 1) % graph->count) {
        *label = (uint8_t)(1 + *label % 3);
    }
    else {
        *label = 0;
    }
}

static void
test_a_change_is_seen(void **state)
{
    struct cm_records *records = cm_records_new(1 << 20);
    struct random_numbers numbers = {2};

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct small graph, changed;

        random_small(&graph, &numbers);
        changed = graph;
        change(&changed, &numbers);
        assert_int_not_equal(fingerprint_of_small(&graph, records),
                             fingerprint_of_small(&changed, records));
    }
    cm_records_free(records);
}

/* The smallest numbering of a graph of three nodes, one bit an edge. */
static uint32_t
canonical(uint32_t bits)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    uint32_t smallest = UINT32_MAX;

    for (int order = 0; order < 6; order++) {
        uint32_t moved = 0;

        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                if (bits & (1u << (3 * i + j))) {
                    moved |= 1u << (3 * orders[order][i] + orders[order][j]);
                }
            }
        }
        smallest = moved < smallest ? moved : smallest;
    }
    return smallest;
}

static uint64_t
fingerprint_of_bits(uint32_t bits, struct cm_records *records)
{
    struct small graph = {.count = 3};

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            graph.label[i][j] = (bits >> (3 * i + j)) & 1;
        }
    }
    return fingerprint_of_small(&graph, records);
}

static bool
is_connected(uint32_t bits)
{
    for (int from = 0; from < 3; from++) {
        uint32_t met = 1u << from;

        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 3; i++) {
                met |= met & (1u << i) ? (bits >> (3 * i)) & 7 : 0;
            }
        }
        if (met != 7) {
            return false;
        }
    }
    return true;
}

/* Equal fingerprints exactly where one graph is the other renumbered. */
static void
test_all_graphs_of_three(void **state)
{
    struct cm_records *records = cm_records_new(1 << 20);
    static uint64_t fingerprints[512];

    (void)state;
    for (uint32_t a = 0; a < 512; a++) {
        fingerprints[a] =
            is_connected(a) ? fingerprint_of_bits(a, records) : 0;
    }
    for (uint32_t a = 0; a < 512; a++) {
        for (uint32_t b = 0; b < a && fingerprints[a] != 0; b++) {
            if (fingerprints[b] != 0) {
                assert_int_equal(fingerprints[a] == fingerprints[b],
                                 canonical(a) == canonical(b));
            }
        }
    }
    cm_records_free(records);
}

#define PAIR "a Node; b Node; a .l b; b .l a;"

static void
test_names_matter(void **state)
{
    uint64_t pair = fingerprint_of(PAIR);

    (void)state;
    assert_int_not_equal(pair, 0);
    assert_int_not_equal(pair, fingerprint_of("a Node; b Leaf; a .l b;"
                                              "b .l a"));
    assert_int_not_equal(pair, fingerprint_of("a Node; b Node; a .m b;"
                                              "b .l a"));
    assert_int_not_equal(pair, fingerprint_of("a Node; b Node; a .l b;"
                                              "b .l a; a .l a"));
    assert_int_not_equal(pair, fingerprint_of("a Node; b Node; c Node;"
                                              "a .l b; b .l c; c .l a"));
    assert_int_not_equal(fingerprint_of("a dict; a ['x'] a"),
                         fingerprint_of("a dict; a ['y'] a"));
    assert_int_not_equal(
        fingerprint_of("code c a.py:1 f; f frame code=c; f local:x f"),
        fingerprint_of("code c a.py:1 g; f frame code=c; f local:x f"));
    assert_int_not_equal(
        fingerprint_of("code c a.py:1 f; f frame code=c; f local:x f"),
        fingerprint_of("code c b.py:1 f; f frame code=c; f local:x f"));
    assert_int_not_equal(fingerprint_of("k type label=A; k __mro__ k"),
                         fingerprint_of("k type label=B; k __mro__ k"));
}

static void
test_data_does_not_matter(void **state)
{
    uint64_t pair = fingerprint_of(PAIR);

    (void)state;
    /* Order, what hangs off the component, its size, where it lives. */
    assert_int_equal(pair, fingerprint_of("x Other; b Node; a Node; b .l a;"
                                          "a .l b"));
    assert_int_equal(pair, fingerprint_of(PAIR "t Tensor 77; a .t t; b .t t"));
    /* Indices, and keys that are no names or count something. */
    assert_int_equal(fingerprint_of("a list; a [0] a"),
                     fingerprint_of("a list; a [77] a"));
    assert_int_equal(fingerprint_of("a dict; a ['/x/1'] a"),
                     fingerprint_of("a dict; a [*] a"));
    assert_int_equal(fingerprint_of("a dict; a ['step_9'] a"),
                     fingerprint_of("a dict; a ['step_412'] a"));
    /* Lines of frames, folders of files, labels of objects. */
    assert_int_equal(
        fingerprint_of("code c /x/a.py:1 f; f frame code=c line=3;"
                       "f local:x f"),
        fingerprint_of("code c /y/a.py:9 f; f frame code=c line=4;"
                       "f local:x f"));
    assert_int_equal(fingerprint_of("a Node label=0x7f00; a .x a"),
                     fingerprint_of("a Node label=0x7f99; a .x a"));
}

static void
test_origin_is_the_users_function(void **state)
{
    struct built *built = built_new(
        "code lib /v/site-packages/torch/f.py:1 linear lib;"
        "code fwd /a/model.py:9 Net.forward; code main /a/t.py:1 main;"
        "code moved /b/model.py:70 Net.forward;"
        "site s lib:2 fwd:10 main:3; site u lib:4 moved:71;"
        "site only lib:2; site other main:3 fwd:10");
    const struct cm_records *records = built->records;
    uint64_t origin = cm_fingerprint_origin(records, built_site(built, "s"));

    (void)state;
    assert_int_equal(cm_fingerprint_origin(records, built_site(built, "u")),
                     origin);
    assert_int_not_equal(
        cm_fingerprint_origin(records, built_site(built, "other")), origin);
    assert_int_not_equal(
        cm_fingerprint_origin(records, built_site(built, "only")), 0);
    assert_int_equal(cm_fingerprint_origin(records, (struct cm_site_id){0}),
                     0);
    built_free(built);
}

static enum cm_status
attempt(void *context)
{
    struct built *built = context;
    struct cm_components components;
    struct cm_fingerprints self = {0};
    enum cm_status status = cm_components_find(&built->heap, &components);

    if (status == CM_OK) {
        status = cm_fingerprints_init(&self, &built->heap, built->records,
                                      &components);
        cm_fingerprints_release(&self);
    }
    cm_components_release(&components);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct built *built = built_new(PAIR);

    (void)state;
    cm_fail_each(attempt, built);
    built_free(built);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_a_change_is_seen),
        cmocka_unit_test(test_all_graphs_of_three),
        cmocka_unit_test(test_names_matter),
        cmocka_unit_test(test_data_does_not_matter),
        cmocka_unit_test(test_origin_is_the_users_function),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
