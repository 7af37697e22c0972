/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MADE_H
#define CM_MADE_H

/* Where a reference was made: the lines of source that a person would look
 * at, found among the stores that code objects remember.
 *
 * A function or a frame knows its line.  For an attribute the places are, the
 * nearest first: the methods of the owner's type, the functions on the stack
 * that allocated the payload, the code that stands in the cycle, and the
 * methods of the other types in the cycle.  Library code counts only where
 * the user's own code has nothing.  One candidate is certain, of several at
 * most CM_MAX_PLACES are given. */

#include <stdbool.h>
#include <stdint.h>

#include "finding.h"
#include "suspect.h"

struct cm_made {
    struct cm_place places[CM_MAX_PLACES];
    uint32_t place_count;
    bool made;    /* the value, in that line: nobody else need have it */
    char *reason; /* owned: why there is no place, NULL when there is one */
};

/* A zeroed value is valid and empty. */
void cm_made_release(struct cm_made *self);

/* A way of finding the place.  `result` is zeroed before.  CM_NO_MEMORY when
 * the reason could not be written. */
typedef enum cm_status cm_made_finder(const struct cm_cycle *cycle,
                                      const struct cm_suspect *suspect,
                                      struct cm_made *result);

struct cm_made_line {
    char text[128];
};

/* "file.py:12" of the first place that is found; "" for none. */
struct cm_made_line cm_made_line_of(const struct cm_cycle *cycle,
                                    cm_made_finder *find,
                                    const struct cm_suspect *suspect);

cm_made_finder cm_made_by_function;  /* where `maker` is made */
cm_made_finder cm_made_by_hook;      /* register_..._hook(), else the above */
cm_made_finder cm_made_by_closure;   /* where `maker` is made, else a store */
cm_made_finder cm_made_by_attribute; /* stores of the attribute `held` */
cm_made_finder cm_made_by_link;      /* the function `maker`, else likewise */
cm_made_finder cm_made_by_method;    /* likewise, else the method's line */
cm_made_finder cm_made_by_local;     /* stores of the local `held` */
cm_made_finder cm_made_by_holder;    /* as `held` is: any of the two above */
cm_made_finder cm_made_by_filling;   /* calls that fill a container */
cm_made_finder cm_made_by_class;     /* the class statement */
cm_made_finder cm_made_by_torch;     /* no line: torch made it */
cm_made_finder cm_made_nowhere;

/* `package` becomes the installed package that the cycle lives in, the place
 * with it; NULL: something of it is the user's own. */
enum cm_status cm_made_library(struct cm_cycle *cycle,
                               const struct cm_suspect *suspect,
                               const struct cm_made *made, char **package)
    CM_CHECKED;

#endif
