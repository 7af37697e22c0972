/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* All live tensors are listed; which of them belong to a site is asked of the
 * table of blocks. */

#include "growth_private.h"

#include "../../detector/alloc.h"
#include "../allocations/allocations.h"
#include "../frozen/autograd_behind.h"
#include "../frameworks/live.h"
#include "session_private.h"
#include "../allocations/unhooked.h"

/* Of one tensor's graph; as many tensors as MOST_WALKS have one. */
static const struct cm_autograd_bounds behind_bounds = {
    .max_vertices = 20000, .max_time_ns = 2000000};

static struct cm_growing *
finding_of(struct cm_growth_look *self, int device, uint32_t site)
{
    for (size_t i = 0; i < self->count; i++) {
        const struct cm_growing *finding = &self->findings[i];
        if (!finding->copy && finding->row.site == site && site != 0
            && finding->row.device == device) {
            return &self->findings[i];
        }
    }
    return NULL;
}

bool
cm_growing_gradients(const struct cm_growing *finding)
{
    return !finding->copy && finding->row.category == CM_GRADIENT
           && finding->row.result.verdict == CM_VERDICT_LINGERING;
}

/* `count`: how many the finding has in this group. */
static bool
add_to_group(struct cm_growth_look *self, PyObject *object, uint32_t group,
             uint32_t *count)
{
    if (*count == MOST_TARGETS) {
        return true;
    }
    if (cm_grow((void **)&self->targets, &self->target_capacity,
                self->target_count + 1, sizeof(*self->targets))
            != CM_OK
        || cm_grow((void **)&self->groups, &self->group_capacity,
                   self->target_count + 1, sizeof(*self->groups))
               != CM_OK) {
        self->status = CM_NO_MEMORY;
        return false;
    }
    self->targets[self->target_count] = object;
    self->groups[self->target_count++] = group;
    ++*count;
    return true;
}

bool
cm_growing_add(struct cm_growth_look *self, struct cm_growing *finding,
               PyObject *object)
{
    return add_to_group(self, object, finding->group, &finding->targets);
}

static bool
note_target(struct cm_growth_look *self, PyObject *object)
{
    struct cm_block block;
    struct cm_growing *finding =
        cm_unhooked_block(self->session->devices, object, &block)
            ? finding_of(self, block.device, block.site.index)
            : NULL;
    return finding != NULL && !cm_growing_gradients(finding)
           && !cm_growing_add(self, finding, object);
}

/* ---- and which have it behind them, kept by C++ for a backward pass */

/* How many blocks of each finding stand behind one tensor. */
static void
count_storages(struct cm_growth_look *self,
               const struct cm_autograd_behind *behind,
               uint32_t counts[MOST_FINDINGS])
{
    for (size_t i = 0; i < behind->storage_count; i++) {
        struct cm_block block;
        uint64_t address = behind->storages[i].memory.device_address;
        struct cm_growing *finding =
            address != 0
                    && cm_blocks_at(cm_allocations_blocks(), address, &block)
                ? finding_of(self, block.device, block.site.index)
                : NULL;
        if (finding != NULL && self->by_others[finding->group]) {
            counts[finding->group]++;
        }
    }
}

static void
regroup(struct cm_growth_look *self, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < self->target_count; i++) {
        if (self->groups[i] == from) {
            self->groups[i] = to;
        }
    }
}

/* Of those that have the finding's memory by a graph, or without one, until it
 * is known whether they are its targets. */
static uint32_t
group_behind(const struct cm_growing *finding, bool by_graph)
{
    return finding->group + (by_graph ? 1u : 2u) * (uint32_t)MOST_FINDINGS;
}

static void
regroup_behind(struct cm_growth_look *self, const struct cm_growing *finding,
               uint32_t by_graph, uint32_t without)
{
    regroup(self, group_behind(finding, true), by_graph);
    regroup(self, group_behind(finding, false), without);
}

/* Who has far less behind it than another is not who makes it grow: the last
 * loss beside the sum of all.  A parameter has its one gradient. */
static bool
note_share(struct cm_growth_look *self, struct cm_growing *finding,
           PyObject *object, uint32_t count,
           const struct cm_autograd_behind *behind)
{
    if (behind->nodes == 0) {
        return add_to_group(self, object, group_behind(finding, false),
                            &finding->without_graph);
    }
    if (count > 2 * finding->most_behind) {
        regroup(self, group_behind(finding, true), NO_GROUP);
        finding->behind = 0;
        finding->steps_behind = 0;
    }
    if (count > finding->most_behind) {
        finding->most_behind = count;
    }
    if (2 * count < finding->most_behind) {
        return true;
    }
    if (behind->length > finding->steps_behind) {
        finding->steps_behind = behind->length;
    }
    return add_to_group(self, object, group_behind(finding, true),
                        &finding->behind);
}

bool
cm_growing_chained(const struct cm_growing *self)
{
    return self->behind > 1
           && 2 * (uint64_t)self->most_behind > self->row.count;
}

/* The few that have the memory themselves may be what the running call has
 * just made; the others then have the rest: a graph, unless parameters have as
 * much of it, whatever graph they are in just now. */
static void
choose_targets(struct cm_growth_look *self, struct cm_growing *finding)
{
    uint32_t few = 2 * finding->targets;
    bool graph = finding->most_behind > finding->without_graph;
    bool others = finding->without_graph > few || finding->most_behind > few
                  || finding->behind > few;

    if (!others) {
        finding->steps_behind = 0;
        regroup_behind(self, finding, NO_GROUP, NO_GROUP);
        return;
    }
    regroup(self, finding->group, NO_GROUP);
    regroup_behind(self, finding, graph ? finding->group : NO_GROUP,
                   graph ? NO_GROUP : finding->group);
    finding->targets = graph ? finding->behind : finding->without_graph;
    finding->steps_behind = graph ? finding->steps_behind : 0;
    if (finding->row.category == CM_OTHER && finding->steps_behind != 0) {
        finding->row.category = CM_SAVED;
        cm_growth_categorize(&self->session->growth,
                             (struct cm_site_id){finding->row.site}, CM_SAVED);
    }
}

static bool
note_behind(struct cm_growth_look *self, PyObject *object)
{
    struct cm_autograd_behind behind = {0};
    uint32_t counts[MOST_FINDINGS] = {0};
    bool whole = true;
    if (self->walks == MOST_WALKS
        || !cm_autograd_behind(object, &behind_bounds, &behind)) {
        return self->walks == MOST_WALKS;
    }
    self->walks += behind.nodes != 0;
    count_storages(self, &behind, counts);
    for (size_t i = 0; whole && i < self->count; i++) {
        whole = counts[i] == 0
                || note_share(self, &self->findings[i], object, counts[i],
                              &behind);
    }
    cm_autograd_behind_release(&behind);
    return !whole;
}

static void
drop_targets_of_no_group(struct cm_growth_look *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->target_count; i++) {
        if (self->groups[i] != NO_GROUP) {
            self->targets[kept] = self->targets[i];
            self->groups[kept++] = self->groups[i];
        }
    }
    self->target_count = kept;
}

/* Objects have less than half of the memory themselves: the newest of a chain
 * of states has the others behind it. */
static bool
has_few(const struct cm_growing *finding)
{
    return 2 * (uint64_t)finding->targets < finding->row.count
           && !cm_growing_gradients(finding)
           && finding->targets < MOST_TARGETS;
}

/* What stays as small as it was, made by the same line as what gets larger:
 * the state that a recurrent layer returns beside its output. */
static void
drop_small(struct cm_growth_look *self)
{
    uint64_t most[MOST_FINDINGS] = {0};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < self->target_count; i++) {
            uint32_t group = self->groups[i];
            struct cm_block block;
            if (group >= self->count
                || !cm_growing_larger(&self->findings[group].row)
                || !cm_unhooked_block(self->session->devices, self->targets[i],
                                      &block)) {
                continue;
            }
            if (round == 0) {
                most[group] =
                    block.bytes > most[group] ? block.bytes : most[group];
            }
            else if (block.bytes < most[group] / 2) {
                self->groups[i] = NO_GROUP;
                self->findings[group].targets--;
            }
        }
    }
    drop_targets_of_no_group(self);
}

/* Until one answers that it is enough. */
static void
note_each(struct cm_growth_look *self, const struct cm_objects_array *live,
          bool (*note)(struct cm_growth_look *self, PyObject *object))
{
    for (size_t i = 0; i < live->count && !note(self, live->items[i]); i++) {
    }
}

void
cm_growing_find(struct cm_growth_look *self)
{
    bool any = false;
    struct cm_objects_array live = {0};
    if (cm_live_list(self->session->devices, &live) != CM_OK) {
        self->status = CM_NO_MEMORY;
        return;
    }
    note_each(self, &live, note_target);
    for (size_t i = 0; i < self->count; i++) {
        struct cm_growing *finding = &self->findings[i];
        self->by_others[i] = has_few(finding);
        any |= self->by_others[i];
    }
    if (any) {
        note_each(self, &live, note_behind);
        for (size_t i = 0; i < self->count; i++) {
            choose_targets(self, &self->findings[i]);
        }
        drop_targets_of_no_group(self);
    }
    drop_small(self);
    cm_objects_array_release(&live);
}
