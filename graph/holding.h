/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HOLDING_H
#define CM_HOLDING_H

/* Who holds memory that grows, and what a person writes instead: the way from
 * a named root to one of the growing objects, the place on it at which they
 * pile up, and the sentence for it from a table of rules.
 *
 * Pure: nothing here knows where the way came from. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/heap.h"
#include "../detector/records.h"
#include "finding.h"

/* As a category: a second copy of a model's weights. */
#define CM_HOLDING_COPY "copy of the weights"
/* As a category: no more of them than before, and more bytes. */
#define CM_HOLDING_LARGER "one that gets larger"
/* Most are parameters' own: these are what grows. */
#define CM_HOLDING_GRADIENTS "gradients of more parameters"
/* As categories: parameters of which there are as many as before, with more
 * bytes, and what there is for each. */
#define CM_HOLDING_MODEL "parameters that get larger"
#define CM_HOLDING_OF_MODEL "of parameters that get larger"
/* As the first step: C++ holds it, by no other root; nobody does. */
#define CM_HOLDING_CPP "C++ only"
#define CM_HOLDING_DEAD "a dead cycle, until the next collection"

enum cm_holding_cache {
    CM_CACHE_UNSIZED = 1,    /* keeps all results */
    CM_CACHE_FEW_OWNERS = 2, /* a method's: of few objects, with many arguments
                              * each */
};

/* What the keys of a dict say of how many will come. */
enum cm_holding_keys {
    CM_KEYS_UNKNOWN = 0, /* or all are new, as those that a counter makes */
    CM_KEYS_COUNTED,     /* numbers in order: a counter's, or a data set's */
    CM_KEYS_OF_A_SET,    /* numbers in no order, or objects that others have
                          * too */
    CM_KEYS_RESERVED,    /* the last ones have no value yet: None */
    CM_KEYS_DRAWN,       /* of a set, and the first half of them already had
                          * almost the largest: no new ones come above */
    CM_KEYS_WITH_GAPS,   /* counted, and some have no value: None */
};

/* Numbers in order, each with a value or not. */
static inline bool
cm_holding_keys_count(uint8_t keys)
{
    return keys == CM_KEYS_COUNTED || keys == CM_KEYS_WITH_GAPS;
}

struct cm_holding_step {
    struct cm_text_id annotation; /* what it is: "list of 17" */
    struct cm_text_id edge;       /* how the step before holds it: "[3]" */
    struct cm_type_id type;
    struct cm_code_id code;
    uint8_t species, role; /* enum cm_species, enum cm_role */
    bool counted;          /* a container: `items` says how many */
    bool bounded;          /* and the program has said how many at most */
    bool full;             /* so many are there */
    uint8_t cache;         /* of an lru_cache: enum cm_holding_cache, or-ed */
    uint8_t keys;          /* of a dict: enum cm_holding_keys */
    uint64_t items;
    /* Of a tensor: its contents, and all the memory that it keeps; 0: not
     * known. */
    uint64_t shown_bytes, memory_bytes;
};

struct cm_holding {
    const struct cm_records *records;    /* borrowed */
    const struct cm_holding_step *steps; /* borrowed; the root first, one of
                                          * the growing objects last */
    size_t count;
    size_t at;             /* the step at which they pile up */
    uint32_t through;      /* so many of them hang from it, */
    uint32_t targets;      /* of so many */
    uint64_t bytes_behind; /* those, of views: each memory once; 0: unknown */
    bool stepped;          /* an optimizer has them too */
    bool of_several;       /* optimizers that have stepped */
    bool grows;           /* from iteration to iteration, as far as is known */
    bool on_host;         /* in the CPU's memory, not in a device's */
    bool chained;         /* each is made of the one before, and has its graph:
                           * who lets some go keeps them all */
    bool without_inner;   /* a loop within the one that fills it is asked for
                           * nothing: cm_bound_is_emptied() */
    uint32_t chain;       /* it is one of so many links of a chain; 0: none */
    const char *category; /* as leak.json names it; may be NULL */
    uint64_t autograd_depth; /* of the longest graph behind one of them */
    struct cm_site_id site;  /* that allocated them; 0: not known */
    const char *kept; /* a variable that one of them goes by, else NULL */
    const struct cm_code_id *codes; /* borrowed: may have filled or set it */
    size_t code_count;
    size_t helper_count; /* behind those: functions that they call */
    /* One of them that would empty the place, if anybody called it; id 0: none
     * is known. */
    struct cm_code_id uncalled;
};

struct cm_holding_advice {
    const char *rule; /* constant: the name of the row */
    char *text;       /* owned: one sentence */
};

/* After CM_NO_MEMORY `result` is empty. */
enum cm_status cm_holding_advise(const struct cm_holding *self,
                                 struct cm_holding_advice *result) CM_CHECKED;
void cm_holding_advice_release(struct cm_holding_advice *self);

/* Where the place is filled or set, by the first of the pieces of code that
 * has any such line.  Answers how many places, at most CM_MAX_PLACES. */
uint32_t cm_holding_made(const struct cm_holding *self,
                         struct cm_place places[CM_MAX_PLACES]);

#endif
