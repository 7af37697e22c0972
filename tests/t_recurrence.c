/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What is looked up is what would be found: for heaps that are alike, and for
 * no other. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "heap_builder.h"
#include "fail_each.h"
#include "random_heap.h"
#include "../graph/recurrence.h"

/* Shared storage, a library, a place, a reason, an owner. */
static const char text[] =
    "code i /v/site-packages/lit/h.py:3 H.f lib; store i attr me self 4;"
    "methods H i; o H; t Tensor 8; o .me o; o .t t; a Node; b Node;"
    "a .l b; b .l a; a .o o; u Tensor 9; b .u u; x Eng; x ref x; x ref u";

static void
check_indices(const uint32_t *these, size_t count, const uint32_t *those,
              size_t others)
{
    assert_int_equal(count, others);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(these[i], those[i]);
    }
}

static void
check_text(const char *this, const char *that)
{
    assert_int_equal(this == NULL, that == NULL);
    if (this != NULL) {
        assert_string_equal(this, that);
    }
}

static void
check_finding(const struct cm_finding *a, const struct cm_finding *b)
{
    assert_int_equal(a->fingerprint, b->fingerprint);
    assert_int_equal(a->class, b->class);
    assert_int_equal(a->round_count, b->round_count);
    check_indices(a->component, a->component_count, b->component,
                  b->component_count);
    check_indices(a->via, a->via_count, b->via, b->via_count);
    check_indices(a->payload, a->payload_count, b->payload, b->payload_count);
    check_indices(a->freed, a->freed_count, b->freed, b->freed_count);
    check_indices(a->held_elsewhere, a->held_elsewhere_count,
                  b->held_elsewhere, b->held_elsewhere_count);
    assert_int_equal(a->shared_count, b->shared_count);
    for (size_t i = 0; i < a->shared_count; i++) {
        assert_int_equal(a->shared_with[i], b->shared_with[i]);
    }
    assert_int_equal(a->carries_shared, b->carries_shared);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->bytes_each, b->bytes_each);
    assert_int_equal(a->bytes_total, b->bytes_total);
    assert_int_equal(a->device_count, b->device_count);
    for (size_t i = 0; i < a->device_count; i++) {
        assert_int_equal(a->bytes_on[i].bytes, b->bytes_on[i].bytes);
    }
    assert_int_equal(a->cut_edge, b->cut_edge);
    check_text(a->rule, b->rule);
    check_text(a->advice, b->advice);
    check_text(a->no_cut_reason, b->no_cut_reason);
    check_text(a->library, b->library);
    assert_int_equal(a->place_count, b->place_count);
    for (uint32_t i = 0; i < a->place_count; i++) {
        assert_int_equal(a->places[i].line, b->places[i].line);
    }
}

static void
check_findings(const struct cm_findings *a, const struct cm_findings *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->left_out, b->left_out);
    assert_int_equal(a->dead_bytes, b->dead_bytes);
    for (size_t i = 0; i < a->count; i++) {
        check_finding(&a->items[i], &b->items[i]);
    }
}

static bool
is_known(struct cm_recurrence *self, const struct cm_heap *heap)
{
    struct cm_findings findings = {0};
    bool known = cm_recurrence_recall(self, heap, &findings);
    cm_findings_release(&findings);
    return known;
}

static void
keep(struct cm_recurrence *self, const struct built *built)
{
    struct cm_findings findings;
    assert_int_equal(cm_findings_find(&built->heap, built->records, &findings),
                     CM_OK);
    cm_recurrence_keep(self, &built->heap, &findings);
    cm_findings_release(&findings);
}

static void
move(struct cm_heap *heap)
{
    for (size_t i = 1; i <= heap->node_count; i++) {
        heap->nodes[i].address += 0x1000;
    }
    for (size_t i = 1; i <= heap->storage_count; i++) {
        heap->storages[i].key += 0x1000;
        heap->storages[i].device_address += 0x1000;
    }
    heap->time_ns++;
    heap->iteration++;
}

static void
finds_what_is_alike_but_for_its_addresses(void **state)
{
    struct built *built = built_new(text);
    struct cm_recurrence recurrence = {0};
    struct cm_findings found, recalled;

    (void)state;
    assert_false(is_known(&recurrence, &built->heap));
    keep(&recurrence, built);
    move(&built->heap);
    assert_int_equal(cm_findings_find(&built->heap, built->records, &found),
                     CM_OK);
    assert_true(found.count >= 2 && found.items[0].advice != NULL);
    assert_true(cm_recurrence_recall(&recurrence, &built->heap, &recalled));
    check_findings(&recalled, &found);
    cm_findings_release(&found);
    cm_findings_release(&recalled);
    cm_recurrence_release(&recurrence);
    built_free(built);
}

/* The items are one, and live as long as anybody has them. */
static void
shares_what_it_keeps(void **state)
{
    struct built *built = built_new(text);
    struct cm_recurrence recurrence = {0};
    struct cm_findings found, first, second, again;

    (void)state;
    assert_int_equal(cm_findings_find(&built->heap, built->records, &again),
                     CM_OK);
    assert_int_equal(cm_findings_find(&built->heap, built->records, &found),
                     CM_OK);
    cm_recurrence_keep(&recurrence, &built->heap, &found);
    assert_true(cm_recurrence_recall(&recurrence, &built->heap, &first));
    assert_true(cm_recurrence_recall(&recurrence, &built->heap, &second));
    assert_ptr_equal(first.items, found.items);
    assert_ptr_equal(second.items, found.items);
    cm_findings_release(&found);
    check_findings(&second, &again);
    cm_recurrence_release(&recurrence);
    cm_findings_release(&first);
    check_findings(&second, &again);
    cm_findings_release(&second);
    assert_ptr_equal(second.items, NULL);
    cm_findings_release(&again);
    built_free(built);
}

/* Any number that the analysis reads. */
static void
tells_apart_what_is_not_alike(void **state)
{
    struct built *built = built_new(text);
    struct cm_heap *heap = &built->heap;
    struct cm_node *node = &heap->nodes[1];
    struct cm_edge *edge = &heap->edges[2];
    struct cm_storage *storage = &heap->storages[1];
    struct cm_recurrence recurrence = {0};

    (void)state;
    keep(&recurrence, built);
#define CHANGES(field)                                                        \
    do {                                                                      \
        (field) ^= 1;                                                         \
        assert_false(is_known(&recurrence, heap));                            \
        (field) ^= 1;                                                         \
        assert_true(is_known(&recurrence, heap));                             \
    } while (0)
    CHANGES(node->bytes);
    CHANGES(node->type.index);
    CHANGES(node->label.index);
    CHANGES(node->storage.index);
    CHANGES(node->site.index);
    CHANGES(node->code.index);
    CHANGES(node->line);
    CHANGES(node->species);
    CHANGES(node->has_finalizer);
    CHANGES(node->survived);
    CHANGES(node->cut);
    CHANGES(edge->tail);
    CHANGES(edge->head);
    CHANGES(edge->label.index);
    CHANGES(edge->role);
    CHANGES(storage->bytes);
    CHANGES(storage->device.index);
    CHANGES(storage->site.index);
    CHANGES(storage->block_bytes);
    CHANGES(storage->stream);
    CHANGES(storage->pool.index);
    CHANGES(storage->thread);
    CHANGES(storage->awaited);
    CHANGES(storage->use_count);
    CHANGES(storage->uses_here);
    CHANGES(heap->nodes_cut);
    CHANGES(heap->bytes_cut);
    CHANGES(heap->frozen_generation);
    CHANGES(heap->uncollectable);
#undef CHANGES
    cm_recurrence_release(&recurrence);
    built_free(built);
}

static void
keeps_the_last_few(void **state)
{
    struct built *built = built_new(text);
    struct cm_recurrence recurrence = {0};

    (void)state;
    for (uint32_t i = 0; i < CM_RECURRENCES + 3; i++) {
        built->heap.storages[1].bytes = 100 + i;
        keep(&recurrence, built);
        keep(&recurrence, built); /* takes no second place */
    }
    for (uint32_t i = 0; i < CM_RECURRENCES + 3; i++) {
        built->heap.storages[1].bytes = 100 + i;
        assert_int_equal(is_known(&recurrence, &built->heap), i >= 3);
    }
    cm_recurrence_release(&recurrence);
    built_free(built);
}

static void
keeps_no_large_heap(void **state)
{
    struct cm_records *records = cm_records_new(1 << 20);
    struct cm_recurrence recurrence = {0};
    struct cm_findings none = {0};
    struct cm_heap heap = {0};

    (void)state;
    for (uint32_t i = 0; i < CM_RECURRENCE_WORDS; i++) {
        plain_node(&heap, 0);
    }
    assert_int_equal(cm_heap_seal(&heap), CM_OK);
    cm_recurrence_keep(&recurrence, &heap, &none);
    assert_false(is_known(&recurrence, &heap));
    cm_recurrence_release(&recurrence);
    cm_heap_release(&heap);
    cm_records_free(records);
}

/* What was kept before stays right, or is not known. */
static enum cm_status
attempt(void *context)
{
    struct built *built = context;
    struct cm_recurrence recurrence = {0};
    struct cm_findings findings, recalled = {0};
    enum cm_status status =
        cm_findings_find(&built->heap, built->records, &findings);
    bool known = false;

    if (status == CM_OK) {
        cm_recurrence_keep(&recurrence, &built->heap, &findings);
        known = cm_recurrence_recall(&recurrence, &built->heap, &recalled);
    }
    if (known) {
        check_findings(&recalled, &findings);
    }
    cm_findings_release(&recalled);
    cm_findings_release(&findings);
    cm_recurrence_release(&recurrence);
    return known ? CM_OK : CM_NO_MEMORY;
}

static void
each_allocation_fails(void **state)
{
    struct built *built = built_new(text);

    (void)state;
    cm_fail_each(attempt, built);
    built_free(built);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_alike_but_for_its_addresses),
        cmocka_unit_test(shares_what_it_keeps),
        cmocka_unit_test(tells_apart_what_is_not_alike),
        cmocka_unit_test(keeps_the_last_few),
        cmocka_unit_test(keeps_no_large_heap),
        cmocka_unit_test(each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
