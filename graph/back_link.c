/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Of several links between objects, the one that leads back.  First by what
 * it is called: people name it parent, owner, prev.  Then by what it leaves:
 * data that refers to its user.  Then by direction: seen breadth first from
 * the object that holds the payload, the link that meets an object already
 * seen.  Three passes over the edges, O(edges) and the searches. */

#include "suspect.h"

#include <string.h>

#include "name.h"

#define UNSET_SLOTS 64
#define MAX_NESTED 16 /* modules within modules, of which the owner is asked */
#define ROLES_CAPTURE                                                         \
    (CM_ROLES_CONTAINER | CM_ROLE(CM_DEFAULT) | CM_ROLE(CM_PARTIAL_FUNC)      \
     | CM_ROLE(CM_PARTIAL_ARG) | CM_ROLE(CM_BOUND_SELF))

/* Whole names, the most telling first. */
static const char *const back_names[] = {
    "parent",  "owner",      "prev",      "previous", "outer",
    "back",    "backref",    "up",        "root",     "container",
    "manager", "enclosing",  "ctx",       "context",  "master",
    "host",    "parent_ref", "owner_ref", "wrapper",  NULL,
};
/* Ends and beginnings of names: _parent_module, cell_owner. */
static const char *const back_words[] = {"parent", "owner",   "prev",
                                         "outer",  "backref", NULL};

static bool
has_word(const char *name, const char *word)
{
    size_t length = strlen(name), wanted = strlen(word);

    if (length <= wanted) {
        return false;
    }
    return (strncmp(name, word, wanted) == 0 && name[wanted] == '_')
           || (strcmp(name + length - wanted, word) == 0
               && name[length - wanted - 1] == '_');
}

/* 0: does not sound like a way back; larger: does so more. */
static uint32_t
telling(const char *name)
{
    uint32_t count = sizeof back_names / sizeof *back_names;

    name += strspn(name, "_");
    for (uint32_t i = 0; back_names[i] != NULL; i++) {
        if (strcmp(name, back_names[i]) == 0) {
            return count - i + 1;
        }
    }
    for (uint32_t i = 0; back_words[i] != NULL; i++) {
        if (has_word(name, back_words[i])) {
            return 1;
        }
    }
    return 0;
}

/* A link that an instance holds: not a class's, not a table of hooks. */
static bool
is_candidate(const struct cm_cycle *cycle, uint32_t edge, struct cm_link *link)
{
    return cm_cycle_link(cycle, edge, link)
           && cm_cycle_node(cycle, link->owner)->species != CM_TYPE
           && !cm_cycle_is_hook(cycle, *link);
}

/* A namedtuple: it has items as a tuple has, and a weak reference to it cannot
 * be made. */
static bool
is_record(const struct cm_cycle *cycle, uint32_t node)
{
    const struct cm_node *record = cm_cycle_node(cycle, node);

    return record->species == CM_OBJECT
           && cm_records_type(cycle->records, record->type)->unweakable;
}

/* The first item of a container or a record that leads on; 0: none. */
static uint32_t
item_inside(const struct cm_cycle *cycle, uint32_t node)
{
    const struct cm_node *record = cm_cycle_node(cycle, node);
    bool container = cm_cycle_is_container(cycle, node);
    uint32_t roles = container ? CM_ROLES_ALL : CM_ROLES_CONTAINER;

    for (uint32_t i = 0; i < record->edge_count; i++) {
        uint32_t edge = record->first_edge + i;
        const struct cm_edge *item = cm_cycle_edge(cycle, edge);

        if (cm_cycle_has(cycle, item->head)
            && (CM_ROLE(item->role) & roles) != 0
            && (container || is_record(cycle, node))) {
            return edge;
        }
    }
    return 0;
}

/* The link itself, or, when it leads into containers, the last edge before
 * they lead to something else. */
static uint32_t
innermost(struct cm_cycle *cycle, struct cm_link link)
{
    uint32_t edge = link.edge, next = link.edge;

    for (uint32_t steps = 0; steps < 64 && next != 0; steps++) {
        edge = next;
        next = item_inside(cycle, cm_cycle_edge(cycle, edge)->head);
    }
    return edge;
}

/* What is only stored there, behind a function or a partial: the edge to the
 * object that it keeps; 0: it keeps none by a default or an argument. */
static uint32_t
captured(const struct cm_cycle *cycle, uint32_t callable)
{
    uint32_t node = callable, edge = 0;

    for (uint32_t steps = 0; steps < MAX_NESTED; steps++) {
        const struct cm_node *record = cm_cycle_node(cycle, node);
        uint32_t next = 0;

        for (uint32_t i = 0; i < record->edge_count && next == 0; i++) {
            uint32_t out = record->first_edge + i;
            const struct cm_edge *item = cm_cycle_edge(cycle, out);

            next = cm_cycle_has(cycle, item->head)
                           && (CM_ROLE(item->role) & ROLES_CAPTURE) != 0
                       ? out
                       : 0;
        }
        if (next == 0) {
            break;
        }
        edge = next;
        node = cm_cycle_edge(cycle, edge)->head;
    }
    return edge;
}

static void
suspect_link(struct cm_cycle *cycle, struct cm_link link,
             struct cm_suspect *result)
{
    uint32_t edge = innermost(cycle, link);
    uint32_t head = cm_cycle_edge(cycle, edge)->head;
    uint8_t species = cm_cycle_node(cycle, head)->species;

    *result = cm_suspect_of(edge, link.owner, link.edge, 0);
    if (species == CM_FUNCTION || species == CM_PARTIAL) {
        edge = captured(cycle, head);
        result->maker = edge != 0 ? head : 0;
        result->edge = edge != 0 ? edge : result->edge;
    }
}

/* A name that the program gave to no attribute: a library's object has it for
 * the library. */
static bool
is_of_library(const struct cm_cycle *cycle, struct cm_link link)
{
    return cm_cycle_is_library_object(cycle, link.owner)
           && !cm_suspect_is_set_by_program(cycle, link);
}

static bool
is_alike(const struct cm_cycle *cycle, struct cm_link a, struct cm_link b)
{
    return cm_text_same(cm_cycle_edge(cycle, a.edge)->label,
                        cm_cycle_edge(cycle, b.edge)->label)
           && cm_cycle_node(cycle, a.owner)->type.index
                  == cm_cycle_node(cycle, b.owner)->type.index;
}

/* Links that no line of the program sets; a slot keeps the newest. */
struct unset {
    struct cm_link slots[UNSET_SLOTS];
};

/* An answer is the same for all of one name and one type of owner: a million
 * equal members ask once. */
static bool
is_set(const struct cm_cycle *cycle, struct cm_link link, struct unset *known)
{
    uint32_t key = cm_cycle_edge(cycle, link.edge)->label.index * 31
                   + cm_cycle_node(cycle, link.owner)->type.index;
    struct cm_link *slot = &known->slots[key % UNSET_SLOTS];

    if (slot->edge != 0 && is_alike(cycle, link, *slot)) {
        return false;
    }
    *slot = link;
    return cm_suspect_is_set_by_program(cycle, link);
}

static bool
has_users_link(const struct cm_cycle *cycle)
{
    struct unset known = {0};
    struct cm_link link;
    uint32_t edge = 0;
    bool found = false;

    while (!found && (edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        found = is_candidate(cycle, edge, &link)
                && !cm_cycle_is_library_object(cycle, link.owner)
                && is_set(cycle, link, &known);
    }
    return found;
}

static bool
find_by_name(struct cm_cycle *cycle, struct cm_suspect *result)
{
    struct cm_link link, best = {0};
    uint32_t edge = 0, most = 0;
    bool users = has_users_link(cycle);

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        if (is_candidate(cycle, edge, &link)) {
            struct cm_name name = cm_cycle_edge_name(cycle, edge);
            uint32_t score = telling(name.text);

            if (score > most && !(users && is_of_library(cycle, link))) {
                most = score;
                best = link;
            }
        }
    }
    if (most > 0) {
        suspect_link(cycle, best, result);
    }
    return most > 0;
}

static bool
find_by_owner(struct cm_cycle *cycle, struct cm_suspect *result)
{
    struct cm_link link;
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        if (is_candidate(cycle, edge, &link)
            && cm_cycle_node(cycle, link.owner)->storage.index != 0) {
            suspect_link(cycle, link, result);
            return true;
        }
    }
    return false;
}

/* After: came_by[] says when each member is seen breadth first from the
 * payload's holder, until the next search. */
static bool
number_members(struct cm_cycle *cycle)
{
    if (!cm_cycle_spread(cycle, cycle->holder)) {
        return false;
    }
    for (uint32_t seen = 0; seen < cycle->size; seen++) {
        cycle->came_by[cm_cycle_place(cycle, cycle->queue[seen])] = seen;
    }
    return true;
}

/* The edge back to the member that was seen first; of equal ones the last. */
static uint32_t
edge_to_earliest(const struct cm_cycle *cycle)
{
    uint32_t best = 0, earliest = UINT32_MAX, edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        const struct cm_edge *record = cm_cycle_edge(cycle, edge);
        uint32_t from = cycle->came_by[cm_cycle_place(cycle, record->tail)];
        uint32_t to = cycle->came_by[cm_cycle_place(cycle, record->head)];

        if (to <= from && to <= earliest) {
            earliest = to;
            best = edge;
        }
    }
    return best;
}

/* The link that `edge` belongs to: itself, the one whose containers it lies
 * in, or the nearest one before it. */
static bool
link_of_edge(struct cm_cycle *cycle, uint32_t edge, struct cm_link *link,
             bool *inside)
{
    uint32_t tail = cm_cycle_edge(cycle, edge)->tail;
    struct cm_want any = {0};

    *inside = false;
    if (is_candidate(cycle, edge, link)) {
        return true;
    }
    if ((CM_ROLE(cm_cycle_edge(cycle, edge)->role) & CM_ROLES_CONTAINER) != 0
        && cm_cycle_held(cycle, tail, CM_ROLES_CONTAINER, any, link)) {
        *inside = true;
        return is_candidate(cycle, link->edge, link);
    }
    return cm_cycle_held(cycle, tail, CM_ROLES_ALL, any, link)
           && is_candidate(cycle, link->edge, link);
}

/* cache[self, name] = ...: what a result was made of. */
static bool
is_in_key(const struct cm_cycle *cycle, uint32_t edge)
{
    uint32_t tail = cm_cycle_edge(cycle, edge)->tail, key = 0;

    while ((key = cm_cycle_next(cycle, key, CM_ROLE(CM_KEY))) != 0) {
        if (cm_cycle_edge(cycle, key)->head == tail) {
            return true;
        }
    }
    return false;
}

/* Whether the link says who belongs to its owner: an entry in a module's table
 * of submodules, or one of the objects in a container.  What is called back is
 * none, nor is a part of a key. */
static bool
is_ownership(const struct cm_cycle *cycle, struct cm_link link, uint32_t edge)
{
    uint32_t head = cm_cycle_edge(cycle, edge)->head;
    uint8_t species = cm_cycle_node(cycle, head)->species;

    if (cm_cycle_is_part(cycle, link)) {
        return true;
    }
    return edge != link.edge && (species == CM_OBJECT || species == CM_MODULE)
           && !cm_cycle_is_library_object(cycle, link.owner)
           && !is_in_key(cycle, edge);
}

/* A module's table of submodules, or an entry in it. */
static bool
is_of_table(const struct cm_cycle *cycle, struct cm_link link)
{
    return cm_cycle_is_part(cycle, link) || cm_cycle_is_table(cycle, link);
}

/* The link by which what belongs to an owner knows it; that may lie in a list
 * only where a module's table says whose part it is. */
static bool
find_link_up(struct cm_cycle *cycle, struct cm_link down,
             struct cm_link *result)
{
    bool part = is_of_table(cycle, down);
    struct cm_link link;
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        if (!is_candidate(cycle, edge, &link) || link.owner == down.owner
            || is_of_table(cycle, link)) {
            continue;
        }
        uint32_t last = part ? innermost(cycle, link) : link.edge;

        if (cm_cycle_edge(cycle, last)->head == down.owner) {
            *result = link;
            return true;
        }
    }
    return false;
}

/* The entry of a module's table by which `node` is a part of another. */
static bool
find_whole(const struct cm_cycle *cycle, uint32_t node, struct cm_link *result)
{
    uint32_t edge = 0;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_VALUE))) != 0) {
        if (cm_cycle_edge(cycle, edge)->head == node
            && cm_cycle_link(cycle, edge, result)
            && cm_cycle_is_part(cycle, *result)) {
            return true;
        }
    }
    return false;
}

/* A block in a ModuleList knows the model, not the list. */
static bool
find_link_to_whole(struct cm_cycle *cycle, struct cm_link down,
                   struct cm_link *result)
{
    for (uint32_t steps = 0; steps < MAX_NESTED; steps++) {
        if (find_link_up(cycle, down, result)) {
            return true;
        }
        if (!is_of_table(cycle, down)
            || !find_whole(cycle, down.owner, &down)) {
            return false;
        }
    }
    return false;
}

/* A queue's list, a weak dictionary's dict, what a loader keeps of what it was
 * given: a person has what it is in, by a line of the program unless that was a
 * container.  Not what is in a ModuleList: that says whose part it is. */
static bool
leave_library(struct cm_cycle *cycle, struct cm_link *link)
{
    struct cm_want want = {.through_libraries = true, .users = true};
    struct cm_link outer;
    uint32_t head = cm_cycle_edge(cycle, link->edge)->head;

    if (!cm_cycle_is_library_object(cycle, link->owner)
        || cm_cycle_is_part(cycle, *link)
        || cm_suspect_is_set_by_program(cycle, *link)
        || !cm_cycle_held(cycle, link->owner, CM_ROLES_CONTAINER, want, &outer)
        || !is_candidate(cycle, outer.edge, &outer)
        || !(cm_cycle_is_container(cycle, head)
             || cm_suspect_is_set_by_program(cycle, outer))) {
        return false;
    }
    *link = outer;
    return true;
}

/* Two objects of the type are items of it. */
static bool
has_several(const struct cm_cycle *cycle, uint32_t whole, uint32_t type)
{
    const struct cm_node *record = cm_cycle_node(cycle, whole);
    uint32_t first = 0;

    for (uint32_t i = 0; i < record->edge_count; i++) {
        const struct cm_edge *item =
            cm_cycle_edge(cycle, record->first_edge + i);

        if ((CM_ROLE(item->role) & CM_ROLES_CONTAINER) != 0
            && cm_cycle_has(cycle, item->head)
            && cm_cycle_node(cycle, item->head)->type.index == type) {
            if (first != 0 && first != item->head) {
                return true;
            }
            first = item->head;
        }
    }
    return false;
}

/* A registry: a dict or a list of the program's own class, which several of
 * its items have by that name.  They are to know it weakly: without its items
 * it would be of no use. */
static bool
is_known_by_items(const struct cm_cycle *cycle, uint32_t whole,
                  struct cm_link link)
{
    struct cm_link other;
    uint32_t edge = 0, known = 0;

    if (cm_cycle_edge(cycle, link.edge)->head != whole
        || cm_cycle_node(cycle, whole)->species != CM_OBJECT
        || is_record(cycle, whole) || cm_cycle_is_library_object(cycle, whole)
        || !has_several(cycle, whole,
                        cm_cycle_node(cycle, link.owner)->type.index)) {
        return false;
    }
    while (known < 2
           && (edge = cm_cycle_next(cycle, edge, CM_ROLES_ALL)) != 0) {
        known += cm_cycle_edge(cycle, edge)->head == whole
                 && is_candidate(cycle, edge, &other)
                 && is_alike(cycle, link, other);
    }
    return known == 2;
}

static bool
find_by_direction(struct cm_cycle *cycle, struct cm_suspect *result)
{
    struct cm_link link;
    uint32_t edge;
    bool inside;

    if (!number_members(cycle) || (edge = edge_to_earliest(cycle)) == 0
        || !link_of_edge(cycle, edge, &link, &inside)) {
        return false;
    }
    suspect_link(cycle, link, result);
    inside =
        inside
        && !is_known_by_items(cycle, cm_cycle_edge(cycle, edge)->tail, link);
    uint32_t head = cm_cycle_edge(cycle, link.edge)->head;
    bool given = false; /* to a library's object, in an attribute of its own */
    if (leave_library(cycle, &link)) {
        result->held = link.edge;
        result->owner = link.owner;
        given = !inside && !cm_cycle_is_container(cycle, head);
    }
    if (result->maker != 0 || given) {
        return true;
    }
    result->edge = inside ? edge : result->edge;
    if (is_ownership(cycle, link, result->edge)
        && find_link_to_whole(cycle, link, &link)) {
        suspect_link(cycle, link, result);
    }
    return true;
}

bool
cm_suspect_back_link(struct cm_cycle *cycle, struct cm_suspect *result)
{
    return find_by_name(cycle, result) || find_by_owner(cycle, result)
           || find_by_direction(cycle, result);
}
