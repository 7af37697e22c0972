/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "recurrence.h"

#include <string.h>

#include "../detector/alloc.h"

enum { HEAD_WORDS = 6, NODE_WORDS = 5, EDGE_WORDS = 2, STORAGE_WORDS = 7 };

static void
forget(struct cm_known_heap *known)
{
    cm_free(known->picture);
    cm_findings_release(&known->findings);
    *known = (struct cm_known_heap){0};
}

void
cm_recurrence_release(struct cm_recurrence *self)
{
    for (size_t i = 0; i < CM_RECURRENCES; i++) {
        forget(&self->known[i]);
    }
    cm_free(self->scratch);
    *self = (struct cm_recurrence){0};
}

/* ---- the picture */

static uint64_t
two(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static size_t
words_of(const struct cm_heap *heap)
{
    return HEAD_WORDS + heap->node_count * NODE_WORDS
           + heap->edge_count * EDGE_WORDS
           + heap->storage_count * STORAGE_WORDS;
}

static uint64_t *
draw_head(uint64_t *to, const struct cm_heap *heap)
{
    *to++ = heap->node_count;
    *to++ = heap->edge_count;
    *to++ = heap->storage_count;
    *to++ = heap->nodes_cut;
    *to++ = heap->bytes_cut;
    *to++ = two(heap->frozen_generation, heap->uncollectable);
    return to;
}

static uint64_t *
draw_node(uint64_t *to, const struct cm_node *node)
{
    uint32_t flags = (uint32_t)node->has_finalizer
                     | (uint32_t)node->survived << 1
                     | (uint32_t)node->cut << 2;
    *to++ = node->bytes;
    *to++ = two(node->type.index, node->label.index);
    *to++ = two(node->storage.index, node->site.index);
    *to++ = two(node->code.index, node->line);
    *to++ = two((uint32_t)node->species << 8 | flags, node->edge_count);
    return to;
}

static uint64_t *
draw_edge(uint64_t *to, const struct cm_edge *edge)
{
    *to++ = two(edge->tail, edge->head);
    *to++ = two(edge->label.index, edge->role);
    return to;
}

static uint64_t *
draw_storage(uint64_t *to, const struct cm_storage *storage)
{
    *to++ = storage->bytes;
    *to++ = two(storage->device.index, storage->site.index);
    *to++ = storage->block_bytes;
    *to++ = storage->stream;
    *to++ = two(storage->pool.index, storage->thread);
    *to++ = two(storage->use_count, storage->uses_here);
    *to++ = two(storage->awaited, storage->starts_block);
    return to;
}

static void
draw(uint64_t *to, const struct cm_heap *heap)
{
    to = draw_head(to, heap);
    for (size_t i = 1; i <= heap->node_count; i++) {
        to = draw_node(to, &heap->nodes[i]);
    }
    for (size_t i = 1; i <= heap->edge_count; i++) {
        to = draw_edge(to, &heap->edges[i]);
    }
    for (size_t i = 1; i <= heap->storage_count; i++) {
        to = draw_storage(to, &heap->storages[i]);
    }
}

/* Into the scratch; false: too large, or no memory. */
static bool
draw_asked(struct cm_recurrence *self, const struct cm_heap *heap)
{
    size_t words = words_of(heap);
    if (words > CM_RECURRENCE_WORDS
        || cm_grow((void **)&self->scratch, &self->scratch_capacity, words,
                   sizeof(*self->scratch))
               != CM_OK) {
        return false;
    }
    self->scratch_words = words;
    draw(self->scratch, heap);
    return true;
}

/* ---- what is known */

static struct cm_known_heap *
find(struct cm_recurrence *self)
{
    for (size_t i = 0; i < CM_RECURRENCES; i++) {
        struct cm_known_heap *known = &self->known[i];
        if (known->words == self->scratch_words
            && memcmp(known->picture, self->scratch,
                      known->words * sizeof(*known->picture))
                   == 0) {
            return known;
        }
    }
    return NULL;
}

bool
cm_recurrence_recall(struct cm_recurrence *self, const struct cm_heap *heap,
                     struct cm_findings *result)
{
    struct cm_known_heap *known = draw_asked(self, heap) ? find(self) : NULL;
    return known != NULL
           && cm_findings_share(&known->findings, result) == CM_OK;
}

void
cm_recurrence_keep(struct cm_recurrence *self, const struct cm_heap *heap,
                   struct cm_findings *findings)
{
    if (!draw_asked(self, heap) || find(self) != NULL) {
        return;
    }
    struct cm_known_heap *known = &self->known[self->next];
    size_t bytes = self->scratch_words * sizeof(*self->scratch);
    forget(known);
    known->picture = cm_alloc(bytes);
    if (known->picture == NULL
        || cm_findings_share(findings, &known->findings) != CM_OK) {
        forget(known);
        return;
    }
    memcpy(known->picture, self->scratch, bytes);
    known->words = self->scratch_words;
    self->next = (self->next + 1) % CM_RECURRENCES;
}
