/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* finalize._registry -> _Info .args | .kwargs | .func: the registry is the
 * class's, so the way begins at the library; what was passed has a name only
 * where a variable still refers to one of them. */

#include "finalizer.h"

#include <string.h>

#include "name.h"
#include "way.h"

bool
cm_finalizer_holds(const struct cm_holding *self)
{
    return cm_way_finalizer(self) != 0;
}

static bool
is_function(const struct cm_holding *self)
{
    size_t info = cm_way_finalizer(self);
    struct cm_text_id edge = cm_way_step(self, info + 1)->edge;
    return cm_way_is(self, edge, ".func");
}

/* The object that was passed and has the memory, by its class: no variable
 * that refers to the memory is that. */
static struct cm_name
passed_object(const struct cm_holding *self)
{
    size_t passed = cm_way_finalizer(self) + 2;
    const struct cm_holding_step *step =
        passed < self->count ? cm_way_step(self, passed) : NULL;
    return step != NULL && step->species == CM_OBJECT && !step->counted
               ? cm_name_of_type(self->records, step->type)
               : (struct cm_name){""};
}

char *
cm_finalizer_say(const struct cm_holding *self)
{
    if (is_function(self)) {
        return cm_sentence("weakref.finalize() keeps its function, and what "
                           "that refers to, until the object is collected: "
                           "pass a function without state, or call detach() "
                           "on the finalizer");
    }
    struct cm_name passed = passed_object(self);
    const char *kept = self->kept != NULL ? self->kept : "this";
    return cm_sentence(
        "%s%s is an argument of weakref.finalize(), which keeps "
        "it until the object is collected: pass what is needed "
        "(a key, %s), or call detach() on the finalizer",
        passed.text[0] != '\0' ? "each " : "",
        passed.text[0] != '\0' ? passed.text : kept,
        self->on_host ? "a number" : "a copy on the CPU");
}
