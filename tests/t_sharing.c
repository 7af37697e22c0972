/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Who else holds a storage: groups of equal cycles, bounded sets of them. */

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
#include "../graph/finding.h"
#include "../graph/sharing.h"

/* `kinds` rings of 1, 2, 3, ... nodes, all of which hold one storage. */
static void
rings_on_one(struct cm_heap *heap, uint32_t kinds)
{
    uint32_t node = 2;

    plain_node(heap, 4096);
    for (uint32_t size = 1; size <= kinds; size++) {
        for (uint32_t i = 0; i < size; i++) {
            plain_node(heap, 0);
        }
    }
    for (uint32_t size = 1; size <= kinds; size++) {
        for (uint32_t i = 0; i < size; i++) {
            plain_edge(heap, node + i, node + (i + 1) % size);
            if (i == 0) {
                plain_edge(heap, node, 1);
            }
        }
        node += size;
    }
    assert_int_equal(cm_heap_seal(heap), CM_OK);
}

static size_t
count_carriers(const struct cm_findings *findings)
{
    size_t carriers = 0;

    for (size_t i = 0; i < findings->count; i++) {
        carriers += findings->items[i].carries_shared;
    }
    return carriers;
}

static void
test_all_name_each_other_and_one_carries(void **state)
{
    enum { KINDS = 5 };
    struct cm_records *records = cm_records_new(1 << 16);
    struct cm_heap heap = {0};
    struct cm_findings findings;

    (void)state;
    rings_on_one(&heap, KINDS);
    assert_int_equal(cm_findings_find(&heap, records, &findings), CM_OK);
    assert_int_equal(findings.count, KINDS);
    assert_int_equal(findings.dead_bytes, 4096);
    assert_int_equal(count_carriers(&findings), 1);
    assert_true(findings.items[0].carries_shared);
    for (size_t i = 0; i < KINDS; i++) {
        const struct cm_finding *item = &findings.items[i];

        assert_int_equal(item->shared_count, KINDS - 1);
        for (size_t j = 0; j < item->shared_count; j++) {
            assert_int_not_equal(item->shared_with[j], item->fingerprint);
        }
    }
    cm_findings_release(&findings);
    cm_heap_release(&heap);
    cm_records_free(records);
}

static void
test_sets_are_bounded(void **state)
{
    enum { KINDS = 300 };
    struct cm_records *records = cm_records_new(1 << 16);
    struct cm_heap heap = {0};
    struct cm_findings findings;
    clock_t start = clock();

    (void)state;
    rings_on_one(&heap, KINDS);
    assert_int_equal(cm_findings_find(&heap, records, &findings), CM_OK);
    assert_true(clock() - start < 4 * CLOCKS_PER_SEC);
    assert_int_equal(findings.count, KINDS);
    assert_int_equal(findings.dead_bytes, 4096);
    assert_int_equal(count_carriers(&findings), 1);
    for (size_t i = 0; i < KINDS; i++) {
        assert_true(findings.items[i].shared_count <= CM_MAX_SHARED);
    }
    cm_findings_release(&findings);
    cm_heap_release(&heap);
    cm_records_free(records);
}

static enum cm_status
attempt(void *context)
{
    const struct cm_heap *heap = context;
    uint32_t group_of[16] = {0};
    struct cm_records *records = cm_records_new(1 << 16);
    struct cm_components components = {0};
    struct cm_payloads payloads = {0};
    struct cm_sharing sharing = {0};
    enum cm_status status = CM_NO_MEMORY;

    if (records != NULL) {
        status = cm_components_find(heap, &components);
    }
    if (status == CM_OK) {
        status = cm_payloads_find(heap, records, &components, &payloads);
    }
    for (uint32_t i = 1; i <= components.count; i++) {
        group_of[i] = components.cyclic[i] ? i : 0;
    }
    if (status == CM_OK) {
        status = cm_sharing_find(heap, &components, &payloads, group_of, 15,
                                 &sharing);
    }
    cm_sharing_release(&sharing);
    cm_payloads_release(&payloads);
    cm_components_release(&components);
    cm_records_free(records);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct cm_heap heap = {0};

    (void)state;
    rings_on_one(&heap, 4);
    cm_fail_each(attempt, &heap);
    cm_heap_release(&heap);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_name_each_other_and_one_carries),
        cmocka_unit_test(test_sets_are_bounded),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
