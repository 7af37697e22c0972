/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "turns.h"

#include "../../graph/bound.h"
#include "../tables/phrase.h"
#include "renewed.h"
#include "trail.h"

/* Each reads all code of the program's. */
enum { MOST_ASKED = 32 };

typedef bool fits(const struct cm_records *records, struct cm_code_id code,
                  struct cm_text_id name);

/* A variable of the frame fits, and what it refers to is this. */
static bool
is_of_variable(const struct cm_turns *self, const struct cm_root *root,
               PyObject *referent, fits *variable_fits)
{
    const struct cm_objects *objects = self->query->objects;
    PyObject *name;
    Py_ssize_t at = 0;
    while ((name = cm_root_variable(root, referent, &at)) != NULL) {
        struct cm_phrase phrase;
        phrase.length = 0;
        cm_phrase_add_str(&phrase, name, CM_PHRASE_BYTES);
        if (variable_fits(objects->records, root->code,
                          cm_phrase_intern(&phrase, objects->texts))) {
            return true;
        }
    }
    return false;
}

static bool
is_carried_by(const struct cm_turns *self, const struct cm_root *root,
              PyObject *referent)
{
    return is_of_variable(self, root, referent, cm_bound_is_carried);
}

static const struct cm_root *
root_of(const struct cm_turns *self, uint32_t parent)
{
    const struct cm_roots *roots = self->piles->reach->roots;
    return &roots->items[parent & ~CM_FROM_ROOT];
}

/* By who holds it by a name. */
static bool
is_set_anew_in(const struct cm_turns *self, uint32_t target, uint32_t parent)
{
    const struct cm_holders_query *query = self->query;
    struct cm_site_id site = query->sites != NULL
                                 ? query->sites[query->groups[target]]
                                 : (struct cm_site_id){0};
    return cm_renewed_is(self->program, parent, query->targets[target], site);
}

/* Of what grows in number each is held by another one: that is not asked
 * for. */
static bool
is_renewed_in(const struct cm_turns *self, uint32_t target, uint32_t parent)
{
    const struct cm_holders_query *query = self->query;
    const char *category = query->categories != NULL
                               ? query->categories[query->groups[target]]
                               : NULL;
    return category != NULL && strcmp(category, CM_HOLDING_LARGER) == 0
           && is_set_anew_in(self, target, parent);
}

/* A variable that each turn sets before it reads it, or what is computed with
 * just now. */
static bool
is_of_frame(const struct cm_turns *self, uint32_t target, uint32_t parent)
{
    const struct cm_root *root = root_of(self, parent);
    return root->kind == CM_ROOT_TEMPORARY
           || (root->kind == CM_ROOT_FRAME
               && !is_carried_by(self, root, self->query->targets[target]));
}

/* Nothing else has it. */
static bool
is_of_one_turn(const struct cm_turns *self, uint32_t target)
{
    uint32_t first = cm_piles_from(self->piles, target);
    uint32_t last = cm_piles_to(self->piles, target);
    bool single = first < last;
    for (uint32_t i = first; single && i < last; i++) {
        uint32_t parent = cm_piles_way(self->piles, i)->parent;
        single = parent >= CM_FROM_ROOT ? is_of_frame(self, target, parent)
                                        : is_renewed_in(self, target, parent);
    }
    return single;
}

bool
cm_turns_renew(const struct cm_turns *self, uint32_t group)
{
    bool any = false;
    for (uint32_t t = 0; t < self->query->target_count; t++) {
        if (self->query->groups[t] == group) {
            any = true;
            if (!is_of_one_turn(self, t)) {
                return false;
            }
        }
    }
    return any;
}

/* What the way begins at, and the object there; *node: its, 0: the target's. */
static const struct cm_root *
begin_of(const struct cm_turns *self, const struct cm_reach_hit *way,
         uint32_t *node, PyObject **referent)
{
    const struct cm_reach *reach = self->piles->reach;
    uint32_t parent = way->parent;
    for (*node = 0; parent < CM_FROM_ROOT; parent = reach->parents[parent]) {
        *node = parent;
    }
    *referent =
        *node != 0 ? reach->objects[*node] : self->query->targets[way->target];
    return root_of(self, parent);
}

/* The way begins at such a variable. */
static bool
is_carried_way(struct cm_turns *self, const struct cm_reach_hit *way,
               uint32_t *node)
{
    PyObject *referent;
    const struct cm_root *root = begin_of(self, way, node, &referent);
    return root->kind == CM_ROOT_FRAME && is_carried_by(self, root, referent);
}

bool
cm_turns_renew_way(const struct cm_turns *self, const struct cm_reach_hit *way)
{
    uint32_t node;
    PyObject *referent;
    const struct cm_root *root = begin_of(self, way, &node, &referent);
    return root->kind == CM_ROOT_FRAME
           && is_of_variable(self, root, referent, cm_bound_is_renewed)
           && !is_carried_by(self, root, referent);
}

typedef bool leads_on(struct cm_turns *self, const struct cm_reach_hit *way,
                      uint32_t *node);

/* By the user's own, which is there before the turn and after it, and by an
 * object that has the target: `self.h = self.cell(x, self.h)`. */
static bool
is_lasting_way(struct cm_turns *self, const struct cm_reach_hit *way,
               uint32_t *node)
{
    PyObject *referent;
    const struct cm_root *root = begin_of(self, way, node, &referent);
    if (*node == 0 || root->rank != CM_RANK_USER) {
        return false;
    }
    *node = way->parent;
    return !cm_turns_renew_way(self, way);
}

/* Which is not set anew in each turn, as `self.loss = loss` is. */
static bool
is_kept_way(struct cm_turns *self, const struct cm_reach_hit *way,
            uint32_t *node)
{
    return is_lasting_way(self, way, node) && (*self->asked)++ < MOST_ASKED
           && !is_set_anew_in(self, way->target, way->parent);
}

static bool
is_full_window(const struct cm_turns *self, uint32_t node)
{
    return cm_trail_is_full(self->piles->reach->objects[node]);
}

/* And not in a window, which may have what is made of it too. */
static bool
is_kept_elsewhere(struct cm_turns *self, const struct cm_reach_hit *way,
                  uint32_t *node)
{
    return way->parent < CM_FROM_ROOT && !is_full_window(self, way->parent)
           && is_kept_way(self, way, node);
}

static const struct cm_reach_hit *
find_way(struct cm_turns *self, uint32_t group, leads_on *fits_way,
         uint32_t *node)
{
    uint32_t first;
    for (uint32_t t = 0; t < self->query->target_count; t++) {
        for (uint32_t i = cm_piles_from(self->piles, t);
             self->query->groups[t] == group
             && i < cm_piles_to(self->piles, t);
             i++) {
            if (fits_way(self, cm_piles_way(self->piles, i), &first)) {
                *node = first;
                return cm_piles_way(self->piles, i);
            }
        }
    }
    return NULL;
}

const struct cm_reach_hit *
cm_turns_carried(struct cm_turns *self, uint32_t group,
                 const struct cm_reach_hit *way, uint32_t *node)
{
    uint32_t first;
    if (is_carried_way(self, way, &first)) {
        return way;
    }
    const struct cm_reach_hit *found =
        find_way(self, group, is_carried_way, node);
    if (found == NULL && *node == 0 && cm_turns_renew_way(self, way)) {
        found = find_way(self, group, is_kept_way, node);
        found = found != NULL ? found
                              : find_way(self, group, is_lasting_way, node);
    }
    return found != NULL ? found : way;
}

const struct cm_reach_hit *
cm_turns_kept(struct cm_turns *self, uint32_t group,
              const struct cm_reach_hit *way)
{
    uint32_t node;
    const struct cm_reach_hit *found = NULL;
    if (is_full_window(self, way->parent)
        || is_set_anew_in(self, way->target, way->parent)) {
        found = find_way(self, group, is_kept_elsewhere, &node);
    }
    return found != NULL ? found : way;
}
