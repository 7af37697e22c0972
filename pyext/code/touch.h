/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TOUCH_H
#define CM_TOUCH_H

/* Whether code reads a variable of its module, an attribute or a dict's item
 * before it sets that: then it may find what another turn, or other code, has
 * left there.  One turn of a loop that sets it begins with nothing set.
 *
 * Goes by names, as code is read and not run: of x.NAME and y.NAME these are
 * two, and only what the first store sets counts as set.  Who looks at a text
 * of that name in another way, as getattr() does, reads it.
 *
 * Functions that read it when they are called read it where the code names
 * them, or makes them: self.f() after self.NAME was set finds that.  Methods
 * that set it whatever happens have set it when the statement is over that
 * calls them. */

#include "bytecode.h"

enum cm_touch_kind {
    CM_TOUCH_VARIABLE,
    CM_TOUCH_ATTRIBUTE,
    CM_TOUCH_ITEM, /* of a key that is written out */
};

struct cm_touch {
    enum cm_touch_kind kind;
    const char *name;
    bool other_self; /* `self` is not who has the attribute */
    struct cm_touchers {
        PyCodeObject *const *codes; /* borrowed */
        size_t count;
    } readers, setters; /* functions that do when they are called */
};

struct cm_touched {
    bool reads; /* what was there before, or it cannot be told */
    bool sets;
    bool repeats; /* and does so in a loop */
    bool always;  /* sets its first argument's, or the variable, on each way */
};

/* Whether the code names this function, or makes it for itself. */
bool cm_touch_mentions(const PyCodeObject *code, PyCodeObject *function);

/* Whether the body of a module, of the function that it makes, does no more than
 * give it a name. */
bool cm_touch_only_names(const struct cm_bytecode *tables,
                         const PyCodeObject *code, PyCodeObject *function);

/* Needs the GIL.  O(instructions) where the code has the name. */
struct cm_touched cm_touch_find(const struct cm_bytecode *tables,
                                const PyCodeObject *code,
                                const struct cm_touch *what);

#endif
