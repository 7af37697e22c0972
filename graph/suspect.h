/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SUSPECT_H
#define CM_SUSPECT_H

/* The shapes of reference cycles: each function says whether a cycle has its
 * shape, and if so which of its edges a person would cut.  Shapes look at
 * edges and species only, never at the order of nodes; where several places
 * fit, the first in order of edges is taken.
 *
 * The table in cut.c says in which order they are asked. */

#include <stdbool.h>
#include <stdint.h>

#include "cycle.h"

#define CM_MAX_ALSO 3

struct cm_suspect {
    uint32_t edge;  /* the reference to cut; 0: none */
    uint32_t owner; /* the object that the cycle is told from */
    uint32_t held;  /* the attribute or local that a person clears; 0: none */
    uint32_t maker; /* function, frame or generator whose code matters */
    bool handed_on; /* a library's object has the method: a timer, a future */
    /* Locals and attributes by which the cycle would live on with the one
     * reference cut. */
    uint32_t also[CM_MAX_ALSO];
    uint32_t also_count;
};

static inline struct cm_suspect
cm_suspect_of(uint32_t edge, uint32_t owner, uint32_t held, uint32_t maker)
{
    return (struct cm_suspect){
        .edge = edge, .owner = owner, .held = held, .maker = maker};
}

/* module or tensor -> its hooks -> function -> cell -> something that leads
 * back to the module. */
bool cm_suspect_hook(struct cm_cycle *cycle, struct cm_suspect *result);
/* backward step -> what a pack hook made of a tensor: the same tensor, which
 * leads back to the step */
bool cm_suspect_packed(struct cm_cycle *cycle, struct cm_suspect *result);
/* owner .attr -> function -> cell or default -> owner */
bool cm_suspect_lambda(struct cm_cycle *cycle, struct cm_suspect *result);
/* owner .attr -> bound method -> owner */
bool cm_suspect_method(struct cm_cycle *cycle, struct cm_suspect *result);
/* owner .attr -> partial -> owner */
bool cm_suspect_partial(struct cm_cycle *cycle, struct cm_suspect *result);
/* frame -> local -> exception -> traceback -> the frame; objects of libraries
 * (a future, a task) may stand between, and the local is the user's if any
 * is */
bool cm_suspect_exception(struct cm_cycle *cycle, struct cm_suspect *result);
/* owner .attr -> exception -> traceback -> frame -> local -> owner, likewise */
bool cm_suspect_kept_exception(struct cm_cycle *cycle,
                               struct cm_suspect *result);
/* frame -> local -> the frame, or one that it called */
bool cm_suspect_frame(struct cm_cycle *cycle, struct cm_suspect *result);
/* generator, coroutine -> its local -> ... -> itself */
bool cm_suspect_generator(struct cm_cycle *cycle, struct cm_suspect *result);
/* type -> its mro -> itself */
bool cm_suspect_class(struct cm_cycle *cycle, struct cm_suspect *result);
/* function -> cell -> the same function */
bool cm_suspect_recursion(struct cm_cycle *cycle, struct cm_suspect *result);
/* any cell of a closure */
bool cm_suspect_cell(struct cm_cycle *cycle, struct cm_suspect *result);
/* owner __dict__ -> owner, a dict of which the items are the attributes */
bool cm_suspect_own_dict(struct cm_cycle *cycle, struct cm_suspect *result);
/* owner .attr -> owner */
bool cm_suspect_self(struct cm_cycle *cycle, struct cm_suspect *result);
/* objects linked by attributes */
bool cm_suspect_back_link(struct cm_cycle *cycle, struct cm_suspect *result);
/* nothing but dicts, lists, tuples and sets */
bool cm_suspect_container(struct cm_cycle *cycle, struct cm_suspect *result);
/* Not a shape: the attributes that lead back as well, where `held` is one and
 * all of its name and type of owner are cut. */
void cm_suspect_others(struct cm_cycle *cycle, struct cm_suspect *suspect);
/* Not a shape: whether a line of the program's own sets the attribute. */
bool cm_suspect_is_set_by_program(const struct cm_cycle *cycle,
                                  struct cm_link link);
/* anything; no edge */
bool cm_suspect_unknown(struct cm_cycle *cycle, struct cm_suspect *result);

#endif
