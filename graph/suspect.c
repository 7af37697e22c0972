/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Each shape walks the edges of the one role that is rare and telling (a
 * cell's contents, a bound method's self, a frame's local) and asks with one
 * bounded search whether the rest of the shape stands around it.  O(edges)
 * and the searches, which share the cycle's budget.
 * Exceptions and frames: raised.c.  Which link of several leads back:
 * back_link.c. */

#include "suspect.h"

#include <string.h>

#include "name.h"
#include "place.h"

#define ROLES_WRAPPERS                                                        \
    (CM_ROLES_CONTAINER | CM_ROLES_CLOSURE | CM_ROLE(CM_DEFAULT))
#define ROLES_HOOKED                                                          \
    (ROLES_WRAPPERS | CM_ROLE(CM_PARTIAL_FUNC) | CM_ROLE(CM_PARTIAL_ARG))
#define ROLES_PARTIAL                                                         \
    (CM_ROLES_CONTAINER | CM_ROLE(CM_PARTIAL_FUNC) | CM_ROLE(CM_PARTIAL_ARG)  \
     | CM_ROLE(CM_BOUND_SELF))
#define ROLES_NAMED                                                           \
    (CM_ROLES_CONTAINER | CM_ROLE(CM_ATTRIBUTE) | CM_ROLE(CM_LOCAL)           \
     | CM_ROLE(CM_CELL_CONTENTS))
#define ROLES_OF_CLASS                                                        \
    (CM_ROLES_CONTAINER | CM_ROLE(CM_CLASS) | CM_ROLE(CM_REFERENCE))

static enum cm_species
species_of(const struct cm_cycle *cycle, uint32_t node)
{
    return (enum cm_species)cm_cycle_node(cycle, node)->species;
}

static bool
is_instance(const struct cm_cycle *cycle, uint32_t node)
{
    switch (species_of(cycle, node)) {
    case CM_OBJECT:
    case CM_MODULE:
    case CM_EXCEPTION:
    case CM_TENSOR:
    case CM_STORAGE:
    case CM_GRAD_FN: return true;
    default: return false;
    }
}

static bool
is_resumable(const struct cm_cycle *cycle, uint32_t node)
{
    enum cm_species species = species_of(cycle, node);

    return species == CM_GENERATOR || species == CM_COROUTINE
           || species == CM_ASYNC_GENERATOR;
}

/* `edge` keeps something alive on behalf of the callable `callable`, which
 * stands in a table of hooks. */
static bool
is_hooked(struct cm_cycle *cycle, uint32_t edge, uint32_t callable,
          uint32_t roles, struct cm_suspect *result)
{
    struct cm_want want = {.hook = true};
    struct cm_link link;

    if (!cm_cycle_held(cycle, callable, roles, want, &link)) {
        return false;
    }
    result->edge = edge;
    result->owner = cm_cycle_edge(cycle, edge)->head;
    result->held = link.edge;
    result->maker = cm_cycle_function(cycle, link, callable);
    return true;
}

/* A cell's object, or that of a method, also where a partial has it. */
static bool
find_hooked_capture(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t roles = CM_ROLE(CM_CELL_CONTENTS) | CM_ROLE(CM_BOUND_SELF);
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, roles)) != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);

        if (is_instance(cycle, record->head)
            && is_hooked(cycle, edge, record->tail, ROLES_HOOKED, result)) {
            return true;
        }
    }
    return false;
}

/* An object in the tuple or the dict of a partial's arguments. */
static bool
is_hooked_argument(struct cm_cycle *cycle, uint32_t arguments,
                   struct cm_suspect *result)
{
    const struct cm_node *node = cm_cycle_node(cycle, arguments);

    for (uint32_t i = 0; i < node->edge_count; i++) {
        uint32_t edge = node->first_edge + i;
        uint32_t head = cm_cycle_edge(cycle, edge)->head;

        if (cm_cycle_has(cycle, head) && is_instance(cycle, head)
            && is_hooked(cycle, edge, arguments, ROLES_HOOKED, result)) {
            return true;
        }
    }
    return false;
}

static bool
find_hooked_argument(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_PARTIAL_ARG))) != 0) {
        uint32_t arguments = cm_cycle_edge(cycle, edge)->head;

        if (is_hooked_argument(cycle, arguments, result)) {
            return true;
        }
    }
    return false;
}

bool
cm_suspect_hook(struct cm_cycle *cycle, struct cm_suspect *result)
{
    return find_hooked_capture(cycle, result)
           || find_hooked_argument(cycle, result);
}

bool
cm_suspect_packed(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_AUTOGRAD))) != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);
        const char *label = cm_records_text(cycle->records, record->label);

        if (species_of(cycle, record->head) == CM_TENSOR
            && strcmp(label, "saved packed") == 0) {
            *result = cm_suspect_of(edge, record->head, edge, 0);
            return true;
        }
    }
    return false;
}

/* Functions have attributes too. */
static bool
can_own_function(const struct cm_cycle *cycle, uint32_t node)
{
    return is_instance(cycle, node) || species_of(cycle, node) == CM_FUNCTION;
}

/* __wrapped__ and its like are set by Python, not by a person. */
static bool
is_protocol(const struct cm_cycle *cycle, struct cm_link link)
{
    struct cm_name name = cm_cycle_edge_name(cycle, link.edge);

    return strncmp(name.text, "__", 2) == 0;
}

/* A cell that holds an object which holds the cell's function. */
static bool
find_captured_cell(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_CELL_CONTENTS)))
           != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);
        struct cm_want want = {.owner = record->head,
                               .through_libraries = true};
        struct cm_link link;

        if (!can_own_function(cycle, record->head)
            || !cm_cycle_held(cycle, record->tail, ROLES_WRAPPERS, want, &link)
            || is_protocol(cycle, link)) {
            continue;
        }
        uint32_t function = cm_cycle_function(cycle, link, record->tail);
        if (function != 0) {
            *result = cm_suspect_of(edge, link.owner, link.edge, function);
            return true;
        }
    }
    return false;
}

/* The same for `lambda x, self=self: ...`. */
static bool
find_captured_default(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_DEFAULT))) != 0) {
        uint32_t function = cm_cycle_edge(cycle, edge)->tail;
        struct cm_link link;
        uint32_t last;

        if (!cm_cycle_held(cycle, function, ROLES_WRAPPERS,
                           (struct cm_want){0}, &link)
            || !is_instance(cycle, link.owner)) {
            continue;
        }
        last = cm_cycle_reach(cycle, function, link.owner,
                              CM_ROLES_CONTAINER | CM_ROLE(CM_DEFAULT));
        if (last != 0) {
            *result = cm_suspect_of(last, link.owner, link.edge, function);
            return true;
        }
    }
    return false;
}

bool
cm_suspect_lambda(struct cm_cycle *cycle, struct cm_suspect *result)
{
    return find_captured_cell(cycle, result)
           || find_captured_default(cycle, result);
}

bool
cm_suspect_is_set_by_program(const struct cm_cycle *cycle, struct cm_link link)
{
    struct cm_name name = cm_cycle_edge_name(cycle, link.edge);
    struct cm_place_search search = {.cycle = cycle,
                                     .is_wanted = cm_place_sets_attribute,
                                     .name = name.text};

    cm_place_look_around(&search, link.owner);
    cm_place_sort(&search);
    return search.count != 0
           && !cm_place_code(&search, search.found[0].place.code)->library;
}

/* module.forward = self.forward: the attribute of a library's object that has
 * the method. */
static bool
find_replaced_method(struct cm_cycle *cycle, uint32_t edge,
                     struct cm_suspect *result)
{
    const struct cm_edge *record = cm_cycle_edge(cycle, edge);
    struct cm_link link;

    if (!cm_cycle_held(cycle, record->tail, ROLES_WRAPPERS,
                       (struct cm_want){0}, &link)
        || link.owner == record->head || cm_cycle_is_hook(cycle, link)
        || !cm_suspect_is_set_by_program(cycle, link)) {
        return false;
    }
    *result = cm_suspect_of(edge, link.owner, link.edge, 0);
    return true;
}

/* model.old_forward = model.forward: the method is the library's own. */
static bool
is_of_library(const struct cm_cycle *cycle, uint32_t method)
{
    struct cm_code_id code = cm_cycle_node(cycle, method)->code;

    return cm_records_code(cycle->records, code)->library;
}

/* Containers alone lead to what a person put there. */
static bool
is_handed_on(struct cm_cycle *cycle, const struct cm_suspect *suspect)
{
    uint32_t method = cm_cycle_edge(cycle, suspect->edge)->tail;
    uint32_t held = cm_cycle_edge(cycle, suspect->held)->head;

    return held != method
           && (!cm_cycle_is_container(cycle, held)
               || cm_cycle_reach(cycle, held, method, CM_ROLES_CONTAINER)
                      == 0);
}

static bool
find_kept_method(struct cm_cycle *cycle, bool of_library,
                 struct cm_suspect *result)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_BOUND_SELF))) != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);
        struct cm_want want = {.owner = record->head,
                               .through_libraries = true};
        struct cm_link link;

        if (is_instance(cycle, record->head)
            && is_of_library(cycle, record->tail) == of_library
            && cm_cycle_held(cycle, record->tail, ROLES_WRAPPERS, want,
                             &link)) {
            *result = cm_suspect_of(edge, link.owner, link.edge, 0);
            (void)find_replaced_method(cycle, edge, result);
            result->handed_on = is_handed_on(cycle, result);
            return true;
        }
    }
    return false;
}

bool
cm_suspect_method(struct cm_cycle *cycle, struct cm_suspect *result)
{
    return find_kept_method(cycle, false, result)
           || find_kept_method(cycle, true, result);
}

bool
cm_suspect_partial(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t roles = CM_ROLE(CM_PARTIAL_FUNC) | CM_ROLE(CM_PARTIAL_ARG);
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, roles)) != 0) {
        uint32_t partial = cm_cycle_edge(cycle, edge)->tail;
        struct cm_link link;
        uint32_t last;

        if (!cm_cycle_held(cycle, partial, CM_ROLES_CONTAINER,
                           (struct cm_want){0}, &link)
            || !is_instance(cycle, link.owner)) {
            continue;
        }
        last = cm_cycle_reach(cycle, partial, link.owner, ROLES_PARTIAL);
        if (last != 0) {
            *result = cm_suspect_of(last, link.owner, link.edge, partial);
            return true;
        }
    }
    return false;
}

/* What a generator expression goes through is a local that no source names. */
static bool
is_unwritten(const struct cm_cycle *cycle, uint32_t edge)
{
    return cm_cycle_edge(cycle, edge)->role == CM_LOCAL
           && strcmp(cm_cycle_edge_name(cycle, edge).text, ".0") == 0;
}

static bool
is_of_library_object(const struct cm_cycle *cycle, uint32_t edge)
{
    struct cm_link link;

    return cm_cycle_link(cycle, edge, &link)
           && cm_cycle_is_library_object(cycle, link.owner);
}

/* The last edge of a way found, but for what a library's object (a context
 * manager, a task) has: who has that object is the user's to change. */
static uint32_t
last_edge_of_user(const struct cm_cycle *cycle, uint32_t node, uint32_t roles)
{
    uint32_t last = cm_cycle_last(cycle, node, node, roles), edge = last;

    while (
        edge != 0
        && (is_of_library_object(cycle, edge) || is_unwritten(cycle, edge))) {
        uint32_t tail = cm_cycle_edge(cycle, edge)->tail;

        edge = tail != node ? cm_cycle_last(cycle, node, tail, roles) : 0;
    }
    return edge != 0 ? edge : last;
}

/* The edge that a person wrote, nearest to the end of a way found. */
static bool
name_last_edge(struct cm_cycle *cycle, uint32_t node,
               struct cm_suspect *result)
{
    uint32_t names =
        CM_ROLE(CM_ATTRIBUTE) | CM_ROLE(CM_LOCAL) | CM_ROLE(CM_CELL_CONTENTS);

    result->edge = last_edge_of_user(cycle, node, ROLES_NAMED);
    result->held = last_edge_of_user(cycle, node, names);
    result->owner = node;
    result->maker = node;
    if (result->edge == 0) {
        return false;
    }
    /* Of two generators that run each other, the one that the name leads to. */
    uint32_t head = cm_cycle_edge(cycle, result->held)->head;
    if (result->held != 0 && is_resumable(cycle, head)) {
        result->maker = head;
    }
    return true;
}

bool
cm_suspect_generator(struct cm_cycle *cycle, struct cm_suspect *result)
{
    for (uint32_t place = 0; place < cycle->size; place++) {
        uint32_t node = cycle->nodes[place];

        if (is_resumable(cycle, node)
            && cm_cycle_reach(cycle, node, node, CM_ROLES_ALL) != 0
            && name_last_edge(cycle, node, result)) {
            return true;
        }
    }
    return false;
}

bool
cm_suspect_class(struct cm_cycle *cycle, struct cm_suspect *result)
{
    for (uint32_t place = 0; place < cycle->size; place++) {
        uint32_t node = cycle->nodes[place];

        if (species_of(cycle, node) == CM_TYPE
            && cm_cycle_reach(cycle, node, node, ROLES_OF_CLASS) != 0) {
            uint32_t last = cm_cycle_last(cycle, node, node, CM_ROLES_ALL);

            *result = cm_suspect_of(last, node, 0, node);
            return true;
        }
    }
    return false;
}

/* The function whose closure has the cell, 0: none. */
static uint32_t
function_of_cell(struct cm_cycle *cycle, uint32_t cell)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_CLOSURE))) != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);

        if (record->head == cell
            || cm_cycle_reach(cycle, record->head, cell,
                              CM_ROLE(CM_CLOSURE_CELL))
                   != 0) {
            return record->tail;
        }
    }
    return 0;
}

bool
cm_suspect_recursion(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_CELL_CONTENTS)))
           != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);

        if (species_of(cycle, record->head) == CM_FUNCTION
            && cm_cycle_reach(cycle, record->head, record->tail,
                              CM_ROLES_CLOSURE)
                   != 0) {
            *result = cm_suspect_of(edge, record->head, 0, record->head);
            return true;
        }
    }
    return false;
}

/* The attribute of an object of the program's own by which the function is
 * called. */
static bool
find_keeper(struct cm_cycle *cycle, uint32_t function, struct cm_link *link)
{
    struct cm_want want = {.through_libraries = true, .users = true};

    return function != 0
           && cm_cycle_held(cycle, function, ROLES_WRAPPERS, want, link)
           && is_instance(cycle, link->owner) && !is_protocol(cycle, *link);
}

bool
cm_suspect_cell(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t edge = cm_cycle_next(cycle, 0, CM_ROLE(CM_CELL_CONTENTS));
    const struct cm_edge *record = cm_cycle_edge(cycle, edge);
    struct cm_link link;

    if (edge == 0) {
        return false;
    }
    *result = cm_suspect_of(edge, record->head, edge,
                            function_of_cell(cycle, record->tail));
    if (is_instance(cycle, record->head)
        && find_keeper(cycle, result->maker, &link)) {
        result->held = link.edge;
    }
    return true;
}

bool
cm_suspect_own_dict(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_INSTANCE_DICT)))
           != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);

        if (record->head == record->tail) {
            *result = cm_suspect_of(edge, record->tail, edge, 0);
            return true;
        }
    }
    return false;
}

bool
cm_suspect_self(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t edge = 0;
    struct cm_link link;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        uint32_t head = cm_cycle_edge(cycle, edge)->head;
        uint32_t last;

        if (!cm_cycle_link(cycle, edge, &link)
            || !is_instance(cycle, link.owner)) {
            continue;
        }
        last =
            head == link.owner ? edge
            : cm_cycle_is_container(cycle, head)
                ? cm_cycle_reach(cycle, head, link.owner, CM_ROLES_CONTAINER)
                : 0;
        if (last != 0) {
            *result = cm_suspect_of(last, link.owner, edge, 0);
            /* An entry in a module's table of submodules is a link too. */
            if (cm_cycle_link(cycle, last, &link)) {
                result->held = link.edge;
            }
            return true;
        }
    }
    return false;
}

bool
cm_suspect_container(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t last;

    for (uint32_t place = 0; place < cycle->size; place++) {
        if (!cm_cycle_is_container(cycle, cycle->nodes[place])) {
            return false;
        }
    }
    last = cm_cycle_reach(cycle, cycle->holder, cycle->holder, CM_ROLES_ALL);
    *result = cm_suspect_of(last, cycle->holder, 0, 0);
    return last != 0;
}

bool
cm_suspect_unknown(struct cm_cycle *cycle, struct cm_suspect *result)
{
    *result = (struct cm_suspect){.owner = cycle->holder};
    return true;
}
