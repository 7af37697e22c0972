/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TURNS_H
#define CM_TURNS_H

/* What a turn of a loop leaves to the next one, of the variables that hold a
 * group's targets: one that each turn sets before it reads it goes with the
 * turn (graph/bound.h reads which, of what objects hold renewed.h). */

#include "holders.h"
#include "pile.h"
#include "program.h"

struct cm_turns {
    const struct cm_piles *piles;         /* borrowed, with what they found */
    const struct cm_holders_query *query; /* borrowed */
    struct cm_program *program;           /* borrowed */
    unsigned *asked; /* of all groups: who sets an attribute anew */
};

/* Nothing holds the group's but variables of one turn, what is set anew in
 * each, and what is computed with just now. */
bool cm_turns_renew(const struct cm_turns *self, uint32_t group);

/* The way begins at a variable that each turn sets before it reads it. */
bool cm_turns_renew_way(const struct cm_turns *self,
                        const struct cm_reach_hit *way);

/* A way to one of the group's by a variable that is left to the next turn:
 * `out, h = rnn(x, h)`; else, where no object has them all and `way` begins at
 * what each turn sets anew, by an attribute that stays, best by one that is not
 * set anew itself; `way` itself where it is such a one, or none is.  *node: in,
 * what has them all, 0: nothing; out, what the variable refers to, or has the
 * attribute; 0: a target itself. */
const struct cm_reach_hit *cm_turns_carried(struct cm_turns *self,
                                            uint32_t group,
                                            const struct cm_reach_hit *way,
                                            uint32_t *node);

/* Of targets that have most of the group's behind them: where the attribute
 * that `way` ends with is set anew in each turn, or is a place in a full window,
 * another way by what stays, as by .h in `self.h = self.cell(x, self.h);
 * self.last = self.out(self.h)`; `way` itself where there is none.  Before: an
 * object has the target. */
const struct cm_reach_hit *cm_turns_kept(struct cm_turns *self, uint32_t group,
                                         const struct cm_reach_hit *way);

#endif
