/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The sentences about generators and coroutines that are kept suspended.
 * O(1). */

#include "advice.h"

#include <stdio.h>

#include "advice_private.h"
#include "name.h"

/* "the generator", "the coroutine". */
static const char *
resumable_word(const struct cm_cycle *cycle, uint32_t node)
{
    switch (cm_cycle_node(cycle, node)->species) {
    case CM_COROUTINE: return "coroutine";
    case CM_ASYNC_GENERATOR: return "async generator";
    default: return "generator";
    }
}

/* As the program reaches it: by the variable or the attribute that has it. */
static struct cm_name
resumable_name(const struct cm_cycle *cycle, const struct cm_suspect *suspect)
{
    const struct cm_edge *held = cm_cycle_edge(cycle, suspect->held);
    struct cm_name name = cm_cycle_edge_name(cycle, suspect->held),
                   spelled = {""};

    if (suspect->held == 0 || held->head != suspect->maker) {
        return cm_advice_callable_name(cycle, suspect->maker);
    }
    snprintf(spelled.text, sizeof spelled.text, "%s%.90s",
             held->role == CM_ATTRIBUTE ? "." : "", name.text);
    return spelled;
}

static bool
is_in_library_object(const struct cm_cycle *cycle, uint32_t edge)
{
    return cm_cycle_is_library_object(cycle, cm_cycle_edge(cycle, edge)->head);
}

/* What runs the generator or the coroutine, and has it where no one sees. */
static char *
advise_library_object(const struct cm_cycle *cycle, uint32_t edge,
                      const char *word)
{
    struct cm_name name = cm_cycle_edge_name(cycle, edge);
    const char *dot = cm_cycle_edge(cycle, edge)->role == CM_LOCAL ? "" : ".";
    struct cm_name type =
        cm_advice_type_name(cycle, cm_cycle_edge(cycle, edge)->head);

    if (cm_name_ends_with(type.text, "Task")) {
        return cm_sentence("call %s%s.cancel() and await it when done, then "
                           "set %s%s = None, or do not store the task in what "
                           "its coroutine refers to",
                           dot, name.text, dot, name.text);
    }
    return cm_sentence("set %s%s = None when done, or do not store it in what "
                       "its %s refers to",
                       dot, name.text, word);
}

/* Of generators in a list no one has a name. */
static char *
advise_each(const struct cm_cycle *cycle, uint32_t held, bool asynchronous,
            const char *word)
{
    return cm_sentence(
        "%s each %s in %s%s when done, or do not "
        "store them in what they refer to",
        asynchronous ? "await aclose() of" : "call close() on", word,
        cm_cycle_edge(cycle, held)->role == CM_ATTRIBUTE ? "." : "",
        cm_cycle_edge_name(cycle, held).text);
}

char *
cm_advise_generator(const struct cm_cycle *cycle,
                    const struct cm_suspect *suspect,
                    const struct cm_made *made)
{
    bool asynchronous =
        cm_cycle_node(cycle, suspect->maker)->species == CM_ASYNC_GENERATOR;
    struct cm_name name = resumable_name(cycle, suspect);
    const char *word = resumable_word(cycle, suspect->maker);
    const char *verb = asynchronous ? "await" : "call";
    const char *close = asynchronous ? "aclose" : "close";

    (void)made;
    if (suspect->held != 0 && is_in_library_object(cycle, suspect->held)) {
        return advise_library_object(cycle, suspect->held, word);
    }
    if (suspect->held != 0
        && cm_advice_leads_into_container(cycle, suspect->held)) {
        return advise_each(cycle, suspect->held, asynchronous, word);
    }
    return cm_sentence("%s %s.%s() when done, or do not store the %s in "
                       "what it refers to",
                       verb, name.text, close, word);
}
