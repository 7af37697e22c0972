/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* All live tensors are listed; which of them belong to a site is asked of the
 * table of blocks. */

#include "growth_private.h"

#include "../../detector/alloc.h"
#include "../allocations/allocations.h"
#include "../frozen/autograd.h"
#include "../frameworks/live.h"
#include "session_private.h"
#include "../allocations/unhooked.h"

struct cm_growing *
cm_growing_of(struct cm_growth_look *self, int device, uint32_t site)
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
            ? cm_growing_of(self, block.device, block.site.index)
            : NULL;
    return finding != NULL && !cm_growing_gradients(finding)
           && !cm_growing_add(self, finding, object);
}

/* ---- or have it behind them, kept by C++ for a backward pass */

static void
regroup(struct cm_growth_look *self, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < self->target_count; i++) {
        if (self->groups[i] == from) {
            self->groups[i] = to;
        }
    }
}

/* Of those that have the finding's memory behind them without a graph, until it
 * is known whether they are its targets: parameters, one gradient each. */
static uint32_t
group_without(const struct cm_growing *finding)
{
    return finding->group + (uint32_t)MOST_FINDINGS;
}

bool
cm_growing_add_without(struct cm_growth_look *self, struct cm_growing *finding,
                       PyObject *object)
{
    return add_to_group(self, object, group_without(finding),
                        &finding->without_graph);
}

/* A graph keeps it for a backward pass. */
static void
take_graphs(struct cm_growth_look *self, struct cm_growing *finding)
{
    finding->targets = 0;
    cm_growing_add_behind(self, finding);
    if (finding->row.category == CM_OTHER && finding->steps_behind != 0) {
        finding->row.category = CM_SAVED;
        cm_growth_categorize(&self->session->growth,
                             (struct cm_site_id){finding->row.site}, CM_SAVED);
    }
}

/* The few that have the memory themselves may be what the running call has
 * just made; the others then have the rest: a graph, unless parameters have as
 * much of it, whatever graph they are in just now. */
static void
choose_targets(struct cm_growth_look *self, struct cm_growing *finding)
{
    uint32_t few = 2 * finding->targets;
    uint64_t behind = cm_growing_choose_behind(self, finding);
    bool graph = behind > finding->without_graph;
    bool others = finding->without_graph > few || behind > few;

    if (!others || !graph) {
        finding->steps_behind = 0;
    }
    if (others) {
        regroup(self, finding->group, NO_GROUP);
    }
    if (others && graph) {
        take_graphs(self, finding);
    }
    else if (others) {
        finding->targets = finding->without_graph;
    }
    regroup(self, group_without(finding),
            others && !graph ? finding->group : NO_GROUP);
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

/* What a graph alone has is behind whoever has the graph: those to the end, in
 * any order.  [How many others there are] */
static size_t
part_kept_by_cpp(struct cm_objects_array *live)
{
    size_t others = 0;
    for (size_t i = 0; i < live->count; i++) {
        PyObject *object = live->items[i];
        if (!cm_grad_kept_by_cpp(object)) {
            live->items[i] = live->items[others];
            live->items[others++] = object;
        }
    }
    return others;
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
    struct cm_objects_array others = {.items = live.items,
                                      .count = part_kept_by_cpp(&live)};
    note_each(self, &others, note_target);
    for (size_t i = 0; i < self->count; i++) {
        struct cm_growing *finding = &self->findings[i];
        self->by_others[i] = has_few(finding);
        any |= self->by_others[i];
    }
    if (any) {
        cm_growing_find_behind(self, &others);
        cm_growing_find_kept(self, live.items + others.count,
                             live.count - others.count);
        for (size_t i = 0; i < self->count; i++) {
            choose_targets(self, &self->findings[i]);
        }
        drop_targets_of_no_group(self);
    }
    drop_small(self);
    cm_objects_array_release(&live);
}
