/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_WAY_H
#define CM_WAY_H

/* What a person sees on the way to what grows (holding.h): what the place is
 * called in the program, and the line that fills it.  Pure, and allocates
 * nothing. */

#include <string.h>

#include "holding.h"
#include "name.h"

enum { CM_WAY_TEXT_BYTES = 256 };

struct cm_way_name {
    size_t step; /* whose name it is, the place or one before; 0: none */
    char text[CM_WAY_TEXT_BYTES]; /* "losses", "metrics['loss']"; "it" */
    struct cm_place places[CM_MAX_PLACES]; /* where that is filled or set */
    uint32_t place_count;
};

/* The nearest name on the way to the place; where only a library's code fills
 * or sets that, the next one that a person wrote. */
void cm_way_name(const struct cm_holding *self, struct cm_way_name *result);
/* As the line that fills or sets it writes it: "self.losses" in a method of its
 * class. */
void cm_way_code(const struct cm_holding *self, struct cm_way_name *name);
/* The same where the place were this step. */
void cm_way_name_at(const struct cm_holding *self, size_t step,
                    struct cm_way_name *result);

/* "losses" of "local losses", ".losses", "['losses']": how a step is held. */
struct cm_name cm_way_name_of(const struct cm_holding *self, size_t step);

struct cm_place_search;
/* Looks in the functions that were running when they were allocated, innermost
 * first, until one has such a line. */
void cm_way_look_on_stack(const struct cm_holding *self,
                          struct cm_place_search *search);

typedef bool cm_way_predicate(const struct cm_place_search *search,
                              const struct cm_store *store);
/* On the stack; else in a person's code; else in a library's. */
void cm_way_look(const struct cm_holding *self, struct cm_place_search *search,
                 cm_way_predicate *wanted);
/* The lines of a person's code that this finds; 0: none.  `name`: for the
 * predicate; may be NULL. */
uint32_t cm_way_find(const struct cm_holding *self, cm_way_predicate *wanted,
                     const char *name, struct cm_place places[CM_MAX_PLACES]);

/* Whether a variable, an attribute or a key of a dict is how the step is
 * held: what a person calls it. */
bool cm_way_is_named(const struct cm_holding *self, size_t step);

bool cm_way_is_lru_cache(const struct cm_holding *self, size_t i);
/* The first such step, 0: none. */
size_t cm_way_lru_cache(const struct cm_holding *self);
/* Where its function is decorated, not where its results are put; 0: not
 * known. */
uint32_t cm_way_decorator(const struct cm_holding *self, size_t cache,
                          struct cm_place places[CM_MAX_PLACES]);
/* A table of hooks that has several, or one below which something piles up. */
size_t cm_way_hooks(const struct cm_holding *self);
/* One that has several, behind the place. */
size_t cm_way_hooks_behind(const struct cm_holding *self);
/* The value of a parameter's default. */
size_t cm_way_default(const struct cm_holding *self);

/* The function that is a tensor's hook, which nothing but C++ holds. */
size_t cm_way_lone_hook(const struct cm_holding *self);

/* What weakref.finalize() keeps of one call; nothing piles up inside it. */
size_t cm_way_finalizer(const struct cm_holding *self);
/* What a library has by no name of the program's: a finalizer, or the value of
 * a context variable.  Any function may have handed it over. */
bool cm_way_is_handed_over(const struct cm_holding *self);
/* The place is an attribute of a library's object, not of torch's, which any
 * function of the program may have set: engine.state.outputs. */
bool cm_way_is_on_librarys(const struct cm_holding *self);

/* Where torch keeps a module's attributes: model.layer is in _modules. */
bool cm_way_is_module_table(const struct cm_holding *self, size_t step);
/* What is in such a table by a key that the program writes as an attribute. */
bool cm_way_is_module_key(const struct cm_holding *self, size_t i);
/* A table of an optimizer's: of its groups, or its state. */
bool cm_way_is_optimizer_table(const struct cm_holding *self, size_t step);

/* What could be kept in place of the growing ones, in words; a constant. */
const char *cm_way_less(const struct cm_holding *self);

/* "Net.scale" of "lru_cache of Net.scale". */
const char *cm_way_cached(const struct cm_holding *self);

static inline const struct cm_holding_step *
cm_way_step(const struct cm_holding *self, size_t i)
{
    return &self->steps[i];
}

static inline bool
cm_way_is_tensor(const struct cm_holding_step *step)
{
    return step->species == CM_TENSOR || step->species == CM_STORAGE;
}

/* Or an attribute: what an assignment sets. */
static inline bool
cm_way_is_variable(const struct cm_holding_step *step)
{
    return step->role == CM_LOCAL || step->role == CM_ATTRIBUTE
           || step->role == CM_CLOSURE_CELL || step->role == CM_CELL_CONTENTS;
}

static inline const char *
cm_way_text(const struct cm_holding *self, struct cm_text_id id)
{
    return cm_records_text(self->records, id);
}

static inline bool
cm_way_is(const struct cm_holding *self, struct cm_text_id id,
          const char *text)
{
    return strcmp(cm_way_text(self, id), text) == 0;
}

/* What it begins at. */
static inline bool
cm_way_is_root(const struct cm_holding *self, const char *text)
{
    return cm_way_is(self, cm_way_step(self, 0)->annotation, text);
}

static inline bool
cm_way_is_category(const struct cm_holding *self, const char *name)
{
    return self->category != NULL && strcmp(self->category, name) == 0;
}

/* Of the type of an object on the way: "torch.optim.adam". */
static inline const char *
cm_way_module(const struct cm_holding *self, size_t i)
{
    const struct cm_type *type =
        cm_records_type(self->records, cm_way_step(self, i)->type);
    return cm_way_text(self, type->module);
}

static inline bool
cm_way_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "torchmetrics" of torchmetrics.aggregation, not torchmetrics2. */
static inline bool
cm_way_is_of(const char *module, const char *package)
{
    size_t length = strlen(package);
    return cm_way_begins(module, package)
           && (module[length] == '.' || module[length] == '\0');
}

#endif
