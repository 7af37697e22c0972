/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PILE_H
#define CM_PILE_H

/* Where the targets of a group pile up: the object nearest to them from which
 * most of them hang, by what a walk (reach.h) has found. */

#include "reach.h"

/* Work space for all groups of one walk.  A zeroed value is valid and empty. */
struct cm_piles {
    const struct cm_reach *reach; /* borrowed, as the next */
    const uint32_t *groups;       /* [target_count] */
    uint32_t *below; /* owned; [nodes + 1] targets of the group below it */
    uint32_t *stamp; /* owned; [nodes + 1] 1 + the target counted last */
    uint32_t *order; /* owned: hits, by target */
    uint32_t *first; /* owned; [targets + 2] see cm_piles_from() */
    uint64_t climbs;
    bool outside; /* of optimizers, places are sought now */
};

struct cm_pile {
    uint32_t node;      /* of the walk; 0: a root refers to them itself */
    uint32_t targets;   /* of the group */
    uint32_t unreached; /* of these */
    uint32_t through;   /* that hang from the node */
    bool stepped;       /* an optimizer has them too, and nearer */
    uint32_t chain; /* links, where the node is the head of a chain; else 0 */
    const struct cm_reach_hit *way; /* to one of them, through the node if one
                                     * leads there; NULL: none was reached */
};

/* After a failure: empty. */
enum cm_status cm_piles_init(struct cm_piles *self,
                             const struct cm_reach *reach,
                             const uint32_t *groups) CM_CHECKED;
void cm_piles_release(struct cm_piles *self);
void cm_piles_find(struct cm_piles *self, uint32_t group,
                   struct cm_pile *result);

/* One of them hangs from this node by two ways: it is kept in two places. */
bool cm_piles_have_two_ways(struct cm_piles *self, uint32_t group,
                            uint32_t node);

/* Of targets with a graph: most are behind that of the few which variables and
 * attributes have, and who has the one that `way` leads to has them. */
static inline bool
cm_pile_is_behind(const struct cm_pile *self)
{
    uint32_t met = self->targets - self->unreached;
    return self->way != NULL && met * 2 < self->unreached
           && self->way->parent < CM_FROM_ROOT;
}

/* The ways to a target are cm_piles_way(i) for i in [from, to). */
static inline uint32_t
cm_piles_from(const struct cm_piles *self, uint32_t target)
{
    return self->first[target + 1];
}

static inline uint32_t
cm_piles_to(const struct cm_piles *self, uint32_t target)
{
    return target + 1 < self->reach->target_count
               ? self->first[target + 2]
               : (uint32_t)self->reach->hit_count;
}

static inline const struct cm_reach_hit *
cm_piles_way(const struct cm_piles *self, uint32_t i)
{
    return &self->reach->hits[self->order[i]];
}

#endif
