/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef RANDOM_HEAP_H
#define RANDOM_HEAP_H

/* Heaps without names, for tests of the graph algorithms: small random ones,
 * whose truth can be had by trying all ways, and long rows. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../detector/heap.h"

enum { RANDOM_MAX_NODES = 8 };

struct random_numbers {
    uint64_t state;
};

/* The generator of Knuth's MMIX; the high bits are the good ones. */
static inline uint32_t
random_below(struct random_numbers *self, uint32_t limit)
{
    self->state = self->state * UINT64_C(6364136223846793005)
                  + UINT64_C(1442695040888963407);
    return (uint32_t)((self->state >> 33) % limit);
}

static inline void
plain_node(struct cm_heap *heap, uint64_t storage_bytes)
{
    struct cm_node node = {.address = 64 * heap->node_count};
    struct cm_node_id id;

    if (storage_bytes > 0) {
        struct cm_storage storage = {.key = node.address + 1,
                                     .bytes = storage_bytes};

        assert_int_equal(cm_heap_add_storage(heap, &storage, &node.storage),
                         CM_OK);
    }
    assert_int_equal(cm_heap_add_node(heap, &node, &id), CM_OK);
}

static inline void
plain_edge(struct cm_heap *heap, uint32_t tail, uint32_t head)
{
    struct cm_edge edge = {.tail = tail, .head = head, .role = CM_ATTRIBUTE};

    assert_int_equal(cm_heap_add_edge(heap, &edge), CM_OK);
}

/* One to eight nodes, each with a storage of a size of its own, and any
 * edges, thin or dense. */
static inline void
random_heap(struct cm_heap *heap, uint32_t seed)
{
    struct random_numbers numbers = {seed * UINT64_C(0x9E3779B97F4A7C15)};
    uint32_t count = 1 + random_below(&numbers, RANDOM_MAX_NODES);
    uint32_t density = 1 + random_below(&numbers, 6);

    for (uint32_t i = 0; i < count; i++) {
        plain_node(heap, UINT64_C(1) << i);
    }
    for (uint32_t tail = 1; tail <= count; tail++) {
        for (uint32_t head = 1; head <= count; head++) {
            if (random_below(&numbers, 8) < density) {
                plain_edge(heap, tail, head);
            }
        }
    }
    assert_int_equal(cm_heap_seal(heap), CM_OK);
}

/* Which node leads to which by at least one edge, never through `without`
 * (0: through any). */
static inline void
random_reachability(const struct cm_heap *heap, uint32_t without,
                    bool reaches[][RANDOM_MAX_NODES + 1])
{
    memset(reaches, 0,
           sizeof(bool) * (RANDOM_MAX_NODES + 1) * (RANDOM_MAX_NODES + 1));
    for (size_t i = 1; i <= heap->edge_count; i++) {
        const struct cm_edge *edge = &heap->edges[i];

        reaches[edge->tail][edge->head] =
            edge->tail != without && edge->head != without;
    }
    for (uint32_t middle = 1; middle <= heap->node_count; middle++) {
        for (uint32_t a = 1; a <= heap->node_count; a++) {
            for (uint32_t b = 1; b <= heap->node_count; b++) {
                reaches[a][b] = reaches[a][b]
                                || (reaches[a][middle] && reaches[middle][b]);
            }
        }
    }
}

/* 1 -> 2 -> ... -> count, and back to 1 for a ring; the last node has a
 * storage. */
static inline void
row_heap(struct cm_heap *heap, uint32_t count, bool ring)
{
    for (uint32_t i = 1; i <= count; i++) {
        plain_node(heap, i == count ? 4096 : 0);
    }
    for (uint32_t i = 1; i <= count; i++) {
        if (i < count || ring) {
            plain_edge(heap, i, i < count ? i + 1 : 1);
        }
    }
    assert_int_equal(cm_heap_seal(heap), CM_OK);
}

#endif
