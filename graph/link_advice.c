/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The sentences about links between objects: an attribute, or the items of the
 * container that it leads into.  O(edges). */

#include "advice.h"

#include <stdio.h>
#include <string.h>

#include "advice_private.h"
#include "name.h"

/* What torch.autograd.Function has a way of its own for. */
static bool
is_kept_on_context(const struct cm_cycle *cycle,
                   const struct cm_suspect *suspect)
{
    return cm_name_ends_with(cm_advice_type_name(cycle, suspect->owner).text,
                             "Backward")
           && cm_advice_species(cycle, suspect->edge) == CM_TENSOR;
}

/* "tuples", "Entry objects": what has the reference within what a person
 * sees. */
static struct cm_name
items_name(const struct cm_cycle *cycle, uint32_t node)
{
    bool object = cm_cycle_node(cycle, node)->species == CM_OBJECT;
    struct cm_name name = cm_advice_type_name(cycle, node), items;

    snprintf(items.text, sizeof items.text, "%.80s%s", name.text,
             object ? " objects" : "s");
    return items;
}

/* What a library's object keeps its items in. */
static bool
is_kept_by_library(const struct cm_cycle *cycle, uint32_t container)
{
    struct cm_link link;
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        if (cm_cycle_edge(cycle, edge)->head == container
            && cm_cycle_link(cycle, edge, &link)
            && cm_cycle_is_library_object(cycle, link.owner)) {
            return true;
        }
    }
    return false;
}

/* Within items it is what they refer to that can be weak. */
static char *
advise_within(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
              const char *weak, const char *object)
{
    const struct cm_edge *edge = cm_cycle_edge(cycle, suspect->edge);
    struct cm_name name = cm_cycle_edge_name(cycle, suspect->held);
    struct cm_name items = items_name(cycle, edge->tail);
    bool direct = edge->tail == cm_cycle_edge(cycle, suspect->held)->head
                  || is_kept_by_library(cycle, edge->tail);
    bool method = cm_advice_species(cycle, suspect->edge) == CM_BOUND_METHOD;
    char before[400];

    snprintf(before, sizeof before, "put %s of %s into %s%s%s%s.%s", weak,
             method ? cm_advice_method_name(cycle, edge->head).text
                    : cm_advice_type_name(cycle, edge->head).text,
             direct ? "" : "the ", direct ? "" : items.text,
             direct ? "" : " in ", object, name.text);
    return cm_advice_clearing(cycle, suspect->held, object, before);
}

/* What most often no one else has. */
static bool
is_callable(const struct cm_cycle *cycle, uint32_t edge)
{
    enum cm_species species = cm_advice_species(cycle, edge);

    return species == CM_FUNCTION || species == CM_PARTIAL
           || species == CM_BUILTIN_METHOD;
}

/* An attribute of a library's object, which the library uses as it is. */
static bool
is_out_of_sight(const struct cm_cycle *cycle, uint32_t edge)
{
    struct cm_link link;

    return cm_cycle_link(cycle, edge, &link)
           && cm_cycle_is_library_object(cycle, link.owner);
}

static char *
advise_items(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
             const char *object)
{
    struct cm_name name = cm_cycle_edge_name(cycle, suspect->held);
    uint32_t tail = cm_cycle_edge(cycle, suspect->edge)->tail;
    bool method = cm_advice_species(cycle, suspect->edge) == CM_BOUND_METHOD;
    const char *weak = method ? "weakref.WeakMethod" : "weakref.ref";

    if (!cm_advice_can_be_weak(cycle, suspect->edge)
        || is_callable(cycle, suspect->edge)
        || is_out_of_sight(cycle, suspect->edge)) {
        return cm_advice_clearing(cycle, suspect->held, object, "");
    }
    if (tail != cm_cycle_edge(cycle, suspect->held)->head
        || !cm_cycle_is_container(cycle, tail)) {
        return advise_within(cycle, suspect, weak, object);
    }
    if (cm_advice_species(cycle, suspect->held) == CM_TUPLE) {
        return cm_sentence("keep a %s in %s.%s, or set it to None when done",
                           weak, object, name.text);
    }
    return cm_sentence(
        "keep %s objects in %s.%s, or %s when done", weak, object, name.text,
        cm_advice_can_be_cleared(cycle, suspect->held) ? "clear it"
                                                       : "set it to None");
}

/* The two rules about attributes: `object` is "" or a type's name.  What was
 * made where it is stored would be gone at once behind a weak reference. */
static char *
advise_attribute(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect, const char *object,
                 const struct cm_made *made)
{
    uint32_t held = suspect->held;
    struct cm_name name = cm_cycle_edge_name(cycle, held);

    if (suspect->maker != 0) {
        return cm_advice_captured(cycle, suspect, object);
    }
    if (is_kept_on_context(cycle, suspect)) {
        return cm_sentence("keep it by ctx.save_for_backward() instead of in "
                           "%s.%s",
                           object, name.text);
    }
    if (suspect->edge != held || cm_advice_leads_into_container(cycle, held)) {
        return advise_items(cycle, suspect, object);
    }
    if (cm_advice_species(cycle, held) == CM_BOUND_METHOD) {
        return cm_sentence("store a weakref.WeakMethod in %s.%s, or set it to "
                           "None when done",
                           object, name.text);
    }
    if (made->made || !cm_advice_can_be_weak(cycle, held)
        || is_callable(cycle, held)) {
        return cm_sentence("set %s.%s = None when done", object, name.text);
    }
    return cm_sentence("make %s.%s a weakref.ref, or set it to None when done",
                       object, name.text);
}

/* Neither None nor a weak reference can stand in __dict__. */
char *
cm_advise_own_dict(const struct cm_cycle *cycle,
                   const struct cm_suspect *suspect,
                   const struct cm_made *made)
{
    struct cm_name type = cm_advice_type_name(cycle, suspect->owner);

    (void)made;
    return cm_sentence("give %s a __getattr__ that looks in its items, or "
                       "keep the values in a types.SimpleNamespace: a dict "
                       "that is its own __dict__ refers to itself",
                       type.text);
}

char *
cm_advise_self(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
               const struct cm_made *made)
{
    return advise_attribute(cycle, suspect, "", made);
}

char *
cm_advise_back_link(const struct cm_cycle *cycle,
                    const struct cm_suspect *suspect,
                    const struct cm_made *made)
{
    return advise_attribute(
        cycle, suspect, cm_advice_type_name(cycle, suspect->owner).text, made);
}
