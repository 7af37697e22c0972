/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_CYCLE_H
#define CM_CYCLE_H

/* One cyclic component, ready for questions: what leads where inside it, and
 * which named reference holds what.  The rules of cut.c are written in these
 * words.  Every search stays inside the component, and all searches together
 * are bounded in their visits; beyond that they find nothing, so that a rule
 * does not match rather than take long. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "component.h"
#include "name.h"
#include "../detector/records.h"

#define CM_CYCLE_VISITS 100000
#define CM_CYCLE_VISITS_EACH 32 /* and so many more for each member */
#define CM_CYCLE_PAYLOADS 4
#define CM_CYCLE_CUTS 4

/* A set of roles, one bit each. */
#define CM_ROLE(name) (1u << (name))
#define CM_ROLES_ALL UINT32_MAX
#define CM_ROLES_LIBRARY (1u << 31) /* all that a library's object refers to */
#define CM_ROLES_CONTAINER                                                    \
    (CM_ROLE(CM_KEY) | CM_ROLE(CM_VALUE) | CM_ROLE(CM_ITEM)                   \
     | CM_ROLE(CM_ELEMENT))
#define CM_ROLES_CLOSURE                                                      \
    (CM_ROLE(CM_CLOSURE) | CM_ROLE(CM_CLOSURE_CELL)                           \
     | CM_ROLE(CM_CELL_CONTENTS))

struct cm_cycle {
    const struct cm_heap *heap;
    const struct cm_records *records;
    const struct cm_components *components;
    uint32_t component;
    const uint32_t *nodes; /* borrowed; ascending */
    uint32_t size;
    uint32_t holder; /* member that the largest payload hangs from */
    uint32_t payload[CM_CYCLE_PAYLOADS]; /* device nodes, the largest first */
    uint32_t payload_count;
    uint32_t *into_first; /* owned; [size + 1] */
    uint32_t *into;       /* owned; edges inside, ordered by head */
    uint32_t *came_by;    /* owned; edge by which a search came to a member */
    uint32_t *seen;       /* owned; stamp of the search that saw it */
    uint32_t *queue;      /* owned; in order of the visits */
    uint32_t stamp;
    int64_t budget;
    /* Links that cm_cycle_reach does not follow, nor any of the same name and
     * type of owner. */
    uint32_t cuts[CM_CYCLE_CUTS];
    uint32_t cut_count;
};

/* `self` is zeroed before, empty after a failure. */
enum cm_status cm_cycle_init(struct cm_cycle *self, const struct cm_heap *heap,
                             const struct cm_records *records,
                             const struct cm_components *components,
                             uint32_t component) CM_CHECKED;
void cm_cycle_release(struct cm_cycle *self);

/* The next edge after `edge` (0: the first) that lies inside and has one of
 * the roles; 0 after the last. */
uint32_t cm_cycle_next(const struct cm_cycle *self, uint32_t edge,
                       uint32_t roles);

/* Breadth first over edges of these roles.  The last edge of a shortest way
 * of at least one edge, 0 when there is none. */
uint32_t cm_cycle_reach(struct cm_cycle *self, uint32_t from, uint32_t goal,
                        uint32_t roles);
/* Whether the way just found by cm_cycle_reach touches such a node. */
bool cm_cycle_touches(const struct cm_cycle *self, uint32_t from,
                      uint32_t goal, enum cm_species species);
/* The same for the last edge on it with one of the roles, 0: none. */
uint32_t cm_cycle_last(const struct cm_cycle *self, uint32_t from,
                       uint32_t goal, uint32_t roles);
/* Orders the members by their distance from `from`: after the call queue[] is
 * the order.  False when the visits were used up before. */
bool cm_cycle_spread(struct cm_cycle *self, uint32_t from);

/* A named reference of an object: an attribute, wherever Python keeps it
 * (inline, slot, instance dict, a module's table of submodules), or an entry
 * in a hook table of a framework. */
struct cm_link {
    uint32_t edge;
    uint32_t owner;
};
/* Whether the edge is one. */
bool cm_cycle_link(const struct cm_cycle *self, uint32_t edge,
                   struct cm_link *result);
/* Whether it is an entry in such a table: the owner's part. */
bool cm_cycle_is_part(const struct cm_cycle *self, struct cm_link link);
/* Whether it is such a table, which no person clears. */
bool cm_cycle_is_table(const struct cm_cycle *self, struct cm_link link);
/* Whether the link holds hooks of a framework. */
bool cm_cycle_is_hook(const struct cm_cycle *self, struct cm_link link);

/* What a search for the link that holds a node accepts. */
struct cm_want {
    uint32_t owner;         /* 0: any */
    bool hook;              /* only tables of hooks */
    bool through_libraries; /* what a library's object refers to is passed */
    bool users;             /* no link of a library's object */
};
/* Breadth first backwards from `node` over edges of these roles, to the
 * nearest link that is wanted.  No way leads on through other links. */
bool cm_cycle_held(struct cm_cycle *self, uint32_t node, uint32_t roles,
                   struct cm_want want, struct cm_link *result);
/* The last function on the way from the link just found down to `node`;
 * 0: none. */
uint32_t cm_cycle_function(const struct cm_cycle *self, struct cm_link link,
                           uint32_t node);

static inline const struct cm_node *
cm_cycle_node(const struct cm_cycle *self, uint32_t node)
{
    return &self->heap->nodes[node];
}

static inline const struct cm_edge *
cm_cycle_edge(const struct cm_cycle *self, uint32_t edge)
{
    return &self->heap->edges[edge];
}

/* What a person calls the reference: "cb" of ".cb". */
static inline struct cm_name
cm_cycle_edge_name(const struct cm_cycle *self, uint32_t edge)
{
    return cm_name_of_label(self->records, cm_cycle_edge(self, edge)->label);
}

/* A timer, an exit stack, a future, a defaultdict: it only passes on what it
 * was given. */
static inline bool
cm_cycle_is_library_object(const struct cm_cycle *self, uint32_t node)
{
    const struct cm_node *record = cm_cycle_node(self, node);

    return (record->species == CM_OBJECT || record->species == CM_DICT)
           && cm_records_type(self->records, record->type)->library;
}

/* What holds items that a person puts there one by one. */
static inline bool
cm_cycle_is_container(const struct cm_cycle *self, uint32_t node)
{
    const struct cm_node *record = cm_cycle_node(self, node);
    const struct cm_type *type = cm_records_type(self->records, record->type);

    return (record->species >= CM_DICT && record->species <= CM_SET)
           || strcmp(cm_records_text(self->records, type->name),
                     "collections.deque")
                  == 0;
}

static inline bool
cm_cycle_has(const struct cm_cycle *self, uint32_t node)
{
    return self->components->of_node[node] == self->component;
}

static inline uint32_t
cm_cycle_place(const struct cm_cycle *self, uint32_t node)
{
    return self->components->position[node]
           - self->components->first[self->component];
}

#endif
