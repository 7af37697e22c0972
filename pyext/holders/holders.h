/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HOLDERS_H
#define CM_HOLDERS_H

/* Who holds objects that grow in number: for each group of them (one
 * allocation site) the place nearest to them at which most of them hang, the
 * way to it from a named root, where it is filled, what goes with it, and what
 * to write instead.
 *
 * One walk (reach.h) for all groups.  Nothing in the result refers to an
 * object: texts, types and codes are those of the records. */

#include "../../graph/holding.h"
#include "reach.h"

struct cm_holders_query {
    struct cm_objects *objects; /* borrowed, as all here */
    struct cm_devices *devices; /* may be NULL */
    PyObject *const *targets;
    const uint32_t *groups; /* [target_count], each below group_count */
    uint32_t target_count, group_count;
    /* All of these may be NULL, else [group_count]: */
    const struct cm_site_id *sites; /* that made the group's objects */
    const char *const *categories;  /* as leak.json names them */
    const uint64_t *autograd_depths;
    const bool *growing;
    const bool *chained;     /* as graph/holding.h has it */
    const bool *behind_few;  /* most that have it are in the graphs of few */
    PyObject *const *hidden; /* the asker's own lists; may be NULL */
    size_t hidden_count;
    bool several_optimizers;       /* have stepped */
    struct cm_reach_bounds bounds; /* max_edges 0: retained is not known */
};

struct cm_holder {
    struct cm_holding_step *steps; /* owned; the root first, one of the
                                    * targets last; none: nothing in Python
                                    * reaches any of them */
    size_t step_count;
    size_t at;          /* the step at which they pile up */
    uint32_t through;   /* targets that hang from it */
    uint32_t targets;   /* of the group */
    uint32_t unreached; /* of these, not met: C++ holds them, or `cut` */
    uint32_t chain;     /* links, where it is the head of a chain; else 0 */
    bool stepped;       /* an optimizer has its targets too */
    struct cm_place places[CM_MAX_PLACES];
    uint32_t place_count;
    bool retained_known;
    uint64_t retained_bytes; /* that go when this reference goes */
    uint64_t shared_bytes;   /* of its targets, held by others too */
    bool bounded;     /* of what piles up at most so much may be there, */
    bool emptied;     /* or a line empties it now and then, */
    bool windowed;    /* in a loop within the one that fills it, */
    bool of_each;     /* and both are so of each of its items alone, */
    bool renewed;     /* or each is of one turn of a loop, and goes with it, */
    bool fills;       /* or each item there gets it once, so that it ends if
                       * the items do not get more */
    const char *rule; /* constant */
    char *advice;     /* owned */
};

struct cm_holders {
    struct cm_holder *items; /* owned; [group_count] */
    uint32_t count;
    uint32_t nodes, nodes_left; /* looked into; met but not looked into */
    bool cut;                   /* a bound was met */
};

/* Bounds for a look that nobody asked for. */
extern const struct cm_reach_bounds cm_holders_bounds;

/* A zeroed value is valid and empty.  Before: the GIL.  After a failure: empty.
 * Cost: that of the walk, and 40 bytes for each object from which a target can
 * be reached. */
enum cm_status cm_holders_find(struct cm_holders *self,
                               const struct cm_holders_query *query)
    CM_CHECKED;
void cm_holders_release(struct cm_holders *self);

#endif
