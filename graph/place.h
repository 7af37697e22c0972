/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PLACE_H
#define CM_PLACE_H

/* A search for lines of source: which stores count is the caller's, where to
 * look and which of the lines found are nearest is decided here. */

#include <stdbool.h>
#include <stdint.h>

#include "cycle.h"
#include "finding.h"

#define CM_PLACE_CANDIDATES 64
#define CM_PLACE_MEMBERS 256 /* of a cycle whose code and type count */

struct cm_place_candidate {
    struct cm_place place;
    uint32_t distance; /* 0: the line was running */
    bool made;         /* the value, in that line: x = Node() */
};

struct cm_place_search {
    const struct cm_cycle *cycle;
    bool (*is_wanted)(const struct cm_place_search *self,
                      const struct cm_store *store);
    const char *name; /* borrowed, for the predicate, as the next */
    const char *within;
    struct cm_code_id only;       /* of the stack; 0: all */
    struct cm_type_id owner_type; /* set by the search; 0: not known */
    struct cm_place_candidate found[CM_PLACE_CANDIDATES];
    uint32_t count;
};

/* A predicate: x.append(...), x[...] = ... and their like. */
bool cm_place_fills(const struct cm_place_search *self,
                    const struct cm_store *store);

/* Another: x.NAME = ..., no constant. */
bool cm_place_sets_attribute(const struct cm_place_search *self,
                             const struct cm_store *store);

/* In one piece of code that stands in the cycle. */
void cm_place_look_in_code(struct cm_place_search *self,
                           struct cm_code_id code);
/* In the code of a frame that is at this line: the line itself first, then what
 * comes after it, then what stands above. */
void cm_place_look_in_frame(struct cm_place_search *self,
                            const struct cm_frame *frame);
/* In what stands in the cycle: code, and the methods of its types. */
void cm_place_look_at_members(struct cm_place_search *self);
/* Everywhere: the methods of the owner's type, the stacks that allocated the
 * payload, and the members. */
void cm_place_look_around(struct cm_place_search *self, uint32_t owner);

/* Brings the nearest candidates to the front and drops those in libraries,
 * or in no file, unless there are no others. */
void cm_place_sort(struct cm_place_search *self);
/* Sorts; where a library's line about an object of the user's class is the
 * nearest, the lines of the user's that call a function of its name
 * (super().__init__(self.step)) stand for it. */
void cm_place_prefer_callers(struct cm_place_search *self, uint32_t owner);
/* Whether there is no nearer one, sorted, than in a library. */
bool cm_place_is_library(const struct cm_place_search *self);
/* Whether the nearest, sorted, is code that a library made (dataclasses), of
 * which no file has the line. */
bool cm_place_is_generated(const struct cm_place_search *self);
/* The nearest, sorted; how many, at most CM_MAX_PLACES.  Certain is one that
 * stands alone, or that was running. */
uint32_t cm_place_take(struct cm_place_search *self,
                       struct cm_place places[CM_MAX_PLACES]);

static inline const struct cm_code *
cm_place_code(const struct cm_place_search *self, struct cm_code_id code)
{
    return cm_records_code(self->cycle->records, code);
}

static inline const char *
cm_place_text(const struct cm_place_search *self, struct cm_text_id text)
{
    return cm_records_text(self->cycle->records, text);
}

#endif
