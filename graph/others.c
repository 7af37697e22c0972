/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What keeps a cycle alive after its cut.  Who mends one of two references
 * that lead back runs the program again for nothing: the one finding names
 * both.  Each is found by one search that follows none of those known, from
 * what the cut leads to and from what holds the payload.  At most five
 * searches of O(edges). */

#include "advice.h"

#include "name.h"
#include "../detector/alloc.h"

/* What a library's object has is the library's, but for the one in whose
 * attribute the cut is. */
static bool
is_out_of_reach(const struct cm_cycle *cycle, uint32_t owner)
{
    struct cm_link cut;

    return cm_cycle_is_library_object(cycle, owner)
           && (!cm_cycle_link(cycle, cycle->cuts[0], &cut)
               || cut.owner != owner);
}

/* A link that a person wrote, nearest to the end of a way round `node`. */
static uint32_t
last_link(const struct cm_cycle *cycle, uint32_t node)
{
    uint32_t at = node;
    struct cm_link link;

    do {
        uint32_t edge = cycle->came_by[cm_cycle_place(cycle, at)];

        if (cm_cycle_link(cycle, edge, &link)
            && cm_cycle_node(cycle, link.owner)->species != CM_TYPE
            && !is_out_of_reach(cycle, link.owner)
            && !cm_cycle_is_hook(cycle, link)
            && !cm_cycle_is_table(cycle, link)) {
            return edge;
        }
        at = cm_cycle_edge(cycle, edge)->tail;
    } while (at != node);
    return 0;
}

static void
add_others(struct cm_cycle *cycle, uint32_t node, struct cm_suspect *suspect)
{
    while (suspect->also_count < CM_MAX_ALSO
           && cm_cycle_reach(cycle, node, node, CM_ROLES_ALL) != 0) {
        uint32_t edge = last_link(cycle, node);

        if (edge == 0) {
            return;
        }
        suspect->also[suspect->also_count++] = edge;
        cycle->cuts[cycle->cut_count++] = edge;
    }
}

void
cm_suspect_others(struct cm_cycle *cycle, struct cm_suspect *suspect)
{
    struct cm_link link;

    if (suspect->held == 0 || suspect->edge == 0
        || !cm_cycle_link(cycle, suspect->held, &link)) {
        return;
    }
    cycle->cuts[0] = suspect->held;
    cycle->cut_count = 1;
    add_others(cycle, cm_cycle_edge(cycle, suspect->edge)->head, suspect);
    add_others(cycle, cycle->holder, suspect);
    cycle->cut_count = 0;
}

static char *
add_other(const struct cm_cycle *cycle, uint32_t edge, char *advice)
{
    struct cm_link link = {0, 0};
    char *longer;

    (void)cm_cycle_link(cycle, edge, &link);
    struct cm_suspect other = cm_suspect_of(edge, link.owner, edge, 0);
    struct cm_made_line line =
        cm_made_line_of(cycle, cm_made_by_attribute, &other);
    bool known = line.text[0] != '\0';
    longer = cm_sentence(
        "%s; %s.%s leads back too%s%s%s", advice,
        cm_name_of_type(cycle->records, cm_cycle_node(cycle, link.owner)->type)
            .text,
        cm_cycle_edge_name(cycle, edge).text, known ? " (" : "", line.text,
        known ? ")" : "");
    cm_free(advice);
    return longer;
}

char *
cm_advise_others(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect, char *advice)
{
    for (uint32_t i = 0; i < suspect->also_count && advice != NULL; i++) {
        advice = add_other(cycle, suspect->also[i], advice);
    }
    return advice;
}
