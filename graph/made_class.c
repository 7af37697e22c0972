/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The statement that makes a class, else the first of its methods.
 * Cost: bounded looks at the members and what they refer to. */

#include "made_private.h"

#include <string.h>

#include "name.h"

/* A class or function of that last name. */
static bool
is_making_of(const struct cm_place_search *self, const struct cm_store *store)
{
    const char *name = cm_place_text(self, store->name);
    const char *dot = strrchr(name, '.');

    return store->kind == CM_STORE_FUNCTION
           && strcmp(dot != NULL ? dot + 1 : name, self->name) == 0;
}

static void
keep_earliest_method(const struct cm_cycle *cycle, uint32_t node,
                     const char *class_name, struct cm_place *place)
{
    struct cm_code_id id = cm_cycle_node(cycle, node)->code;
    const struct cm_code *code = cm_made_code_of(cycle, id);
    const char *name = cm_records_text(cycle->records, code->qualified_name);

    if (cm_cycle_node(cycle, node)->species == CM_FUNCTION
        && strstr(name, class_name) != NULL
        && (place->line == 0 || code->first_line < place->line)) {
        *place = (struct cm_place){.code = id, .line = code->first_line};
    }
}

/* Without the class statement: the first of its methods, which the cycle
 * holds but does not pass through. */
static void
choose_first_method(const struct cm_cycle *cycle, const char *class_name,
                    struct cm_made *result)
{
    struct cm_place *place = &result->places[0];

    for (uint32_t i = 0; i < cycle->size && i < CM_PLACE_MEMBERS; i++) {
        const struct cm_node *node = cm_cycle_node(cycle, cycle->nodes[i]);

        for (uint32_t j = 0; j < node->edge_count && j < CM_PLACE_MEMBERS;
             j++) {
            uint32_t edge = node->first_edge + j;

            keep_earliest_method(cycle, cm_cycle_edge(cycle, edge)->head,
                                 class_name, place);
        }
    }
    result->place_count = place->line != 0;
}

enum cm_status
cm_made_by_class(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect, struct cm_made *result)
{
    const struct cm_node *type = cm_cycle_node(cycle, suspect->owner);
    struct cm_name name = cm_name_of_object(cycle->records, type);
    struct cm_place_search search = {
        .cycle = cycle, .is_wanted = is_making_of, .name = name.text};

    cm_place_look_around(&search, suspect->owner);
    cm_made_choose(&search, result);
    if (result->place_count == 0) {
        choose_first_method(cycle, name.text, result);
    }
    return result->place_count > 0
               ? CM_OK
               : cm_made_explain(
                   result,
                   cm_sentence("no statement that makes class %s in the "
                               "functions that allocated the tensor",
                               name.text));
}
