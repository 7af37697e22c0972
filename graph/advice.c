/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Each sentence names what to write first and what to do instead second.  A
 * weak reference is only advised to what can have one: Python's containers,
 * frames, tracebacks and built-in exceptions cannot.  O(1); the last sentence
 * looks at a bounded number of nodes. */

#include "advice.h"

#include <stdio.h>
#include <string.h>

#include "advice_private.h"
#include "name.h"

#define MAX_TYPES 6

struct cm_name
cm_advice_type_name(const struct cm_cycle *cycle, uint32_t node)
{
    return cm_name_of_type(cycle->records, cm_cycle_node(cycle, node)->type);
}

enum cm_species
cm_advice_species(const struct cm_cycle *cycle, uint32_t edge)
{
    uint32_t head = cm_cycle_edge(cycle, edge)->head;

    return (enum cm_species)cm_cycle_node(cycle, head)->species;
}

bool
cm_advice_leads_into_container(const struct cm_cycle *cycle, uint32_t edge)
{
    return cm_cycle_is_container(cycle, cm_cycle_edge(cycle, edge)->head);
}

/* Can `edge` lead to what it leads to through a weak reference? */
bool
cm_advice_can_be_weak(const struct cm_cycle *cycle, uint32_t edge)
{
    switch (cm_advice_species(cycle, edge)) {
    case CM_DICT:
    case CM_LIST:
    case CM_TUPLE:
    case CM_CELL:
    case CM_FRAME:
    case CM_TRACEBACK:
    case CM_EXCEPTION: return false;
    default: break;
    }
    uint32_t head = cm_cycle_edge(cycle, edge)->head;
    return !cm_records_type(cycle->records, cm_cycle_node(cycle, head)->type)
                ->unweakable;
}

struct cm_name
cm_advice_callable_name(const struct cm_cycle *cycle, uint32_t node)
{
    return cm_name_of_callable(cycle->records,
                               cm_cycle_node(cycle, node)->code);
}

bool
cm_advice_hides_method(const struct cm_cycle *cycle, uint32_t edge)
{
    struct cm_name name = cm_cycle_edge_name(cycle, edge);
    struct cm_link link = {0, 0};
    bool found = false;

    if (cm_cycle_link(cycle, edge, &link)) {
        const struct cm_type *type = cm_records_type(
            cycle->records, cm_cycle_node(cycle, link.owner)->type);

        for (uint32_t i = 0; i < type->method_count && !found; i++) {
            struct cm_name method =
                cm_name_of_code(cycle->records, type->methods[i]);

            found = strcmp(method.text, name.text) == 0;
        }
    }
    return found;
}

/* Tuples and frozen sets cannot be. */
bool
cm_advice_can_be_cleared(const struct cm_cycle *cycle, uint32_t edge)
{
    return cm_advice_leads_into_container(cycle, edge)
           && cm_advice_species(cycle, edge) != CM_TUPLE
           && strcmp(
                  cm_advice_type_name(cycle, cm_cycle_edge(cycle, edge)->head)
                      .text,
                  "frozenset")
                  != 0;
}

/* The class that the object is of: `del Model.forward` would take the method
 * from all of them. */
static bool
is_type_of_owner(const struct cm_cycle *cycle, uint32_t edge,
                 const char *object)
{
    struct cm_link link = {0, 0};

    return cm_cycle_link(cycle, edge, &link)
           && strcmp(cm_advice_type_name(cycle, link.owner).text, object) == 0;
}

/* "set X.attr = None", "clear X.attr" for what leads into a container, or "del
 * X.attr" where the class's own then speaks again. */
char *
cm_advice_clearing(const struct cm_cycle *cycle, uint32_t edge,
                   const char *object, const char *before)
{
    struct cm_name attribute = cm_cycle_edge_name(cycle, edge);
    bool clears = cm_advice_can_be_cleared(cycle, edge);
    bool hides = cm_advice_hides_method(cycle, edge);

    if (hides && !clears && is_type_of_owner(cycle, edge, object)) {
        object = "";
    }
    return cm_sentence(
        "%s%s%s %s.%s%s when done", before, before[0] != '\0' ? ", or " : "",
        clears  ? "clear"
        : hides ? "del"
                : "set",
        object, attribute.text, clears || hides ? "" : " = None");
}

char *
cm_advise_hook(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
               const struct cm_made *made)
{
    struct cm_name name = cm_cycle_edge_name(cycle, suspect->edge);

    (void)made;
    if (cm_cycle_edge(cycle, suspect->edge)->role == CM_BOUND_SELF) {
        return cm_sentence("keep the handle and call handle.remove(), or "
                           "register a function that captures "
                           "weakref.ref(self)");
    }
    if (cm_cycle_edge(cycle, suspect->edge)->role != CM_CELL_CONTENTS) {
        return cm_sentence("keep the handle and call handle.remove(), or give "
                           "the partial weakref.ref of %s",
                           cm_advice_type_name(cycle, suspect->owner).text);
    }
    return cm_sentence("keep the handle and call handle.remove(), or capture "
                       "weakref.ref(%s) in the hook",
                       name.text);
}

char *
cm_advise_packed(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect, const struct cm_made *made)
{
    (void)cycle;
    (void)suspect;
    (void)made;
    return cm_sentence("let the pack hook return tensor.detach() instead of "
                       "the tensor: an operation that saves its own output "
                       "holds itself through it");
}

static bool
leads_to(const struct cm_cycle *cycle, uint32_t node, uint32_t role,
         uint32_t goal)
{
    const struct cm_node *record = cm_cycle_node(cycle, node);
    bool found = false;

    for (uint32_t i = 0; i < record->edge_count && !found; i++) {
        const struct cm_edge *edge =
            cm_cycle_edge(cycle, record->first_edge + i);

        found = edge->role == role && edge->head == goal;
    }
    return found;
}

/* The closure is a tuple of cells. */
static bool
is_in_closure(const struct cm_cycle *cycle, uint32_t function, uint32_t cell)
{
    const struct cm_node *record = cm_cycle_node(cycle, function);
    bool found = leads_to(cycle, function, CM_CLOSURE, cell);

    for (uint32_t i = 0; i < record->edge_count && !found; i++) {
        const struct cm_edge *edge =
            cm_cycle_edge(cycle, record->first_edge + i);

        found = edge->role == CM_CLOSURE
                && leads_to(cycle, edge->head, CM_CLOSURE_CELL, cell);
    }
    return found;
}

/* inner = self.f; def f(x): return inner(x) + self.y: the variable that has the
 * method beside `self`; 0: none. */
static uint32_t
method_beside(const struct cm_cycle *cycle, const struct cm_suspect *suspect)
{
    uint32_t self = cm_cycle_edge(cycle, suspect->edge)->head, edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_CELL_CONTENTS)))
           != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);

        if (cm_cycle_node(cycle, record->head)->species == CM_BOUND_METHOD
            && leads_to(cycle, record->head, CM_BOUND_SELF, self)
            && is_in_closure(cycle, suspect->maker, record->tail)) {
            return edge;
        }
    }
    return 0;
}

char *
cm_advise_lambda(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect, const struct cm_made *made)
{
    struct cm_name function = cm_advice_callable_name(cycle, suspect->maker);
    struct cm_name name = cm_cycle_edge_name(cycle, suspect->edge);
    char before[480];

    (void)made;
    if (cm_cycle_edge(cycle, suspect->edge)->role == CM_CELL_CONTENTS) {
        uint32_t beside = method_beside(cycle, suspect);

        snprintf(before, sizeof before, "capture weakref.ref(%s)%s%s%s in %s",
                 name.text, beside != 0 ? " and weakref.WeakMethod(" : "",
                 beside != 0 ? cm_cycle_edge_name(cycle, beside).text : "",
                 beside != 0 ? ")" : "", function.text);
        return cm_advice_clearing(cycle, suspect->held, name.text, before);
    }
    return cm_advice_captured(cycle, suspect, "");
}

/* "build" of "class build.<locals>.Net". */
static struct cm_name
enclosing_function(const struct cm_cycle *cycle, uint32_t type)
{
    const struct cm_node *node = cm_cycle_node(cycle, type);
    const char *text = cm_records_text(cycle->records, node->label);
    const char *end = strstr(text, ".<locals>."), *start = end;
    struct cm_name name = {"the function"};

    for (const char *next = end; next != NULL;
         next = strstr(next + 1, ".<locals>.")) {
        start = end = next;
    }
    while (start != NULL && start > text && strchr(". '", start[-1]) == NULL) {
        start--;
    }
    if (start != end) {
        snprintf(name.text, sizeof name.text, "%.*s", (int)(end - start),
                 start);
    }
    return name;
}

char *
cm_advise_class(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
                const struct cm_made *made)
{
    const struct cm_node *type = cm_cycle_node(cycle, suspect->owner);
    struct cm_name name = cm_name_of_object(cycle->records, type);

    (void)made;
    return cm_sentence("define class %s at module level: each call of %s "
                       "makes a class that refers to itself",
                       name.text,
                       enclosing_function(cycle, suspect->owner).text);
}

/* functools.wraps() gives it the name of what it wraps. */
static bool
is_wrapper(const struct cm_cycle *cycle, uint32_t function)
{
    const struct cm_node *node = cm_cycle_node(cycle, function);
    struct cm_name name = cm_name_of_object(cycle->records, node);

    return strcmp(name.text, cm_advice_callable_name(cycle, function).text)
           != 0;
}

/* A key of the dict that is no name of Python's; 0: it has none. */
static uint32_t
own_key(const struct cm_cycle *cycle, uint32_t dict)
{
    const struct cm_node *node = cm_cycle_node(cycle, dict);
    uint32_t found = 0;

    for (uint32_t i = 0; found == 0 && i < node->edge_count; i++) {
        struct cm_name key = cm_cycle_edge_name(cycle, node->first_edge + i);

        found = key.text[0] != '_' ? node->first_edge + i : 0;
    }
    return found;
}

/* cache of `wrapper.cache = {}`, an attribute of a wrapper, which does not call
 * itself; 0: it is none, or has none. */
static uint32_t
attribute_of_wrapper(const struct cm_cycle *cycle, uint32_t function)
{
    const struct cm_node *node = cm_cycle_node(cycle, function);
    uint32_t found = 0;

    for (uint32_t i = 0; found == 0 && i < node->edge_count; i++) {
        uint32_t edge = node->first_edge + i;

        if (strcmp(cm_cycle_edge_name(cycle, edge).text, "__dict__") == 0) {
            found = own_key(cycle, cm_cycle_edge(cycle, edge)->head);
        }
    }
    return is_wrapper(cycle, function) ? found : 0;
}

char *
cm_advise_recursion(const struct cm_cycle *cycle,
                    const struct cm_suspect *suspect,
                    const struct cm_made *made)
{
    struct cm_name function = cm_advice_callable_name(cycle, suspect->maker);

    (void)made;
    /* The cell's name says more than "the lambda". */
    if (strcmp(function.text, "the lambda") == 0) {
        function = cm_cycle_edge_name(cycle, suspect->edge);
    }
    uint32_t attribute = attribute_of_wrapper(cycle, suspect->maker);
    if (attribute != 0) {
        struct cm_name name = cm_cycle_edge_name(cycle, attribute);

        return cm_sentence("keep %s in a variable beside %s, and not on it: "
                           "through its closure %s refers to itself",
                           name.text, function.text, function.text);
    }
    return cm_sentence("move %s to module level or pass it as an argument: it "
                       "refers to itself through its closure",
                       function.text);
}

/* What an attribute leads to is let go there: a function that is called later
 * reads its variable. */
char *
cm_advise_cell(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
               const struct cm_made *made)
{
    struct cm_name name = cm_cycle_edge_name(cycle, suspect->edge);
    struct cm_name function = cm_advice_callable_name(cycle, suspect->maker);
    struct cm_link link;
    char before[320] = "";

    (void)made;
    if (suspect->maker == 0) {
        return cm_sentence("set %s = None when done: the cell that closures "
                           "share keeps it",
                           name.text);
    }
    bool weak = cm_advice_can_be_weak(cycle, suspect->edge);
    bool clears = cm_advice_can_be_cleared(cycle, suspect->edge);
    if (weak) {
        snprintf(before, sizeof before, "capture weakref.ref(%s) in %s",
                 name.text, function.text);
    }
    if (cm_cycle_link(cycle, suspect->held, &link)) {
        return cm_advice_clearing(cycle, suspect->held,
                                  cm_advice_type_name(cycle, link.owner).text,
                                  before);
    }
    if (weak) {
        return cm_sentence("%s, or set %s = None when done", before,
                           name.text);
    }
    return cm_sentence("%s %s%s when done: %s keeps it through its closure",
                       clears ? "clear" : "set", name.text,
                       clears ? "" : " = None", function.text);
}

char *
cm_advise_container(const struct cm_cycle *cycle,
                    const struct cm_suspect *suspect,
                    const struct cm_made *made)
{
    const struct cm_edge *edge = cm_cycle_edge(cycle, suspect->edge);
    const char *key = cm_records_text(cycle->records, edge->label);

    (void)made;
    if (strncmp(key, "['", 2) == 0 && edge->head != edge->tail) {
        return cm_sentence("set %s = None in each dict when done", key);
    }
    return cm_sentence("remove the container from itself when done (e.g. "
                       "clear() it)");
}

/* Adds a type's name unless it stands there.  `text` has room for
 * MAX_TYPES names. */
static bool
add_type(char *text, size_t room, struct cm_name name)
{
    size_t length = strlen(text);
    char wanted[sizeof name.text + 4];

    snprintf(wanted, sizeof wanted, ", %s,", name.text);
    if (strstr(text, wanted) != NULL) {
        return false;
    }
    snprintf(text + length, room - length, "%s %s,", length == 0 ? "," : "",
             name.text);
    return true;
}

char *
cm_advise_unknown(const struct cm_cycle *cycle,
                  const struct cm_suspect *suspect, const struct cm_made *made)
{
    /* ", A, B," while it grows, so that a whole name can be looked for. */
    char types[MAX_TYPES * (sizeof(struct cm_name) + 4)] = "";
    uint32_t count = 0;

    (void)suspect;
    (void)made;
    for (uint32_t i = 0; i < cycle->size && i < 256 && count < MAX_TYPES;
         i++) {
        count += add_type(types, sizeof types,
                          cm_advice_type_name(cycle, cycle->nodes[i]));
    }
    return cm_sentence("the cycle runs through: %.*s; break one of these "
                       "references",
                       (int)strlen(types) - 3, types + 2);
}
