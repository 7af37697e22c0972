/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The component's edges are indexed by head, so that "who holds this" costs
 * what it finds; forward edges are the heap's own.  Members are numbered by
 * their place in the component, and searches are told apart by a stamp, so
 * that none has to clear its marks.  Init is O(nodes + edges) of the
 * component; a search is O(what it visits). */

#include "cycle.h"

#include <string.h>

#include "name.h"
#include "../detector/alloc.h"

#define MAX_HOLDERS 8u

static bool
has_role(const struct cm_edge *edge, uint32_t roles)
{
    return (CM_ROLE(edge->role) & roles) != 0;
}

uint32_t
cm_cycle_next(const struct cm_cycle *self, uint32_t edge, uint32_t roles)
{
    uint32_t place = 0;

    if (edge != 0) {
        place = cm_cycle_place(self, cm_cycle_edge(self, edge)->tail);
        edge++;
    }
    for (; place < self->size; place++, edge = 0) {
        const struct cm_node *node = cm_cycle_node(self, self->nodes[place]);

        edge = edge != 0 ? edge : node->first_edge;
        for (; edge < node->first_edge + node->edge_count; edge++) {
            const struct cm_edge *record = cm_cycle_edge(self, edge);

            if (has_role(record, roles) && cm_cycle_has(self, record->head)) {
                return edge;
            }
        }
    }
    return 0;
}

/* A counting sort of the edges inside by the place of their head. */
static enum cm_status
index_edges(struct cm_cycle *self)
{
    uint32_t edge;

    for (edge = 0; (edge = cm_cycle_next(self, edge, CM_ROLES_ALL)) != 0;) {
        uint32_t head = cm_cycle_edge(self, edge)->head;

        self->into_first[cm_cycle_place(self, head) + 2]++;
    }
    for (uint32_t i = 1; i < self->size + 2; i++) {
        self->into_first[i] += self->into_first[i - 1];
    }
    self->into = cm_calloc((size_t)self->into_first[self->size + 1] + 1,
                           sizeof *self->into);
    if (self->into == NULL) {
        return CM_NO_MEMORY;
    }
    for (edge = 0; (edge = cm_cycle_next(self, edge, CM_ROLES_ALL)) != 0;) {
        uint32_t head = cm_cycle_edge(self, edge)->head;

        self->into[self->into_first[cm_cycle_place(self, head) + 1]++] = edge;
    }
    return CM_OK;
}

enum cm_status
cm_cycle_init(struct cm_cycle *self, const struct cm_heap *heap,
              const struct cm_records *records,
              const struct cm_components *components, uint32_t component)
{
    enum cm_status status = CM_NO_MEMORY;

    *self = (struct cm_cycle){
        .heap = heap,
        .records = records,
        .components = components,
        .component = component,
        .nodes = cm_components_nodes(components, component),
        .size = cm_components_size(components, component),
        .budget = CM_CYCLE_VISITS,
    };
    self->budget += (int64_t)self->size * CM_CYCLE_VISITS_EACH;
    self->holder = self->nodes[0];
    self->into_first =
        cm_calloc((size_t)self->size + 2, sizeof *self->into_first);
    self->came_by = cm_calloc(self->size, sizeof *self->came_by);
    self->seen = cm_calloc(self->size, sizeof *self->seen);
    self->queue = cm_calloc((size_t)self->size + 1, sizeof *self->queue);
    if (self->into_first != NULL && self->came_by != NULL && self->seen != NULL
        && self->queue != NULL) {
        status = index_edges(self);
    }
    if (status != CM_OK) {
        cm_cycle_release(self);
    }
    return status;
}

void
cm_cycle_release(struct cm_cycle *self)
{
    cm_free(self->into_first);
    cm_free(self->into);
    cm_free(self->came_by);
    cm_free(self->seen);
    cm_free(self->queue);
    *self = (struct cm_cycle){0};
}

/* Whether the search comes to this member for the first time. */
static bool
visit(struct cm_cycle *self, uint32_t node, uint32_t edge)
{
    uint32_t place = cm_cycle_place(self, node);

    self->budget--;
    if (self->seen[place] == self->stamp) {
        return false;
    }
    self->seen[place] = self->stamp;
    self->came_by[place] = edge;
    return true;
}

static bool
is_cut(const struct cm_cycle *self, uint32_t edge)
{
    struct cm_link link, cut;

    for (uint32_t i = 0; i < self->cut_count; i++) {
        if (cm_text_same(cm_cycle_edge(self, edge)->label,
                         cm_cycle_edge(self, self->cuts[i])->label)
            && cm_cycle_link(self, edge, &link)
            && cm_cycle_link(self, self->cuts[i], &cut)
            && cm_cycle_node(self, link.owner)->type.index
                   == cm_cycle_node(self, cut.owner)->type.index) {
            return true;
        }
    }
    return false;
}

/* Visits what `node` refers to; the edge to `goal` once that is met. */
static uint32_t
visit_heads(struct cm_cycle *self, uint32_t node, uint32_t goal,
            uint32_t roles, uint32_t *queued)
{
    const struct cm_node *record = cm_cycle_node(self, node);
    uint32_t passed = (roles & CM_ROLES_LIBRARY) != 0
                              && cm_cycle_is_library_object(self, node)
                          ? CM_ROLES_ALL
                          : roles;

    for (uint32_t i = 0; i < record->edge_count; i++) {
        uint32_t edge = record->first_edge + i;
        uint32_t head = cm_cycle_edge(self, edge)->head;

        if (!has_role(cm_cycle_edge(self, edge), passed)
            || !cm_cycle_has(self, head) || is_cut(self, edge)
            || !visit(self, head, edge)) {
            continue;
        }
        if (head == goal) {
            return edge;
        }
        self->queue[(*queued)++] = head;
    }
    return 0;
}

uint32_t
cm_cycle_reach(struct cm_cycle *self, uint32_t from, uint32_t goal,
               uint32_t roles)
{
    uint32_t next = 0, queued = 0, edge = 0;

    self->stamp++;
    self->queue[queued++] = from;
    if (from != goal) {
        (void)visit(self, from, 0);
    }
    while (next < queued && edge == 0 && self->budget > 0) {
        edge = visit_heads(self, self->queue[next++], goal, roles, &queued);
    }
    return edge;
}

bool
cm_cycle_spread(struct cm_cycle *self, uint32_t from)
{
    (void)cm_cycle_reach(self, from, 0, CM_ROLES_ALL);
    return self->budget > 0;
}

bool
cm_cycle_touches(const struct cm_cycle *self, uint32_t from, uint32_t goal,
                 enum cm_species species)
{
    uint32_t node = goal;

    do {
        if (cm_cycle_node(self, node)->species == species) {
            return true;
        }
        uint32_t edge = self->came_by[cm_cycle_place(self, node)];
        node = cm_cycle_edge(self, edge)->tail;
    } while (node != from);
    return cm_cycle_node(self, from)->species == species;
}

uint32_t
cm_cycle_last(const struct cm_cycle *self, uint32_t from, uint32_t goal,
              uint32_t roles)
{
    uint32_t node = goal;

    do {
        uint32_t edge = self->came_by[cm_cycle_place(self, node)];

        if (has_role(cm_cycle_edge(self, edge), roles)) {
            return edge;
        }
        node = cm_cycle_edge(self, edge)->tail;
    } while (node != from);
    return 0;
}

/* Where a look at who holds a table ends.  The object that a table belongs to
 * is among the first; a dict that very many hold is no one's table. */
static uint32_t
last_holder(const struct cm_cycle *self, uint32_t place)
{
    uint32_t first = self->into_first[place];
    uint32_t end = self->into_first[place + 1];

    return end - first > MAX_HOLDERS ? first + MAX_HOLDERS : end;
}

/* The member whose instance dict this is, 0: none. */
static uint32_t
owner_of_dict(const struct cm_cycle *self, uint32_t dict)
{
    uint32_t place = cm_cycle_place(self, dict);
    uint32_t end = last_holder(self, place);

    for (uint32_t i = self->into_first[place]; i < end; i++) {
        const struct cm_edge *edge = cm_cycle_edge(self, self->into[i]);

        if (edge->role == CM_INSTANCE_DICT) {
            return edge->tail;
        }
    }
    return 0;
}

static bool
has_name(const struct cm_cycle *self, uint32_t edge, const char *const *names)
{
    struct cm_name name = cm_cycle_edge_name(self, edge);

    for (; *names != NULL; names++) {
        if (strcmp(name.text, *names) == 0) {
            return true;
        }
    }
    return false;
}

/* An attribute as the object or its instance dict shows it. */
static bool
is_plain_attribute(const struct cm_cycle *self, uint32_t edge,
                   struct cm_link *result)
{
    const struct cm_edge *record = cm_cycle_edge(self, edge);
    uint32_t owner = 0;

    if (record->role != CM_ATTRIBUTE && record->role != CM_VALUE) {
        return false;
    }
    owner = owner_of_dict(self, record->tail);
    if (owner == 0 && record->role == CM_ATTRIBUTE) {
        owner = record->tail;
    }
    *result = (struct cm_link){edge, owner};
    return owner != 0;
}

/* torch.nn.Module keeps submodules, parameters and buffers in tables of their
 * own: a person writes self.child = ..., and reads self.child. */
bool
cm_cycle_is_table(const struct cm_cycle *self, struct cm_link link)
{
    static const char *const tables[] = {"_modules", "_parameters", "_buffers",
                                         NULL};

    return has_name(self, link.edge, tables);
}

static bool
is_table_entry(const struct cm_cycle *self, uint32_t edge,
               struct cm_link *result)
{
    const struct cm_edge *record = cm_cycle_edge(self, edge);
    uint32_t place = cm_cycle_place(self, record->tail);
    struct cm_link table;

    if (record->role != CM_VALUE) {
        return false;
    }
    for (uint32_t i = self->into_first[place]; i < last_holder(self, place);
         i++) {
        if (is_plain_attribute(self, self->into[i], &table)
            && cm_cycle_is_table(self, table)) {
            *result = (struct cm_link){edge, table.owner};
            return true;
        }
    }
    return false;
}

/* The one table that a tensor keeps in C holds its hooks. */
static bool
is_tensor_table(const struct cm_cycle *self, const struct cm_edge *edge)
{
    return edge->role == CM_REFERENCE
           && cm_cycle_node(self, edge->tail)->species == CM_TENSOR
           && cm_cycle_node(self, edge->head)->species == CM_DICT;
}

bool
cm_cycle_link(const struct cm_cycle *self, uint32_t edge,
              struct cm_link *result)
{
    const struct cm_edge *record = cm_cycle_edge(self, edge);

    if (record->role == CM_HOOK || is_tensor_table(self, record)) {
        *result = (struct cm_link){edge, record->tail};
        return true;
    }
    return is_plain_attribute(self, edge, result)
           || is_table_entry(self, edge, result);
}

bool
cm_cycle_is_part(const struct cm_cycle *self, struct cm_link link)
{
    struct cm_link other;

    return !is_plain_attribute(self, link.edge, &other)
           && is_table_entry(self, link.edge, &other);
}

bool
cm_cycle_is_hook(const struct cm_cycle *self, struct cm_link link)
{
    static const char *const tables[] = {
        "_forward_hooks",
        "_forward_pre_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_pre_hooks_with_kwargs",
        "_backward_hooks",
        "_backward_pre_hooks",
        "_post_accumulate_grad_hooks",
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
        "_optimizer_state_dict_pre_hooks",
        "_optimizer_state_dict_post_hooks",
        "_optimizer_load_state_dict_pre_hooks",
        "_optimizer_load_state_dict_post_hooks",
        NULL,
    };

    const struct cm_edge *edge = cm_cycle_edge(self, link.edge);

    return edge->role == CM_HOOK || is_tensor_table(self, edge)
           || has_name(self, link.edge, tables);
}

static bool
is_wanted(const struct cm_cycle *self, struct cm_link link,
          struct cm_want want)
{
    return (want.owner == 0 || want.owner == link.owner)
           && (!want.hook || cm_cycle_is_hook(self, link))
           && (!want.users || !cm_cycle_is_library_object(self, link.owner));
}

/* Visits what refers to `node`; true once a wanted link is met. */
static bool
visit_tails(struct cm_cycle *self, uint32_t node, uint32_t roles,
            struct cm_want want, uint32_t *queued, struct cm_link *result)
{
    uint32_t place = cm_cycle_place(self, node);

    for (uint32_t i = self->into_first[place]; i < self->into_first[place + 1];
         i++) {
        uint32_t edge = self->into[i];
        const struct cm_edge *record = cm_cycle_edge(self, edge);

        if (cm_cycle_link(self, edge, result)) {
            if (is_wanted(self, *result, want)) {
                return true;
            }
            if (want.through_libraries
                && cm_cycle_is_library_object(self, result->owner)
                && visit(self, result->owner, edge)) {
                self->queue[(*queued)++] = result->owner;
            }
        }
        else if ((has_role(record, roles)
                  || (want.through_libraries
                      && cm_cycle_is_library_object(self, record->tail)))
                 && visit(self, record->tail, edge)) {
            self->queue[(*queued)++] = record->tail;
        }
    }
    return false;
}

bool
cm_cycle_held(struct cm_cycle *self, uint32_t node, uint32_t roles,
              struct cm_want want, struct cm_link *result)
{
    uint32_t next = 0, queued = 0;

    self->stamp++;
    (void)visit(self, node, 0);
    self->queue[queued++] = node;
    while (next < queued && self->budget > 0) {
        if (visit_tails(self, self->queue[next++], roles, want, &queued,
                        result)) {
            return true;
        }
    }
    return false;
}

uint32_t
cm_cycle_function(const struct cm_cycle *self, struct cm_link link,
                  uint32_t node)
{
    uint32_t at = cm_cycle_edge(self, link.edge)->head;
    uint32_t function = 0;

    while (at != node) {
        if (cm_cycle_node(self, at)->species == CM_FUNCTION) {
            function = at;
        }
        uint32_t edge = self->came_by[cm_cycle_place(self, at)];
        at = cm_cycle_edge(self, edge)->head;
    }
    if (cm_cycle_node(self, node)->species == CM_FUNCTION) {
        function = node;
    }
    return function;
}
