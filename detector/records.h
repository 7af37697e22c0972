/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_RECORDS_H
#define CM_RECORDS_H

/* What is remembered of things that may die before a report is made: code
 * objects, types and stacks (sites).  Records only grow, up to a bound; a
 * record is written once and then read only, and never moves.
 *
 * Adding is guarded by one leaf mutex inside; reading a record whose id was
 * handed over needs no lock.  Id 0 of each kind is "not known". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "text.h"

struct cm_code_id {
    uint32_t index;
};
struct cm_type_id {
    uint32_t index;
};
struct cm_site_id {
    uint32_t index;
};

/* A place in a code object that makes a reference, with its line. */
enum cm_store_kind {
    CM_STORE_ATTRIBUTE = 1, /* x.NAME = ... */
    CM_STORE_LOCAL,         /* NAME = ... in a function (also `as NAME`) */
    CM_STORE_CELL,          /* NAME = ... where NAME is a cell of a closure */
    CM_STORE_GLOBAL,        /* NAME = ... at module level */
    CM_STORE_ITEM,     /* x[...] = ..., NAME: a constant str key or none */
    CM_STORE_FUNCTION, /* a def, lambda or class body is made: NAME is
                             * the qualified name of the nested code */
    CM_STORE_CALL,     /* x.NAME(...), e.g. append, register_hook; also
                             * heappop(x) and its like */
    CM_STORE_REMOVE,   /* del x[...], x[a:b] = ... */
    CM_STORE_MEASURE,  /* len(x) is compared, with more than 1 */
    CM_STORE_ASK,      /* k in x */
    CM_STORE_READ,     /* x[k], where k is a variable */
    /* Only in code that is no library's: */
    CM_STORE_HAND,      /* NAME(..., x, ...): x is argument `decides`; x is
                         * not known where no argument has a name */
    CM_STORE_PARAMETER, /* NAME is parameter `decides` */
    CM_STORE_ALIAS,     /* NAME = x: a second name of it */
    CM_STORE_RETURN,    /* return x[a:b], return f(y)[a:b], return [] */
    CM_STORE_COMPARE,   /* y.NAME is compared with the last of y.x */
};

struct cm_store {
    enum cm_store_kind kind;
    struct cm_text_id name;
    /* The name x when it is plain, e.g. "self"; for an item or a call also
     * the last name of y.x: "links" in self.links.append(...). */
    struct cm_text_id owner;
    /* Where x is an item, z['k'] or y.z[i]: "z"; x is then "k", or unknown;
     * where `turn`, z of `for NAME in z`, enumerate(z). */
    struct cm_text_id within;
    /* k of x[k] and `k in x`, where it is a variable; of CM_STORE_ATTRIBUTE the
     * attribute that an operation makes it of: "sum" in self.avg = self.sum / n
     * and in self.sum += x; of F(...).NAME(...) F, of y.x.NAME(...) y; of
     * CM_STORE_HAND, _ALIAS k, where x is y[k] or a part of that, as in
     * NAME, z = y[k] */
    struct cm_text_id key;
    /* y of NAME = NAME + y and NAME += y, where that is a variable; "(...)" where
     * it is something else. */
    struct cm_text_id added;
    /* f of x = f(...), x[k] = f(...).clone(), whatever f is taken from */
    struct cm_text_id by;
    uint32_t line;
    /* CM_STORE_MEASURE, _COMPARE: so many of those that follow are behind
     * it; CM_STORE_CALL, of heappop(x) and its like: the arguments. */
    uint32_t decides;
    uint32_t constant : 1; /* a constant is stored, as in `self.x = None`;
                            * CM_STORE_HAND, _ALIAS: f"{x}" or x.to(y), not x
                            * itself */
    uint32_t empty : 1;    /* a new container: `x = []`, `return {}` */
    uint32_t repeated : 1; /* within a loop of this code */
    uint32_t made : 1;     /* by the expression: `x = Node()`, `x = [y]`;
                            * CM_STORE_HAND: NAME is taken from an object */
    uint32_t trimmed : 1;  /* a part is left: `x = x[-n:]`, `del x[:n]`,
                            * `del x[step - n]`, `x[step % n] = y`;
                            * CM_STORE_COMPARE: NAME < ... */
    uint32_t carried : 1;  /* CM_STORE_LOCAL, in a loop: what it stores may be
                            * read in the next turn */
    uint32_t turn : 1;     /* `for NAME in ...` */
    uint32_t nested : 1;   /* and that loop stands in another one; without
                            * `turn`: `by` is taken from an object, not from
                            * self */
    uint32_t found : 1;  /* behind it the innermost loop may return a value */
    uint32_t scaled : 1; /* made of what it had, multiplied: x = 0.9 * x + y */
    uint32_t settled : 1; /* a variable, in a loop: behind all loops that read
                           * in a turn what the last one left in it, a
                           * backward() takes it; CM_STORE_CALL, _HAND: one
                           * takes what is returned, in the same turn */
    uint32_t given : 1;   /* a local: as settled, but the code returns it, or
                           * what is made of it; CM_STORE_ITEM: a part is
                           * left of what is there, x[k] = x[k][-n:] */
    uint32_t sized : 1;   /* of what `key` names, a variable, it is a size:
                           * len(k), k.shape[1], k.size(1) */
    uint32_t depth : 2; /* so many loops of this code around it; 3: or more */
    uint32_t unit : 17; /* its instruction, for bytecode.c alone */
};

struct cm_code {
    struct cm_text_id filename;
    struct cm_text_id name;           /* "forward" */
    struct cm_text_id qualified_name; /* "Encoder.forward" */
    uint32_t first_line;
    bool library;                  /* standard library or installed package */
    const struct cm_store *stores; /* owned; in order of the bytecode */
    uint32_t store_count;
};

struct cm_type {
    struct cm_text_id name; /* "Trainer": type.__qualname__, when its
                                     * module is __main__, else with module */
    struct cm_text_id module;
    bool library;
    bool unweakable; /* no weak reference to an instance can be made */
    const struct cm_code_id *methods; /* owned; code of its methods, the
                                       * type's own first, then its bases' */
    uint32_t method_count;
};

struct cm_frame {
    struct cm_code_id code;
    uint32_t line;
};

/* A stack: frames[0] is the innermost. */
struct cm_site {
    const struct cm_frame *frames; /* owned */
    uint32_t frame_count;
    bool cut; /* deeper frames were left out */
};

/* The text of what is in no file: a notebook's cell. */
#define CM_RECORDS_MAX_SOURCE (256u << 10)
struct cm_source {
    struct cm_text_id filename;
    uint32_t length;
    const char *bytes; /* owned */
};

struct cm_records;

struct cm_records *cm_records_new(size_t max_bytes);
void cm_records_free(struct cm_records *self);

/* The table for every text that a record, a heap or a finding names. */
struct cm_texts *cm_records_texts(const struct cm_records *self);

/* Each call copies what it is given (the arrays behind it too) and returns
 * the id of an equal record if there is one.  CM_LIMIT when full. */
enum cm_status cm_records_add_code(struct cm_records *self,
                                   const struct cm_code *code,
                                   struct cm_code_id *result) CM_CHECKED;
enum cm_status cm_records_add_type(struct cm_records *self,
                                   const struct cm_type *type,
                                   struct cm_type_id *result) CM_CHECKED;
enum cm_status cm_records_add_site(struct cm_records *self,
                                   const struct cm_site *site,
                                   struct cm_site_id *result) CM_CHECKED;

/* CM_LIMIT also for one that is longer than CM_RECORDS_MAX_SOURCE. */
enum cm_status cm_records_add_source(struct cm_records *self,
                                     const struct cm_source *source)
    CM_CHECKED;
/* The last one of this name; borrowed, NULL: there is none.  Linear in the
 * sources. */
const struct cm_source *cm_records_source(const struct cm_records *self,
                                          struct cm_text_id filename);
/* Ids of code are 1 to this. */
uint32_t cm_records_code_count(const struct cm_records *self);

/* Borrowed, never NULL: for id 0 an empty record. */
const struct cm_code *cm_records_code(const struct cm_records *self,
                                      struct cm_code_id id);
const struct cm_type *cm_records_type(const struct cm_records *self,
                                      struct cm_type_id id);
const struct cm_site *cm_records_site(const struct cm_records *self,
                                      struct cm_site_id id);

static inline const char *
cm_records_text(const struct cm_records *self, struct cm_text_id id)
{
    return cm_texts_get(cm_records_texts(self), id);
}

#endif
