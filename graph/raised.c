/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Exceptions and frames that keep each other.  What a library stores for the
 * user (Future.set_exception(), a task that failed, a log record) is passed
 * through: its line is not the user's to change, the local or the attribute
 * that leads there is.  O(locals) searches, which share the cycle's budget. */

#include "suspect.h"

#define ROLES_RAISED                                                          \
    (CM_ROLES_CONTAINER | CM_ROLE(CM_CELL_CONTENTS)                           \
     | CM_ROLE(CM_EXCEPTION_LINK) | CM_ROLE(CM_TB_FRAME)                      \
     | CM_ROLE(CM_TB_NEXT) | CM_ROLE(CM_F_BACK) | CM_ROLES_LIBRARY)

static bool
is_library_frame(const struct cm_cycle *cycle, uint32_t frame)
{
    return cm_records_code(cycle->records, cm_cycle_node(cycle, frame)->code)
        ->library;
}

/* A local whose value leads back to its own frame. */
static bool
keeps_frame(struct cm_cycle *cycle, uint32_t edge, bool *exception)
{
    const struct cm_edge *record = cm_cycle_edge(cycle, edge);
    uint32_t frame = record->tail, value = record->head;

    *exception = false;
    if (cm_cycle_node(cycle, frame)->species != CM_FRAME) {
        return false;
    }
    if (value == frame) {
        return true;
    }
    if (cm_cycle_reach(cycle, value, frame, ROLES_RAISED) == 0) {
        return false;
    }
    *exception = cm_cycle_touches(cycle, value, frame, CM_EXCEPTION);
    return true;
}

static bool
find_local(struct cm_cycle *cycle, bool exception, bool library,
           struct cm_suspect *result)
{
    uint32_t edge = 0;
    bool found;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_LOCAL))) != 0) {
        uint32_t frame = cm_cycle_edge(cycle, edge)->tail;

        if (is_library_frame(cycle, frame) == library
            && keeps_frame(cycle, edge, &found) && found == exception) {
            *result = cm_suspect_of(edge, frame, edge, frame);
            return true;
        }
    }
    return false;
}

static void
add_other(uint32_t edge, struct cm_suspect *result)
{
    if (result->also_count < CM_MAX_ALSO) {
        result->also[result->also_count++] = edge;
    }
}

/* The other locals that a person has to delete as well. */
static void
add_other_locals(struct cm_cycle *cycle, struct cm_suspect *result)
{
    uint32_t edge = 0;
    bool exception;

    while ((edge = cm_cycle_next(cycle, edge, CM_ROLE(CM_LOCAL))) != 0) {
        if (edge != result->edge
            && !is_library_frame(cycle, cm_cycle_edge(cycle, edge)->tail)
            && keeps_frame(cycle, edge, &exception)) {
            add_other(edge, result);
        }
    }
}

static bool
find_kept(struct cm_cycle *cycle, struct cm_want want, struct cm_link *result)
{
    uint32_t link = 0;

    while ((link = cm_cycle_next(cycle, link, CM_ROLE(CM_EXCEPTION_LINK)))
           != 0) {
        uint32_t exception = cm_cycle_edge(cycle, link)->tail;

        if (cm_cycle_node(cycle, exception)->species == CM_EXCEPTION
            && cm_cycle_held(cycle, exception, CM_ROLES_CONTAINER, want,
                             result)
            && result->owner != exception
            && cm_cycle_reach(cycle, exception, result->owner,
                              ROLES_RAISED | CM_ROLE(CM_LOCAL))
                   != 0
            && cm_cycle_touches(cycle, exception, result->owner, CM_FRAME)) {
            return true;
        }
    }
    return false;
}

static bool
find_users_attribute(struct cm_cycle *cycle, struct cm_link *result)
{
    struct cm_want want = {.through_libraries = true, .users = true};

    return find_kept(cycle, want, result);
}

bool
cm_suspect_exception(struct cm_cycle *cycle, struct cm_suspect *result)
{
    bool local = find_local(cycle, true, false, result);
    struct cm_link link;
    bool attribute = find_users_attribute(cycle, &link);

    if (!local) {
        return !attribute && find_local(cycle, true, true, result);
    }
    add_other_locals(cycle, result);
    if (attribute) {
        add_other(link.edge, result);
    }
    return true;
}

bool
cm_suspect_frame(struct cm_cycle *cycle, struct cm_suspect *result)
{
    if (!find_local(cycle, false, false, result)) {
        return find_local(cycle, false, true, result);
    }
    add_other_locals(cycle, result);
    return true;
}

bool
cm_suspect_kept_exception(struct cm_cycle *cycle, struct cm_suspect *result)
{
    struct cm_link link;

    if (!find_users_attribute(cycle, &link)
        && !find_kept(cycle, (struct cm_want){0}, &link)) {
        return false;
    }
    *result = cm_suspect_of(link.edge, link.owner, link.edge, 0);
    return true;
}
