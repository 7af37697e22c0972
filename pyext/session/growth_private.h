/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_PRIVATE_H
#define CM_GROWTH_PRIVATE_H

/* What the files behind growth_look.h share.  Not for anyone else. */

#include "growth_look.h"

#include "../../detector/index.h"
#include "../../detector/site_growth.h"
#include "../../reports/growth_use.h"
#include "../../reports/leak.h"
#include "../allocations/allocations.h"
#include "../holders/holders.h"

enum {
    MOST_FINDINGS = 64,
    MOST_TARGETS = 4096, /* of one finding */
    MOST_NAMES = 16,
    MOST_OWNED_SITES = 1024,
    MOST_WALKS = 400,
    MOST_KEPT = 16, /* that say whether they are links of a chain */
    NO_GROUP = INT32_MAX,
    MOST_POINTS = CM_SERIES_POINTS,
};

/* One line of the table that a person reads. */
struct cm_growing {
    struct cm_growth_row row;
    uint32_t group;
    bool bounded; /* a leak but for who holds it */
    bool unsure;  /* whether it has stopped */
    bool copy; /* of the model's weights: its targets are told, not sought */
    uint32_t targets;              /* who have the memory themselves, or by a
                                    * graph, once it is known which of them */
    uint32_t behind;               /* who have it by a graph, ... */
    uint32_t most_behind;          /* ... blocks behind one of these at most */
    uint32_t links;                /* about as many behind so many, with those
                                    * that C++ alone has */
    uint32_t without_graph;        /* parameters that C++ has a gradient of */
    uint64_t steps_behind;         /* of backward, behind one of the targets */
    const char *names[MOST_NAMES]; /* borrowed of the rows from Python */
    size_t name_count;
    char device[CM_DEVICE_NAME_BYTES];
    int64_t series[MOST_POINTS][CM_LEAK_SERIES_NUMBERS];
    size_t point_count;
};

/* A tensor's graph, and what of the findings' memory it keeps: in all, and of
 * what no graph before it was seen to keep. */
struct cm_growing_graph {
    PyObject *object; /* borrowed */
    uint64_t steps;
    bool cut;  /* there is more of it */
    bool kept; /* C++ alone has the tensor, in the graph of another */
    uint32_t fresh_of_all;
    uint32_t blocks[MOST_FINDINGS], fresh[MOST_FINDINGS];
};

/* A zeroed value is valid and empty. */
struct cm_growing_graphs {
    struct cm_growing_graph *items; /* owned; [MOST_WALKS + MOST_KEPT] */
    size_t count;
    size_t walked, leaves; /* of these, not kept; of others, walked too */
    size_t live, met;      /* tensors that have one */
    struct cm_index index; /* of blocks seen behind one */
    uint64_t *seen;        /* owned: their addresses */
    size_t seen_count, seen_capacity;
};

struct cm_growth_look {
    struct cm_session *session;
    struct cm_growing *findings; /* owned */
    size_t count;
    PyObject **targets; /* owned, of borrowed objects */
    uint32_t *groups;   /* owned */
    PyObject **hidden;  /* owned, of borrowed objects: who asks */
    size_t hidden_count, hidden_capacity;
    size_t target_count, target_capacity, group_capacity;
    bool by_others[MOST_FINDINGS]; /* few tensors have this memory */
    bool ending;                   /* the program's variables are gone */
    struct cm_growing_graphs graphs;
    enum cm_status status;
};

/* Far more bytes than so many new ones of their size would have. */
bool cm_growing_has_larger(const struct cm_growth_row *row);
/* No more of them than before, and more bytes. */
bool cm_growing_larger(const struct cm_growth_row *row);
/* Gradients that linger: C++ holds them, behind their parameters. */
bool cm_growing_gradients(const struct cm_growing *self);
/* Several have most of its blocks behind them: each is made of the one before. */
bool cm_growing_chained(const struct cm_growing *self);
/* Most that have such a graph are within those of the few that Python has. */
bool cm_growing_behind_few(const struct cm_growing *self);
/* False: no memory. */
bool cm_growing_add(struct cm_growth_look *look, struct cm_growing *self,
                    PyObject *object);
struct cm_growing *cm_growing_of(struct cm_growth_look *look, int device,
                                 uint32_t site);
/* One that has it behind it without a graph; false: no memory. */
bool cm_growing_add_without(struct cm_growth_look *look,
                            struct cm_growing *self, PyObject *object);
/* The tensors whose memory the findings' sites allocated, and those that have
 * it behind them. */
void cm_growing_find(struct cm_growth_look *look);

/* ---- growth_behind.c: who has a finding's memory by a graph */

/* Of these tensors, for the findings of which few have the memory themselves. */
void cm_growing_find_behind(struct cm_growth_look *look,
                            const struct cm_objects_array *live);
/* And of some of these, which C++ alone has. */
void cm_growing_find_kept(struct cm_growth_look *look, PyObject *const *items,
                          size_t count);
/* Which of their graphs are those of this finding; how many of its blocks these
 * have, of more than can be counted at least their own number. */
uint64_t cm_growing_choose_behind(struct cm_growth_look *look,
                                  struct cm_growing *self);
/* Makes these its targets. */
void cm_growing_add_behind(struct cm_growth_look *look,
                           struct cm_growing *self);
void cm_growing_release_behind(struct cm_growth_look *look);

/* ---- growth_bound.c: growth that has an end, and is no leak for that */

/* It is not known yet whether it has one. */
void cm_growing_look_again(struct cm_session *session);
/* A leak becomes growing where it has an end, or may have one. */
void cm_growing_bound(struct cm_growth_look *look, struct cm_growing *self,
                      const struct cm_holder *holder);

/* What is told of a finding, with all that it points to. */
struct cm_growing_told {
    struct cm_growth_use use;
    struct cm_holder_use steps[CM_GROWTH_MAX_HOLDERS];
    char behind[48];
};

/* `free_bytes`: {device: bytes that can still be allocated}. */
void cm_growing_tell(const struct cm_growth_look *look,
                     const struct cm_growing *self,
                     const struct cm_holder *holder, PyObject *free_bytes,
                     struct cm_growing_told *told);

#endif
