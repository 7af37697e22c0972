/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A loss keeps its graph, and the graph what a backward pass would need: that
 * memory has no object, or one that C++ alone holds.  Which tensors' graphs keep
 * what a line allocated is found by walking them; only some can be, and each of
 * these only so far. */

#include "growth_private.h"

#include "../../detector/alloc.h"
#include "../allocations/allocations.h"
#include "../frozen/autograd_behind.h"
#include "session_private.h"

/* Of one tensor's graph; as many tensors as MOST_WALKS have one. */
static const struct cm_autograd_bounds bounds = {.max_vertices = 20000,
                                                 .max_time_ns = 2000000};

enum {
    FIRST_WALKS = 100,   /* of the youngest; the others are some of all */
    FEWEST_LONGER = 8,   /* that may have what none was seen to have */
    MOST_SEEN = 1 << 20, /* blocks */
    MOST_LEAVES = 4096,  /* that have a gradient, or something else behind */
};

struct seen {
    const uint64_t *addresses;
    uint64_t address;
};

static bool
is_same(const void *context, uint32_t number)
{
    const struct seen *seen = context;
    return seen->addresses[number - 1] == seen->address;
}

/* Whether no graph had it so far; without memory, that is not known. */
static bool
see(struct cm_growing_graphs *self, uint64_t address)
{
    struct seen seen = {self->seen, address};
    uint32_t hash = cm_hash(0, &address, sizeof(address));
    if (cm_index_find(&self->index, hash, is_same, &seen) != 0
        || self->seen_count == MOST_SEEN
        || cm_grow((void **)&self->seen, &self->seen_capacity,
                   self->seen_count + 1, sizeof(*self->seen))
               != CM_OK
        || cm_index_reserve(&self->index) != CM_OK) {
        return false;
    }
    self->seen[self->seen_count++] = address;
    cm_index_put(&self->index, hash, (uint32_t)self->seen_count);
    return true;
}

static struct cm_growing *
finding_at(struct cm_growth_look *self, uint64_t address)
{
    struct cm_block block;
    struct cm_growing *finding =
        address != 0 && cm_blocks_at(cm_allocations_blocks(), address, &block)
            ? cm_growing_of(self, block.device, block.site.index)
            : NULL;
    return finding != NULL && self->by_others[finding->group] ? finding : NULL;
}

static void
count_blocks(struct cm_growth_look *self,
             const struct cm_autograd_behind *behind,
             struct cm_growing_graph *graph)
{
    for (size_t i = 0; i < behind->storage_count; i++) {
        uint64_t address = behind->storages[i].memory.device_address;
        const struct cm_growing *finding = finding_at(self, address);
        if (finding != NULL) {
            bool fresh = behind->nodes != 0 && see(&self->graphs, address);
            graph->blocks[finding->group]++;
            graph->fresh[finding->group] += fresh;
            graph->fresh_of_all += fresh;
        }
    }
}

/* Parameters, of whose gradients C++ has the object. */
static bool
note_without(struct cm_growth_look *self, const struct cm_growing_graph *none)
{
    bool whole = true;
    for (size_t i = 0; whole && i < self->count; i++) {
        whole =
            none->blocks[i] == 0
            || cm_growing_add_without(self, &self->findings[i], none->object);
    }
    return whole;
}

/* Of more than can be walked, those that the collector has first, which are its
 * youngest, and of the others each so many of them: what waits for a collection
 * is not all that is seen.  They are met from the end on. */
static bool
is_left_out(struct cm_growing_graphs *self, PyObject *object)
{
    if (!cm_grad_has_step(object)) {
        return !cm_grad_leads(object) || ++self->leaves > MOST_LEAVES;
    }
    size_t met = self->met++, each = 1;
    if (self->live > MOST_WALKS && self->live - met > FIRST_WALKS) {
        each = (self->live - FIRST_WALKS) / (MOST_WALKS - FIRST_WALKS) + 1;
    }
    return met % each != 0 || self->count == MOST_WALKS;
}

/* False: no memory. */
static bool
note(struct cm_growth_look *self, PyObject *object)
{
    struct cm_autograd_behind behind = {0};
    struct cm_growing_graph graph = {.object = object};
    bool whole = true;
    if (is_left_out(&self->graphs, object)
        || !cm_autograd_behind(object, &bounds, &behind)) {
        return true;
    }
    graph.steps = behind.length;
    graph.cut = behind.cut;
    count_blocks(self, &behind, &graph);
    if (behind.nodes == 0) {
        whole = note_without(self, &graph);
    }
    else if (self->graphs.count < MOST_WALKS) {
        self->graphs.items[self->graphs.count++] = graph;
        self->graphs.walked++;
    }
    cm_autograd_behind_release(&behind);
    return whole;
}

void
cm_growing_find_behind(struct cm_growth_look *self,
                       const struct cm_objects_array *live)
{
    struct cm_growing_graphs *graphs = &self->graphs;
    graphs->items = cm_calloc(MOST_WALKS + MOST_KEPT, sizeof(*graphs->items));
    if (graphs->items == NULL) {
        self->status = CM_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < live->count; i++) {
        graphs->live += cm_grad_has_step(live->items[i]);
    }
    /* What was made of another one before it: that has nothing of its own. */
    for (size_t i = live->count; i-- > 0 && note(self, live->items[i]);) {
    }
}

void
cm_growing_release_behind(struct cm_growth_look *self)
{
    cm_free(self->graphs.items);
    cm_free(self->graphs.seen);
    cm_index_release(&self->graphs.index);
    self->graphs = (struct cm_growing_graphs){0};
}

void
cm_growing_find_kept(struct cm_growth_look *self, PyObject *const *items,
                     size_t count)
{
    struct cm_growing_graphs *graphs = &self->graphs;
    size_t most = graphs->count + MOST_KEPT;
    for (size_t i = count;
         graphs->items != NULL && i-- > 0 && graphs->count < most;) {
        struct cm_autograd_behind behind = {0};
        struct cm_growing_graph graph = {.object = items[i], .kept = true};
        if (cm_grad_has_step(items[i])
            && cm_autograd_behind(items[i], &bounds, &behind)) {
            count_blocks(self, &behind, &graph);
            graphs->items[graphs->count++] = graph;
            cm_autograd_behind_release(&behind);
        }
    }
}

bool
cm_growing_chained(const struct cm_growing *self)
{
    return self->links > 1
           && 2 * (uint64_t)self->most_behind > self->row.count;
}

bool
cm_growing_behind_few(const struct cm_growing *self)
{
    return self->links > 3 * self->behind;
}

/* ---- which of them */

/* Numbers of which the small ones count where they are more together. */
struct heap {
    uint32_t most;
    uint64_t all, large; /* sums: of all, of those of half the most at least */
};

static bool
is_large(const struct heap *self, uint32_t number)
{
    return number != 0 && 2 * (uint64_t)number >= self->most;
}

static bool
counts(const struct heap *self, uint32_t number)
{
    return number != 0
           && (self->all > 2 * self->large || is_large(self, number));
}

static void
note_most(struct heap *self, uint32_t number)
{
    self->most = number > self->most ? number : self->most;
    self->all += number;
}

/* Before: the most is known. */
static void
note_large(struct heap *self, uint32_t number)
{
    self->large += is_large(self, number) ? number : 0;
}

/* What the choice goes by, of one finding. */
struct share {
    struct heap blocks, fresh; /* of its own, behind each graph */
    struct heap cut;           /* fresh of all, where there is more of it */
    bool one_has_much;         /* of all that it has allocated */
    bool longer;               /* cut ones may have more of it */
};

/* What one has that C++ alone holds, another has whose graph that is in. */
static uint32_t
blocks_of(const struct cm_growing_graph *graph, uint32_t group)
{
    return graph->kept ? 0 : graph->blocks[group];
}

static uint32_t
fresh_of(const struct cm_growing_graph *graph, uint32_t group)
{
    return graph->kept ? 0 : graph->fresh[group];
}

static uint32_t
fresh_of_cut(const struct cm_growing_graph *graph)
{
    return graph->cut && !graph->kept ? graph->fresh_of_all : 0;
}

static struct share
share_of(const struct cm_growth_look *self, const struct cm_growing *finding)
{
    struct share share = {0};
    const struct cm_growing_graph *items = self->graphs.items;
    size_t count = self->graphs.count, longer = 0;
    for (size_t i = 0; i < count; i++) {
        note_most(&share.blocks, blocks_of(&items[i], finding->group));
        note_most(&share.fresh, fresh_of(&items[i], finding->group));
        note_most(&share.cut, fresh_of_cut(&items[i]));
    }
    for (size_t i = 0; i < count; i++) {
        note_large(&share.fresh, fresh_of(&items[i], finding->group));
        note_large(&share.cut, fresh_of_cut(&items[i]));
    }
    for (size_t i = 0; i < count; i++) {
        longer += counts(&share.cut, fresh_of_cut(&items[i]));
    }
    share.one_has_much = 4 * (uint64_t)share.blocks.most >= finding->row.count;
    share.longer =
        4 * share.fresh.all < finding->row.count && longer >= FEWEST_LONGER;
    return share;
}

/* Who has far less behind it than one that has a good part of all is not who
 * makes it grow: the last loss beside the sum of them.  Where none has, each is
 * one of many: what counts is what no other has, since the call that runs has
 * many tensors with one graph, and who together has more.  Who has a graph too
 * long to be walked may have at its far end what nobody was seen to have; one
 * alone is no sign of that. */
static bool
is_chosen(const struct cm_growing_graph *graph, uint32_t group,
          const struct share *share)
{
    if (share->one_has_much) {
        return is_large(&share->blocks, blocks_of(graph, group));
    }
    return counts(&share->fresh, fresh_of(graph, group))
           || (share->longer && counts(&share->cut, fresh_of_cut(graph)));
}

uint64_t
cm_growing_choose_behind(struct cm_growth_look *self,
                         struct cm_growing *finding)
{
    struct share share = share_of(self, finding);
    finding->most_behind = share.blocks.most;
    for (size_t i = 0; share.blocks.most != 0 && i < self->graphs.count; i++) {
        const struct cm_growing_graph *graph = &self->graphs.items[i];
        finding->links +=
            is_large(&share.blocks, graph->blocks[finding->group]);
        if (is_chosen(graph, finding->group, &share)) {
            finding->behind++;
            finding->steps_behind = graph->steps > finding->steps_behind
                                        ? graph->steps
                                        : finding->steps_behind;
        }
    }
    uint64_t all =
        share.fresh.all > finding->behind ? share.fresh.all : finding->behind;
    const struct cm_growing_graphs *graphs = &self->graphs;
    return graphs->walked != 0 && graphs->live > graphs->walked
               ? all * graphs->live / graphs->walked
               : all;
}

void
cm_growing_add_behind(struct cm_growth_look *self, struct cm_growing *finding)
{
    struct share share = share_of(self, finding);
    for (size_t i = self->graphs.count; i-- > 0;) {
        const struct cm_growing_graph *graph = &self->graphs.items[i];
        if (is_chosen(graph, finding->group, &share)
            && !cm_growing_add(self, finding, graph->object)) {
            return;
        }
    }
}
