/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Of methods that an object has handed on, and of partials of them. */

#include <stdio.h>
#include <string.h>

#include "advice_private.h"

/* self.<lambda> can be written by nobody. */
static bool
is_lambda(const struct cm_cycle *cycle, uint32_t method)
{
    return strcmp(cm_advice_method_name(cycle, method).text, "<lambda>") == 0;
}

/* types.MethodType(function, x): no class has the function. */
static bool
is_bound_by_hand(const struct cm_cycle *cycle, uint32_t owner, uint32_t method)
{
    uint32_t code = cm_cycle_node(cycle, method)->code.index;
    const struct cm_type *type =
        cm_records_type(cycle->records, cm_cycle_node(cycle, owner)->type);
    bool found = code == 0 || type->method_count == 0;

    if (is_lambda(cycle, method)) {
        return true;
    }
    for (uint32_t i = 0; i < type->method_count && !found; i++) {
        found = type->methods[i].index == code;
    }
    return !found;
}

/* "f" of `self.f`: a decorator's function goes by the name of what it wraps,
 * its code does not. */
struct cm_name
cm_advice_method_name(const struct cm_cycle *cycle, uint32_t method)
{
    const struct cm_node *node = cm_cycle_node(cycle, method);
    const char *label = cm_records_text(cycle->records, node->label);

    return node->code.index == 0 || strncmp(label, "method ", 7) == 0
               ? cm_name_of_object(cycle->records, node)
               : cm_name_of_code(cycle->records, node->code);
}

/* defaultdict(self.make) */
static bool
is_default_factory(const struct cm_cycle *cycle, uint32_t method)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_ATTRIBUTE))) != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);

        if (record->head == method
            && cm_cycle_is_container(cycle, record->tail)) {
            return true;
        }
    }
    return false;
}

/* `self.embed = cache(self.embed)`: through a weak reference to the object its
 * embed() is the wrapper itself. */
static bool
is_in_its_place(const struct cm_cycle *cycle, uint32_t held,
                const char *function)
{
    return cm_advice_hides_method(cycle, held)
           && strcmp(cm_cycle_edge_name(cycle, held).text, function) == 0;
}

#define CALL_WEAKLY                                                           \
    "wrap a function that calls ref()(...), where ref is a "                  \
    "weakref.WeakMethod of %s, made before this line"

/* What was handed on is called by who has it.  An exit stack that is dropped
 * calls nothing. */
static char *
advise_handed_on(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect, bool factory,
                 const char *function)
{
    uint32_t held = suspect->held;
    struct cm_name attribute = cm_cycle_edge_name(cycle, held);
    struct cm_name type =
        cm_advice_type_name(cycle, cm_cycle_edge(cycle, held)->head);
    bool inside = !factory && cm_advice_leads_into_container(cycle, held);
    char before[400];

    if (is_in_its_place(cycle, held, function)) {
        snprintf(before, sizeof before, CALL_WEAKLY, function);
        return cm_advice_clearing(cycle, held, "", before);
    }
    snprintf(before, sizeof before,
             "give %s.%s a function that captures weakref.ref(self) instead "
             "of self.%s",
             inside ? "what is in " : "", attribute.text, function);
    if (cm_name_ends_with(type.text, "ExitStack")) {
        bool awaited = cm_name_ends_with(type.text, "AsyncExitStack");

        return cm_sentence("%s, or %s .%s.%s() when done", before,
                           awaited ? "await" : "call", attribute.text,
                           awaited ? "aclose" : "close");
    }
    return inside || cm_advice_hides_method(cycle, held)
               ? cm_advice_clearing(cycle, held, "", before)
               : cm_sentence("%s, or set .%s = None when done", before,
                             attribute.text);
}

/* old = x.step; def step(): old(); x.step = step: the variable that has the
 * method, 0: none, and the function whose closure that is in. */
static uint32_t
cell_of_method(const struct cm_cycle *cycle, uint32_t method, uint32_t held,
               uint32_t *function)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_CELL_CONTENTS)))
           != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);

        if (record->head == method) {
            *function = cm_cycle_edge(cycle, held)->head;
            if (cm_cycle_node(cycle, *function)->species == CM_FUNCTION) {
                return edge;
            }
        }
    }
    return 0;
}

/* functools.wraps(method) keeps it as well. */
static bool
is_wrapped(const struct cm_cycle *cycle, uint32_t method)
{
    uint32_t edge = 0;
    bool found = false;

    while (!found && (edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        found = cm_cycle_edge(cycle, edge)->head == method
                && strcmp(cm_cycle_edge_name(cycle, edge).text, "__wrapped__")
                       == 0;
    }
    return found;
}

char *
cm_advise_method(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect, const struct cm_made *made)
{
    uint32_t method = cm_cycle_edge(cycle, suspect->edge)->tail;
    struct cm_name function = cm_advice_method_name(cycle, method);
    struct cm_name attribute = cm_cycle_edge_name(cycle, suspect->held);
    char before[400];

    (void)made;
    if (strcmp(cm_advice_type_name(cycle, method).text, "super") == 0) {
        return cm_advice_clearing(cycle, suspect->held, "", "");
    }
    uint32_t maker,
        cell = cell_of_method(cycle, method, suspect->held, &maker);
    if (cell != 0) {
        struct cm_name name = cm_advice_callable_name(cycle, maker);
        bool wrapped = is_wrapped(cycle, method);

        snprintf(before, sizeof before,
                 "let %s capture weakref.WeakMethod(%s)%s%s%s", name.text,
                 cm_cycle_edge_name(cycle, cell).text,
                 wrapped ? " and del " : "", wrapped ? name.text : "",
                 wrapped ? ".__wrapped__" : "");
        return cm_advice_clearing(
            cycle, suspect->held,
            cm_advice_type_name(cycle, suspect->owner).text, before);
    }
    if (suspect->owner != cm_cycle_edge(cycle, suspect->edge)->head) {
        return cm_sentence("let .%s be a function that captures "
                           "weakref.ref(self), or set .%s back when done",
                           attribute.text, attribute.text);
    }
    if (is_bound_by_hand(cycle, suspect->owner, method)) {
        snprintf(before, sizeof before,
                 "give .%s a function that captures weakref.ref of the %s "
                 "instead of %s bound to it",
                 attribute.text,
                 cm_advice_type_name(cycle, suspect->owner).text,
                 is_lambda(cycle, method) ? "the lambda" : function.text);
        return cm_advice_clearing(cycle, suspect->held, "", before);
    }
    if (suspect->handed_on || cm_advice_hides_method(cycle, suspect->held)) {
        return advise_handed_on(
            cycle, suspect, is_default_factory(cycle, method), function.text);
    }
    snprintf(before, sizeof before, "store weakref.WeakMethod(self.%s) in .%s",
             function.text, attribute.text);
    return cm_advice_clearing(cycle, suspect->held, "", before);
}

char *
cm_advice_captured(const struct cm_cycle *cycle,
                   const struct cm_suspect *suspect, const char *object)
{
    const struct cm_edge *edge = cm_cycle_edge(cycle, suspect->edge);
    struct cm_name type = cm_advice_type_name(cycle, edge->head);
    char before[400];

    if (cm_cycle_node(cycle, suspect->maker)->species == CM_FUNCTION) {
        snprintf(
            before, sizeof before, "give %s weakref.ref of %s as its default",
            cm_advice_callable_name(cycle, suspect->maker).text, type.text);
    }
    else if (edge->role == CM_BOUND_SELF
             && is_in_its_place(
                 cycle, suspect->held,
                 cm_advice_method_name(cycle, edge->tail).text)) {
        snprintf(before, sizeof before, CALL_WEAKLY,
                 cm_advice_method_name(cycle, edge->tail).text);
    }
    else if (edge->role == CM_BOUND_SELF) {
        snprintf(before, sizeof before,
                 "give the partial a function that captures weakref.ref of %s "
                 "instead of %s",
                 type.text, cm_advice_method_name(cycle, edge->tail).text);
    }
    else {
        snprintf(before, sizeof before, "give the partial weakref.ref of %s",
                 type.text);
    }
    return cm_advice_clearing(cycle, suspect->held, object, before);
}

char *
cm_advise_partial(const struct cm_cycle *cycle,
                  const struct cm_suspect *suspect, const struct cm_made *made)
{
    (void)made;
    return cm_advice_captured(cycle, suspect, "");
}
