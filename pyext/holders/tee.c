/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* An iterator has its block and then, as an int, how many items of that it has
 * taken: the block stands where traverse says, else nothing is read.  Costs
 * nothing but a look at the targets' parents where there is no tee; else one
 * pass over the nodes. */

#include "tee.h"

#include "../tables/fields.h"

enum {
    MOST = 256, /* iterators, and blocks */
    MOST_CLIMBS = 100000,
    TARGET_DEPTH = 4, /* of a target in an item of a block */
};

struct tees {
    struct cm_reach *reach;
    PyTypeObject *iterator, *block;
    uint32_t iterators[MOST], blocks[MOST];
    size_t iterator_count, block_count;
};

/* ---- what they refer to */

struct block_search {
    PyTypeObject *type;
    PyObject *found;
};

static int
see_block(PyObject *referent, void *context)
{
    struct block_search *search = context;
    if (Py_TYPE(referent) == search->type) {
        search->found = referent;
    }
    return 0;
}

/* Of an iterator its block, of a block the next one; NULL: none. */
static PyObject *
next_block(const struct tees *self, PyObject *object)
{
    struct block_search search = {.type = self->block};
    (void)Py_TYPE(object)->tp_traverse(object, see_block, &search);
    return search.found;
}

/* -1: not known. */
static int
taken_of(const struct tees *self, uint32_t iterator)
{
    struct {
        PyObject head;
        PyObject *block;
        int taken;
    } *raw = (void *)self->reach->objects[iterator];
    bool proven = (size_t)Py_TYPE(&raw->head)->tp_basicsize >= sizeof *raw
                  && raw->block == next_block(self, (PyObject *)raw);
    return proven && raw->block != NULL && raw->taken >= 0 ? raw->taken : -1;
}

/* ---- which there are */

static bool
find_types(struct tees *self)
{
    const struct cm_reach *reach = self->reach;
    for (size_t i = 0; i < reach->hit_count; i++) {
        uint32_t node = reach->hits[i].parent;
        for (int k = 0; k < TARGET_DEPTH && node < CM_FROM_ROOT; k++) {
            PyTypeObject *type = Py_TYPE(reach->objects[node]);
            if (cm_type_is(type, "itertools._tee_dataobject")) {
                self->block = type;
                return true;
            }
            node = reach->parents[node];
        }
    }
    return false;
}

static void
list_nodes(struct tees *self)
{
    const struct cm_reach *reach = self->reach;
    for (uint32_t node = 1; node <= reach->node_count; node++) {
        PyTypeObject *type = Py_TYPE(reach->objects[node]);
        if (type == self->block && self->block_count < MOST) {
            self->blocks[self->block_count++] = node;
        }
        else if ((type == self->iterator
                  || (self->iterator == NULL
                      && cm_type_is(type, "itertools._tee")))
                 && self->iterator_count < MOST) {
            self->iterator = type;
            self->iterators[self->iterator_count++] = node;
        }
    }
}

static uint32_t
node_of_block(const struct tees *self, const PyObject *block)
{
    for (size_t i = 0; i < self->block_count; i++) {
        if (self->reach->objects[self->blocks[i]] == block) {
            return self->blocks[i];
        }
    }
    return 0;
}

/* ---- the parents */

static bool
leads_to(const struct cm_reach *reach, uint32_t from, uint32_t node)
{
    int climbs = 0;
    while (from < CM_FROM_ROOT && from != node && climbs < MOST_CLIMBS) {
        from = reach->parents[from];
        climbs++;
    }
    return from < CM_FROM_ROOT;
}

static void
set_parent(struct cm_reach *reach, uint32_t node, uint32_t parent)
{
    if (parent != 0 && !leads_to(reach, parent, node)) {
        reach->parents[node] = parent;
    }
}

/* The block before `node` on the way from an iterator, which is farther behind
 * than who begins with it; 0: there is none. */
static uint32_t
block_before(const struct tees *self, uint32_t iterator, uint32_t node)
{
    const PyObject *block = self->reach->objects[node], *before = NULL;
    PyObject *at = next_block(self, self->reach->objects[iterator]);
    for (int i = 0; at != NULL && at != block && i < MOST; i++) {
        before = at;
        at = next_block(self, at);
    }
    return at == block && before != NULL ? node_of_block(self, before) : 0;
}

static void
settle_block(struct tees *self, uint32_t node)
{
    struct cm_reach *reach = self->reach;
    uint32_t last = reach->parents[node];
    int least =
        last < CM_FROM_ROOT && Py_TYPE(reach->objects[last]) == self->iterator
            ? taken_of(self, last)
            : -1;
    for (size_t i = 0; least >= 0 && i < self->iterator_count; i++) {
        uint32_t other = self->iterators[i];
        uint32_t before = block_before(self, other, node);
        if (before != 0) {
            set_parent(reach, node, before);
            return;
        }
        int taken =
            next_block(self, reach->objects[other]) == reach->objects[node]
                ? taken_of(self, other)
                : -1;
        if (taken >= 0 && taken < least) {
            least = taken;
            last = other;
        }
    }
    if (least >= 0 && last != reach->parents[node]) {
        set_parent(reach, node, last);
    }
}

void
cm_tee_settle(struct cm_reach *reach)
{
    struct tees self;
    self.reach = reach;
    self.iterator = self.block = NULL;
    self.iterator_count = self.block_count = 0;
    if (!find_types(&self)) {
        return;
    }
    list_nodes(&self);
    for (size_t i = 0; i < self.block_count; i++) {
        settle_block(&self, self.blocks[i]);
    }
}
