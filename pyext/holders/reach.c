/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A slot of the page table says of an object that it is a node, that it has
 * nothing to look into, or that it is a target not met yet.  A referent's slot
 * is looked at 32 references after it was asked for, as in trial.c, and all of
 * a level are in before the next one begins: so ways stay shortest.
 *
 * Modules and their dicts are nodes from the beginning, and classes of
 * libraries wait for the libraries' turn: else every way would lead through
 * some function's globals or some class into torch.
 *
 * Cost: 12 bytes an object met, 4 to 8 a reference that is kept, a third of a
 * byte for each byte of heap; one tp_traverse for each object. */

#include "reach.h"

#include "../../detector/alloc.h"
#include "../../detector/clock.h"
#include "../objects/numpy_array.h"
#include "unmet.h"

enum { AHEAD = 12, TIME_CHECK_MASK = 1023 };

/* Values of a slot; a node's number is below all of them. */
#define LEAF UINT32_C(0xFFFFFFFF)
#define WAITS UINT32_C(0x80000000)  /* and the number of the target */
#define TARGET UINT32_C(0x40000000) /* and the node */
/* Only variables refer to it yet; and the node. */
#define BY_NAME UINT32_C(0x20000000)
#define NODE UINT32_C(0x1FFFFFFF)

void
cm_reach_release(struct cm_reach *self)
{
    cm_huge_free(self->objects, self->object_capacity, sizeof(*self->objects));
    cm_huge_free(self->parents, self->parent_capacity, sizeof(*self->parents));
    cm_seconds_release(&self->seconds);
    cm_free(self->target_nodes);
    cm_free(self->target_ways);
    cm_free(self->next_same);
    cm_free(self->met_targets);
    cm_free(self->hits);
    cm_links_release(&self->links);
    for (int i = 0; i < CM_RANKS; i++) {
        cm_wave_release(&self->waves[i]);
    }
    cm_objects_array_release(&self->unmet);
    cm_page_table_release(&self->table);
    *self = (struct cm_reach){0};
}

static bool
fits(const PyObject *object)
{
    return ((uintptr_t)object & ((1u << CM_PLACE_BITS) - 1)) == 0;
}

static void
note(struct cm_reach *self, enum cm_status status)
{
    if (status != CM_OK) {
        self->status = status;
    }
}

/* ---- nodes */

static bool
grow_nodes(struct cm_reach *self)
{
    size_t needed = (size_t)self->node_count + 2;
    note(self, cm_huge_grow((void **)&self->parents, &self->parent_capacity,
                            needed, sizeof(*self->parents)));
    if (self->status == CM_OK) {
        note(self,
             cm_huge_grow((void **)&self->objects, &self->object_capacity,
                          needed, sizeof(*self->objects)));
    }
    return self->status == CM_OK;
}

static bool
has_room(struct cm_reach *self)
{
    if (self->node_count >= self->bounds.max_nodes
        || self->node_count >= NODE - 1) {
        self->cut = true;
        return false;
    }
    /* That of the parents is the same, or more. */
    return (size_t)self->node_count + 2 <= self->object_capacity
           || grow_nodes(self);
}

/* 0 when there is no room. */
static uint32_t
add_node(struct cm_reach *self, PyObject *object, uint32_t parent)
{
    if (!has_room(self)) {
        return 0;
    }
    self->node_count++;
    self->objects[self->node_count] = object;
    self->parents[self->node_count] = parent;
    return self->node_count;
}

static void
let_wait(struct cm_reach *self, uint32_t node, uint32_t rank)
{
    note(self, cm_wave_add(&self->waves[rank], node));
}

static uint32_t
rank_of(const struct cm_reach *self, PyObject *object)
{
    if (self->rank == CM_RANK_USER && PyType_Check(object)
        && !cm_roots_own_type(self->roots, (PyTypeObject *)object)) {
        return CM_RANK_LIBRARY;
    }
    return self->rank;
}

/* ---- references */

static void
keep_link(struct cm_reach *self, uint32_t tail, uint32_t head)
{
    /* What a module holds is held by its own root. */
    bool needless = self->bounds.max_edges == 0
                    || (head <= self->module_nodes && tail < CM_FROM_ROOT);
    if (needless) {
        return;
    }
    if (self->links.count >= self->bounds.max_edges) {
        self->cut = true;
        return;
    }
    note(self, cm_links_add(&self->links, tail, head));
}

/* The dict that module-level code has its variables in. */
static bool
is_callers_dict(const struct cm_reach *self, uint32_t parent)
{
    return parent < CM_FROM_ROOT && self->roots->caller_names != NULL
           && self->objects[parent] == self->roots->caller_names;
}

static bool
is_known_hit(const struct cm_reach *self, uint32_t target, uint32_t parent)
{
    for (size_t i = 0; i < self->hit_count && self->asked; i++) {
        if (self->hits[i].target == target && self->hits[i].parent == parent) {
            return true;
        }
    }
    return false;
}

static void
keep_hit(struct cm_reach *self, uint32_t target, uint32_t parent)
{
    bool passed =
        self->asked && (self->passed || is_callers_dict(self, parent));
    if ((self->target_ways[target] >= self->ways && !passed)
        || is_known_hit(self, target, parent)) {
        return;
    }
    note(self, cm_grow((void **)&self->hits, &self->hit_capacity,
                       self->hit_count + 1, sizeof(*self->hits)));
    if (self->status != CM_OK) {
        return;
    }
    self->hits[self->hit_count++] =
        (struct cm_reach_hit){target, parent, (uint8_t)self->rank, passed};
    self->target_ways[target] += !passed;
    self->met += self->target_ways[target] == self->ways && !passed;
}

/* A target that was met before: nodes of targets ascend in met_targets. */
static void
hit_again(struct cm_reach *self, uint32_t node, uint32_t parent)
{
    uint32_t low = 0, high = self->met_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        bool above = self->target_nodes[self->met_targets[middle]] > node;
        low = above ? low : middle;
        high = above ? middle : high;
    }
    uint32_t i = self->met_targets[low];
    for (; i != UINT32_MAX; i = self->next_same[i]) {
        keep_hit(self, i, parent);
    }
}

static void
meet_target(struct cm_reach *self, uint32_t *slot, PyObject *object,
            uint32_t parent)
{
    uint32_t first = *slot & ~WAITS;
    uint32_t node = add_node(self, object, parent);
    if (node == 0) {
        return;
    }
    *slot = TARGET | node;
    self->met_targets[self->met_count++] = first;
    for (uint32_t i = first; i != UINT32_MAX; i = self->next_same[i]) {
        self->target_nodes[i] = node;
        keep_hit(self, i, parent);
    }
    keep_link(self, parent, node);
    if (!self->asked && cm_can_traverse(object)) {
        let_wait(self, node, rank_of(self, object));
    }
}

static bool
is_name(const struct cm_reach *self, uint32_t parent)
{
    return parent >= CM_FROM_ROOT || parent <= self->module_nodes;
}

uint32_t
cm_reach_second(const struct cm_reach *self, uint32_t node)
{
    return is_name(self, self->parents[node])
               ? cm_seconds_get(&self->seconds, node)
               : 0;
}

static void
meet(struct cm_reach *self, uint32_t *slot, PyObject *object, uint32_t parent)
{
    if (!cm_leads_on(self->arrays, object)) {
        *slot = LEAF;
        return;
    }
    uint32_t node = add_node(self, object, parent);
    if (node == 0) {
        return;
    }
    *slot = node;
    if (is_name(self, parent)) {
        *slot |= BY_NAME;
        note(self, cm_seconds_add(&self->seconds, node));
    }
    keep_link(self, parent, node);
    let_wait(self, node, rank_of(self, object));
}

static void
settle(struct cm_reach *self, uint32_t *slot, PyObject *object,
       uint32_t parent)
{
    uint32_t known = *slot;
    if (known == LEAF || self->status != CM_OK) {
        return;
    }
    if (known == 0) {
        meet(self, slot, object, parent);
    }
    else if (known & WAITS) {
        meet_target(self, slot, object, parent);
    }
    else {
        keep_link(self, parent, known & NODE);
        if ((known & BY_NAME) && !is_name(self, parent)) {
            cm_seconds_set(&self->seconds, known & NODE, parent);
            *slot = known & ~BY_NAME;
        }
        if ((known & TARGET) && (self->ways > 1 || self->asked)) {
            hit_again(self, known & NODE, parent);
        }
    }
}

static void
settle_oldest(struct cm_reach *self)
{
    unsigned at = self->delayed_at;
    uint32_t *slot = self->delayed[at].slot;
    self->delayed[at].slot = NULL;
    if (slot != NULL) {
        settle(self, slot, self->delayed[at].object, self->delayed[at].parent);
    }
    self->delayed_at = (at + 1) % CM_REACH_DELAY;
}

static void
settle_all(struct cm_reach *self)
{
    for (int i = 0; i < CM_REACH_DELAY; i++) {
        settle_oldest(self);
    }
}

/* NULL: nothing of it matters. */
static uint32_t *
slot_of(struct cm_reach *self, PyObject *object)
{
    uint32_t *slot =
        cm_page_table_near(&self->table, &self->cursor, (uintptr_t)object);
    if (slot == NULL && cm_leads_on(self->arrays, object)) {
        enum cm_status status =
            cm_page_table_make(&self->table, (uintptr_t)object, &slot);
        if (status != CM_OK) {
            self->status = status;
            return NULL;
        }
    }
    return slot;
}

/* visitproc; stops the traversal only when all is over. */
static int
visit_referent(PyObject *referent, void *context)
{
    struct cm_reach *self = context;
    uint32_t *slot = fits(referent) ? slot_of(self, referent) : NULL;
    if (slot == NULL) {
        return self->status != CM_OK;
    }
    __builtin_prefetch(slot, 1);
    __builtin_prefetch(referent);
    settle_oldest(self);
    unsigned at = (self->delayed_at + CM_REACH_DELAY - 1) % CM_REACH_DELAY;
    self->delayed[at].slot = slot;
    self->delayed[at].object = referent;
    self->delayed[at].parent = self->parent;
    return self->status != CM_OK;
}

/* What traverse of a tensor that C++ holds too does not show. */
static void
show_more(struct cm_reach *self, PyObject *object)
{
    if (Py_TYPE(object) != self->last_type && self->devices != NULL) {
        self->last_type = Py_TYPE(object); /* neighbours are often of one */
        self->claimed = cm_devices_claim(self->devices, Py_TYPE(object));
    }
    if (self->claimed) {
        PyObject *names = cm_instance_dict(self->roots->objects, object);
        if (names != NULL) {
            (void)visit_referent(names, self);
        }
    }
    if (self->more != NULL) {
        self->more->show(self->more->context, object, visit_referent, self);
    }
}

static void
look_into(struct cm_reach *self, uint32_t node)
{
    PyObject *object = self->objects[node];
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    self->parent = node;
    if (traverse != NULL) {
        (void)traverse(object, visit_referent, self);
    }
    if (Py_TYPE(object) == self->arrays) {
        cm_numpy_visit(object, visit_referent, self);
    }
    show_more(self, object);
}

/* ---- the order of things */

static bool
is_over(struct cm_reach *self)
{
    bool done = self->met == self->target_count && self->bounds.max_edges == 0;
    return self->status != CM_OK || self->cut || done;
}

static void
look_at_clock(struct cm_reach *self, size_t done)
{
    self->cut |= (done & TIME_CHECK_MASK) == 0
                 && cm_clock_ns(CLOCK_THREAD_CPUTIME_ID) - self->start_ns
                        > self->bounds.max_time_ns;
}

static void
walk_wave(struct cm_reach *self, struct cm_wave *wave)
{
    size_t level_end = wave->count;
    while (!is_over(self)) {
        if (wave->taken == level_end) {
            settle_all(self);
            if (wave->taken == wave->count) {
                return;
            }
            level_end = wave->count;
            continue;
        }
        uint32_t node = cm_wave_take(wave);
        if (node + AHEAD <= self->node_count) {
            __builtin_prefetch(self->objects[node + AHEAD]);
        }
        look_into(self, node);
        look_at_clock(self, wave->taken);
    }
    settle_all(self);
}

static void
visit_root(struct cm_reach *self, size_t number)
{
    const struct cm_root *root = &self->roots->items[number];
    size_t caller = self->roots->caller;
    self->parent = CM_FROM_ROOT | (uint32_t)number;
    self->passed = caller != 0 && (number == caller - 1 || number == caller);
    if (root->kind != CM_ROOT_MODULE) {
        cm_root_visit(root, visit_referent, self);
        settle_all(self);
    }
    self->passed = false;
}

/* The module's node waits for its turn; its dict too, so that no function's
 * globals lead there before. */
static void
enter_module(struct cm_reach *self, size_t number)
{
    const struct cm_root *root = &self->roots->items[number];
    PyObject *objects[] = {root->object, PyModule_GetDict(root->object)};
    uint32_t parent = CM_FROM_ROOT | (uint32_t)number;
    for (int i = 0; i < 2 && self->status == CM_OK; i++) {
        uint32_t *slot = objects[i] == NULL || !fits(objects[i])
                             ? NULL
                             : slot_of(self, objects[i]);
        if (slot == NULL || *slot != 0) {
            continue; /* one module by two names, or a target */
        }
        uint32_t node = add_node(self, objects[i], parent);
        if (node == 0) {
            return;
        }
        *slot = node;
        keep_link(self, parent, node);
        let_wait(self, node, root->rank);
        parent = node;
    }
}

static void
enter_modules(struct cm_reach *self)
{
    for (size_t i = 0; i < self->roots->count; i++) {
        if (self->roots->items[i].kind == CM_ROOT_MODULE) {
            enter_module(self, i);
        }
    }
    self->module_nodes = self->node_count;
}

static void
enter_targets(struct cm_reach *self)
{
    for (uint32_t i = 0; i < self->target_count; i++) {
        uint32_t *slot = NULL;
        self->next_same[i] = UINT32_MAX;
        if (!fits(self->targets[i])) {
            continue;
        }
        self->status = cm_page_table_make(&self->table,
                                          (uintptr_t)self->targets[i], &slot);
        if (self->status != CM_OK) {
            return;
        }
        if (*slot & WAITS) {
            self->next_same[i] = *slot & ~WAITS;
        }
        *slot = WAITS | i;
    }
}

static void
hide(struct cm_reach *self)
{
    for (size_t i = 0; i < self->hidden_count; i++) {
        uint32_t *slot =
            fits(self->hidden[i]) ? slot_of(self, self->hidden[i]) : NULL;
        if (slot != NULL && *slot == 0) {
            *slot = LEAF;
        }
    }
}

static enum cm_status
begin(struct cm_reach *self)
{
    size_t count = (size_t)self->target_count + 1;
    self->target_nodes = cm_calloc(count, sizeof(*self->target_nodes));
    self->target_ways = cm_calloc(count, sizeof(*self->target_ways));
    self->next_same = cm_calloc(count, sizeof(*self->next_same));
    self->met_targets = cm_calloc(count, sizeof(*self->met_targets));
    self->arrays = cm_numpy_type(cm_roots_module(self->roots, "numpy"));
    self->start_ns = cm_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    self->status = self->target_nodes == NULL || self->target_ways == NULL
                           || self->next_same == NULL
                           || self->met_targets == NULL
                       ? CM_NO_MEMORY
                       : CM_OK;
    if (self->status == CM_OK) {
        enter_targets(self);
    }
    if (self->status == CM_OK) {
        hide(self);
    }
    if (self->status == CM_OK) {
        enter_modules(self);
    }
    return self->status;
}

/* ---- what no root leads to */

static bool
is_unmet(void *context, PyObject *object)
{
    uint32_t *slot = fits(object) ? slot_of(context, object) : NULL;
    return slot != NULL && (*slot == 0 || ((*slot & WAITS) && *slot != LEAF));
}

/* That something holds the target itself is known. */
static int
visit_held(PyObject *object, void *context)
{
    return *slot_of(context, object) == 0 ? visit_referent(object, context)
                                          : 0;
}

/* Costs a walk of the collector's lists: only where a target is missing. */
static void
visit_unmet(struct cm_reach *self, enum cm_unmet_part part)
{
    uint32_t from_last = part == CM_UNMET_HELD ? 2 : 1;
    self->parent = CM_FROM_ROOT | ((uint32_t)self->roots->count - from_last);
    if (cm_unmet_visit(&self->unmet, is_unmet, part, visit_held, self)
        == CM_NO_MEMORY) {
        self->status = CM_NO_MEMORY;
    }
    settle_all(self);
}

static bool
is_missing_any(const struct cm_reach *self)
{
    for (uint32_t i = 0; i < self->target_count; i++) {
        if (self->target_ways[i] == 0) {
            return true;
        }
    }
    return false;
}

static void
walk_from(struct cm_reach *self, enum cm_rank rank, enum cm_unmet_part part)
{
    self->rank = rank;
    if (rank >= CM_RANK_C && !is_over(self) && is_missing_any(self)) {
        visit_unmet(self, part);
    }
    for (size_t i = 0; i < self->roots->count && !is_over(self); i++) {
        if (self->roots->items[i].rank == rank) {
            visit_root(self, i);
        }
    }
    walk_wave(self, &self->waves[rank]);
}

enum cm_status
cm_reach_run(struct cm_reach *self)
{
    if (begin(self) == CM_OK) {
        for (enum cm_rank rank = 0; rank <= CM_RANK_C; rank++) {
            walk_from(self, rank, CM_UNMET_HELD);
        }
        walk_from(self, CM_RANK_DEAD, CM_UNMET_OWNERS);
        walk_from(self, CM_RANK_DEAD, CM_UNMET_ALL);
    }
    for (int i = 0; i < CM_RANKS; i++) {
        self->nodes_left +=
            (uint32_t)(self->waves[i].count - self->waves[i].taken);
    }
    cm_page_table_release(&self->table);
    enum cm_status status = self->status;
    if (status != CM_OK) {
        cm_reach_release(self);
    }
    return status;
}
