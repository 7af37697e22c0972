/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What is shown of a cycle: bounded, in order, and always whole ways. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heap_builder.h"
#include "random_heap.h"
#include "../graph/finding.h"
#include "../graph/outline.h"

static void
find_one(const struct cm_heap *heap, struct cm_findings *result)
{
    struct cm_records *records = cm_records_new(1 << 16);

    assert_int_equal(cm_findings_find(heap, records, result), CM_OK);
    assert_int_equal(result->count, 1);
    cm_records_free(records);
}

/* 1 -> 1, 1 -> 2 -> ... -> length + 1, which has the storage. */
static void
tail_heap(struct cm_heap *heap, uint32_t length)
{
    for (uint32_t i = 0; i <= length; i++) {
        plain_node(heap, i == length ? 64 : 0);
    }
    plain_edge(heap, 1, 1);
    for (uint32_t i = 1; i <= length; i++) {
        plain_edge(heap, i, i + 1);
    }
    assert_int_equal(cm_heap_seal(heap), CM_OK);
}

static void
test_a_way_is_whole_or_not_there(void **state)
{
    (void)state;
    for (uint32_t over = 0; over <= 1; over++) {
        struct cm_heap heap = {0};
        struct cm_findings findings;

        tail_heap(&heap, CM_OUTLINE_VIA + 1 + over);
        find_one(&heap, &findings);
        assert_int_equal(findings.items[0].payload_count, 1);
        assert_int_equal(findings.items[0].via_count,
                         over ? 0 : CM_OUTLINE_VIA);
        assert_int_equal(findings.items[0].bytes_each, 64);
        cm_findings_release(&findings);
        cm_heap_release(&heap);
    }
}

static void
test_the_largest_of_many_payloads(void **state)
{
    enum { MANY = 3 * CM_OUTLINE_PAYLOAD };
    struct cm_heap heap = {0};
    struct cm_findings findings;

    (void)state;
    plain_node(&heap, 0);
    for (uint64_t i = 1; i <= MANY; i++) {
        plain_node(&heap, i);
    }
    plain_edge(&heap, 1, 1);
    for (uint32_t i = 1; i <= MANY; i++) {
        plain_edge(&heap, 1, 1 + i);
    }
    assert_int_equal(cm_heap_seal(&heap), CM_OK);
    find_one(&heap, &findings);
    assert_int_equal(findings.items[0].payload_count, CM_OUTLINE_PAYLOAD);
    assert_int_equal(findings.items[0].payload[0], 1 + MANY);
    assert_int_equal(findings.items[0].payload[1], MANY);
    assert_int_equal(findings.items[0].freed_count, MANY);
    assert_int_equal(findings.items[0].bytes_each, MANY * (MANY + 1) / 2);
    cm_findings_release(&findings);
    cm_heap_release(&heap);
}

static void
test_the_owners_own_way_is_listed(void **state)
{
    /* t hangs two edges off x, but a person starts at o. */
    struct built *built = built_new(
        "o Node; x Leaf; b Box; c Box; d Box; t Tensor 8; o .x x; x .owner o;"
        "x .b b; b .t t; o .c c; c .d d; d .t t; o .me o");
    struct cm_findings findings;
    bool listed = false;

    (void)state;
    assert_int_equal(cm_findings_find(&built->heap, built->records, &findings),
                     CM_OK);
    assert_string_equal(findings.items[0].rule, "self_reference");
    for (size_t i = 0; i < findings.items[0].via_count; i++) {
        listed = listed || findings.items[0].via[i] == built_node(built, "b");
    }
    assert_true(listed);
    cm_findings_release(&findings);
    built_free(built);
}

static void
test_round_first_then_the_rest(void **state)
{
    struct built *built = built_new(
        "z Node; a Node; b Node; c Node; t Tensor 8; a .kid b; b .kid c;"
        "c .parent a; a .z z; z .a a; a .t t");
    struct cm_findings findings;
    const struct cm_finding *item;

    (void)state;
    assert_int_equal(cm_findings_find(&built->heap, built->records, &findings),
                     CM_OK);
    item = &findings.items[0];
    assert_string_equal(item->rule, "back_link");
    assert_int_equal(item->round_count, 3);
    assert_int_equal(item->component_count, 4);
    assert_int_equal(item->component[0], built_node(built, "c"));
    assert_int_equal(item->component[1], built_node(built, "a"));
    assert_int_equal(item->component[2], built_node(built, "b"));
    assert_int_equal(item->component[3], built_node(built, "z"));
    cm_findings_release(&findings);
    built_free(built);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_way_is_whole_or_not_there),
        cmocka_unit_test(test_the_largest_of_many_payloads),
        cmocka_unit_test(test_the_owners_own_way_is_listed),
        cmocka_unit_test(test_round_first_then_the_rest),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
