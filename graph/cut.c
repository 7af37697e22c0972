/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The table of rules.  A cycle is asked row by row and the first row that
 * knows it speaks: the special shapes stand above the general ones, and the
 * last row knows everything.  A new rule is a shape (suspect.h), a way to its
 * line (made.h), a sentence (advice.h), and a row here. */

#include "cut.h"

#include <stddef.h>

#include "advice.h"
#include "../detector/alloc.h"

struct rule {
    const char *name;
    bool (*is_shape)(struct cm_cycle *cycle, struct cm_suspect *result);
    cm_made_finder *find_line;
    cm_advice_builder *advise;
    bool by_links; /* objects linked by attributes: others may lead back too */
};

/* clang-format off */
static const struct rule rules[] = {
    {"hook_captures_owner",
     cm_suspect_hook, cm_made_by_hook, cm_advise_hook, false},
    {"packed_output",
     cm_suspect_packed, cm_made_by_torch, cm_advise_packed, false},
    {"lambda_on_self",
     cm_suspect_lambda, cm_made_by_function, cm_advise_lambda, true},
    {"bound_method_on_self",
     cm_suspect_method, cm_made_by_method, cm_advise_method, true},
    {"partial_on_self",
     cm_suspect_partial, cm_made_by_attribute, cm_advise_partial, true},
    {"exception_in_frame",
     cm_suspect_exception, cm_made_by_local, cm_advise_exception, false},
    {"exception_on_self",
     cm_suspect_kept_exception, cm_made_by_attribute, cm_advise_kept_exception, true},
    {"frame_in_local",
     cm_suspect_frame, cm_made_by_local, cm_advise_frame, false},
    {"generator_holds_itself",
     cm_suspect_generator, cm_made_by_holder, cm_advise_generator, false},
    {"class_in_function",
     cm_suspect_class, cm_made_by_class, cm_advise_class, false},
    {"recursive_closure",
     cm_suspect_recursion, cm_made_by_function, cm_advise_recursion, false},
    {"closure_cell",
     cm_suspect_cell, cm_made_by_closure, cm_advise_cell, true},
    {"own_dict",
     cm_suspect_own_dict, cm_made_by_attribute, cm_advise_own_dict, false},
    {"self_reference",
     cm_suspect_self, cm_made_by_attribute, cm_advise_self, true},
    {"back_link",
     cm_suspect_back_link, cm_made_by_link, cm_advise_back_link, true},
    {"container_cycle",
     cm_suspect_container, cm_made_by_filling, cm_advise_container, false},
    {"unknown",
     cm_suspect_unknown, cm_made_nowhere, cm_advise_unknown, false},
};
/* clang-format on */

static const struct rule *
find_rule(struct cm_cycle *cycle, struct cm_suspect *result)
{
    const struct rule *rule = rules;

    while (!rule->is_shape(cycle, result)) {
        *result = (struct cm_suspect){0};
        rule++;
    }
    return rule;
}

static enum cm_status
advise(const struct rule *rule, const struct cm_cycle *cycle,
       struct cm_cut *result)
{
    char *advice = rule->advise(cycle, &result->suspect, &result->made);

    if (rule->by_links && advice != NULL) {
        advice = cm_advise_others(cycle, &result->suspect, advice);
    }
    result->advice = advice;
    return advice != NULL ? CM_OK : CM_NO_MEMORY;
}

/* What a library's line is to be is for its authors to read. */
static enum cm_status
advise_program(struct cm_cut *result)
{
    char *advice = cm_sentence("%s; in the program: gc.collect() when done",
                               result->advice);

    cm_free(result->advice);
    result->advice = advice;
    return advice != NULL ? CM_OK : CM_NO_MEMORY;
}

enum cm_status
cm_cut_find(struct cm_cycle *cycle, struct cm_cut *result)
{
    const struct rule *rule;
    enum cm_status status;

    *result = (struct cm_cut){0};
    rule = find_rule(cycle, &result->suspect);
    result->rule = rule->name;
    if (rule->by_links) {
        cm_suspect_others(cycle, &result->suspect);
    }
    status = rule->find_line(cycle, &result->suspect, &result->made);
    if (status == CM_OK) {
        status = advise(rule, cycle, result);
    }
    if (status == CM_OK) {
        status = cm_made_library(cycle, &result->suspect, &result->made,
                                 &result->library);
    }
    if (status == CM_OK && result->library != NULL) {
        status = advise_program(result);
    }
    if (status != CM_OK) {
        cm_cut_release(result);
    }
    return status;
}

void
cm_cut_release(struct cm_cut *self)
{
    cm_made_release(&self->made);
    cm_free(self->advice);
    cm_free(self->library);
    *self = (struct cm_cut){0};
}
