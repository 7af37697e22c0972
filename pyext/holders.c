/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* For each group every way that the walk found to its targets is climbed, and
 * each object on it counts the targets below.  The place is the object met
 * last that has (nearly) all of them: the list, not the module that holds the
 * list.  In a chain of like objects that is one somewhere in its middle; then
 * the chain's head is the place.  Climbing all ways is bounded. */

#include "holders.h"

#include "../detector/alloc.h"
#include "retained.h"
#include "tags.h"
#include "trail.h"

enum {
    WAYS = 4, /* of each target that are counted */
    MOST_CLIMBS = 50000000,
    CHAIN_LINKS = 8, /* of like objects, that make a chain */
    CHAIN_BETWEEN = 2,
    MOST_SECONDS = 64,
    MOST_CODES = 512,
};

const struct cm_reach_bounds cm_holders_bounds = {.max_nodes = 20000000,
                                                  .max_edges = 80000000,
                                                  .max_time_ns =
                                                      UINT64_C(5000000000)};

static void
holder_release(struct cm_holder *self)
{
    cm_free(self->steps);
    cm_free(self->advice);
}

void
cm_holders_release(struct cm_holders *self)
{
    for (uint32_t i = 0; i < self->count; i++) {
        holder_release(&self->items[i]);
    }
    cm_free(self->items);
    *self = (struct cm_holders){0};
}

/* Work space for all groups. */
struct search {
    const struct cm_holders_query *query;
    struct cm_roots roots;
    struct cm_reach reach;
    struct cm_retained retained;
    uint32_t *below; /* owned; [nodes + 1] targets of the group below it */
    uint32_t *stamp; /* owned; [nodes + 1] 1 + the target counted last */
    uint32_t *order; /* owned: hits, by target */
    uint32_t *first; /* owned; [targets + 1] where its hits begin */
    uint64_t climbs;
};

static void
search_release(struct search *self)
{
    cm_retained_release(&self->retained);
    cm_reach_release(&self->reach);
    cm_roots_release(&self->roots);
    cm_free(self->below);
    cm_free(self->stamp);
    cm_free(self->order);
    cm_free(self->first);
}

/* ---- counting */

static enum cm_status
sort_hits(struct search *self)
{
    const struct cm_reach *reach = &self->reach;
    size_t targets = self->query->target_count;
    size_t nodes = (size_t)reach->node_count + 1;
    self->below = cm_calloc(nodes, sizeof(*self->below));
    self->stamp = cm_calloc(nodes, sizeof(*self->stamp));
    self->order = cm_calloc(reach->hit_count + 1, sizeof(*self->order));
    self->first = cm_calloc(targets + 2, sizeof(*self->first));
    if (self->below == NULL || self->stamp == NULL || self->order == NULL
        || self->first == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < reach->hit_count; i++) {
        self->first[reach->hits[i].target + 1]++;
    }
    for (size_t i = 1; i <= targets; i++) {
        self->first[i] += self->first[i - 1];
    }
    for (size_t i = reach->hit_count; i-- > 0;) {
        self->order[--self->first[reach->hits[i].target + 1]] = (uint32_t)i;
    }
    return CM_OK;
}

/* After sort_hits() those of target t begin at first[t + 1]. */
static uint32_t
hits_from(const struct search *self, uint32_t target)
{
    return self->first[target + 1];
}

static uint32_t
hits_to(const struct search *self, uint32_t target)
{
    return target + 1 < self->query->target_count
               ? self->first[target + 2]
               : (uint32_t)self->reach.hit_count;
}

static const struct cm_reach_hit *
hit_at(const struct search *self, uint32_t i)
{
    return &self->reach.hits[self->order[i]];
}

/* What is above a node, on the way that counts: an object that a variable
 * refers to may lie in a container as well. */
static uint32_t
above(const struct search *self, uint32_t node)
{
    uint32_t second = self->reach.seconds[node];
    return second != 0 ? second : self->reach.parents[node];
}

/* Counts the target at all objects above it, each once. */
static void
climb(struct search *self, uint32_t target)
{
    for (uint32_t i = hits_from(self, target); i < hits_to(self, target);
         i++) {
        uint32_t node = hit_at(self, i)->parent;
        while (node < CM_FROM_ROOT && self->stamp[node] != target + 1
               && self->climbs < MOST_CLIMBS) {
            self->stamp[node] = target + 1;
            self->below[node]++;
            self->climbs++;
            node = above(self, node);
        }
    }
}

/* What is above an object that was not counted was not counted either. */
static void
take_back(struct search *self, uint32_t target)
{
    for (uint32_t i = hits_from(self, target); i < hits_to(self, target);
         i++) {
        uint32_t node = hit_at(self, i)->parent;
        while (node < CM_FROM_ROOT && self->below[node] != 0) {
            self->below[node] = 0;
            self->stamp[node] = 0;
            node = above(self, node);
        }
    }
}

/* ---- the place */

/* One may be held by a variable only as yet; of many, one in eight. */
static bool
has_most(uint32_t below, uint32_t met)
{
    uint32_t fewer = met >= 3 ? (met / 8 > 1 ? met / 8 : 1) : 0;
    return below + fewer >= met;
}

struct place {
    uint32_t node; /* 0: none */
    uint32_t distance;
};

/* Seconds can lead in circles. */
static void
climb_to_most(const struct search *self, uint32_t node, uint32_t met,
              struct place *best)
{
    uint32_t distance = 0, seconds = 0;
    while (node < CM_FROM_ROOT && seconds < MOST_SECONDS
           && !has_most(self->below[node], met)) {
        seconds += self->reach.seconds[node] != 0;
        distance++;
        node = above(self, node);
    }
    if (node < CM_FROM_ROOT && has_most(self->below[node], met)
        && (best->node == 0 || distance < best->distance)) {
        *best = (struct place){node, distance};
    }
}

/* The nearest object that has most of them, by ways of the first rank that has
 * any: what a library holds too is of no interest. */
static uint32_t
nearest_with_most(const struct search *self, uint32_t group, uint32_t met)
{
    const struct cm_holders_query *query = self->query;
    struct place best = {0};
    for (uint8_t rank = 0; rank < CM_RANKS && best.node == 0; rank++) {
        for (uint32_t t = 0; t < query->target_count; t++) {
            for (uint32_t i = hits_from(self, t);
                 query->groups[t] == group && i < hits_to(self, t); i++) {
                if (hit_at(self, i)->rank == rank) {
                    climb_to_most(self, hit_at(self, i)->parent, met, &best);
                }
            }
        }
    }
    return best.node;
}

/* The like object above it, with little in between; 0: none. */
static uint32_t
like_above(const struct cm_reach *reach, uint32_t node)
{
    uint32_t above = reach->parents[node];
    for (int between = 0; between <= CHAIN_BETWEEN && above < CM_FROM_ROOT;
         between++) {
        if (Py_TYPE(reach->objects[above]) == Py_TYPE(reach->objects[node])) {
            return above;
        }
        above = reach->parents[above];
    }
    return 0;
}

/* The head of the chain that `node` is in, and how long it is from there. */
static uint32_t
head_of_chain(const struct cm_reach *reach, uint32_t node, uint32_t *links)
{
    *links = 1;
    for (uint32_t next = like_above(reach, node); next != 0;
         next = like_above(reach, next)) {
        node = next;
        ++*links;
    }
    return node;
}

/* The parent of a target that was met last: in a chain, the farthest. */
static uint32_t
last_parent(const struct search *self, uint32_t group)
{
    const struct cm_holders_query *query = self->query;
    uint32_t last = 0;
    for (uint32_t t = 0; t < query->target_count; t++) {
        uint32_t node = self->reach.target_nodes[t];
        uint32_t parent = query->groups[t] == group && node != 0
                              ? self->reach.parents[node]
                              : 0;
        last = parent < CM_FROM_ROOT && parent > last ? parent : last;
    }
    return last;
}

/* Where the place is a link of a chain, the chain's head. */
static uint32_t
chain_of(const struct search *self, uint32_t group, uint32_t place,
         uint32_t *links)
{
    const struct cm_reach *reach = &self->reach;
    uint32_t node = last_parent(self, group), length = 0;
    for (int i = 0;
         i <= CHAIN_BETWEEN && node != 0 && node < CM_FROM_ROOT
         && Py_TYPE(reach->objects[node]) != Py_TYPE(reach->objects[place]);
         i++) {
        node = reach->parents[node];
    }
    if (node == 0 || node >= CM_FROM_ROOT) {
        return place;
    }
    uint32_t head = head_of_chain(reach, node, &length);
    if (length < CHAIN_LINKS || head > place || self->below[head] == 0) {
        return place;
    }
    *links = length;
    return head;
}

static bool
is_below(const struct cm_reach *reach, uint32_t node, uint32_t place)
{
    while (node < CM_FROM_ROOT && node > place) {
        node = reach->parents[node];
    }
    return node == place;
}

/* A way to one of the group's targets that passes the place: of the object
 * met last, which is as a rule the newest. */
static const struct cm_reach_hit *
way_through(const struct search *self, uint32_t group, uint32_t place)
{
    const struct cm_holders_query *query = self->query;
    const struct cm_reach_hit *best = NULL;
    for (uint32_t t = 0; t < query->target_count; t++) {
        for (uint32_t i = hits_from(self, t);
             query->groups[t] == group && i < hits_to(self, t); i++) {
            const struct cm_reach_hit *hit = hit_at(self, i);
            if (place == 0 || is_below(&self->reach, hit->parent, place)) {
                best = hit;
                if (place == 0) {
                    return best;
                }
                break;
            }
        }
    }
    return best;
}

/* ---- what is told of it */

static enum cm_status
copy_steps(struct cm_holder *holder, const struct cm_trail *trail)
{
    holder->steps = cm_calloc(trail->count, sizeof(*holder->steps));
    if (holder->steps == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < trail->count; i++) {
        const struct cm_step *from = &trail->steps[i];
        holder->steps[i] = (struct cm_holding_step){
            .annotation = from->annotation,
            .edge = from->edge,
            .type = from->type,
            .code = from->code,
            .species = from->species,
            .role = from->role,
            .counted = from->counted,
            .items = from->items,
        };
    }
    holder->step_count = trail->count;
    return CM_OK;
}

/* The step of the place, or of what was folded into the one before.  What
 * holds a single object by a name is told as that name. */
static size_t
step_of(const struct cm_trail *trail, uint32_t place)
{
    size_t at = 0;
    for (size_t i = 1; i < trail->count; i++) {
        uint32_t node = trail->steps[i].node;
        at = node != 0 && node <= place ? i : at;
    }
    if (at + 2 >= trail->count && !trail->steps[at].counted) {
        at = trail->count - 1;
    }
    return at;
}

/* ---- where it is filled */

struct codes {
    struct cm_code_id ids[MOST_CODES];
    size_t count;
};

static void
add_code(struct codes *self, struct cm_code_id code)
{
    if (code.index != 0 && self->count < MOST_CODES) {
        self->ids[self->count++] = code;
    }
}

static void
add_methods(struct codes *self, const struct cm_records *records,
            struct cm_type_id type)
{
    const struct cm_type *record = cm_records_type(records, type);
    for (uint32_t i = 0; i < record->method_count; i++) {
        add_code(self, record->methods[i]);
    }
}

static void
add_site(struct codes *self, const struct cm_records *records,
         struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(records, id);
    for (uint32_t i = 0; i < site->frame_count; i++) {
        if (!cm_records_code(records, site->frames[i].code)->library) {
            add_code(self, site->frames[i].code);
        }
    }
}

static void
add_functions(struct codes *self, struct cm_objects *objects, PyObject *names)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (names != NULL && PyDict_Next(names, &position, &key, &value)) {
        if (PyFunction_Check(value)
            && PyCode_Check(((PyFunctionObject *)value)->func_code)) {
            add_code(
                self,
                cm_objects_code(
                    objects,
                    (PyCodeObject *)((PyFunctionObject *)value)->func_code));
        }
    }
}

/* The methods of its owner, or of the class that it is an attribute of; the
 * function whose variable leads there (or is it: then first); the stack that
 * made the objects; the functions of the module. */
static void
find_codes(const struct search *self, const struct cm_trail *trail, size_t at,
           struct cm_site_id site, PyObject *target, struct codes *codes)
{
    const struct cm_holders_query *query = self->query;
    struct cm_records *records = query->objects->records;
    const struct cm_tag *tag = cm_tags_find(target);
    if (at == 1) {
        add_code(codes, trail->root->code);
    }
    for (size_t i = at; i-- > 1;) {
        PyObject *owner = trail->steps[i].object;
        if (owner != NULL && PyType_Check(owner)) {
            add_methods(
                codes, records,
                cm_objects_type(query->objects, (PyTypeObject *)owner));
        }
        else {
            add_methods(codes, records, trail->steps[i].type);
        }
        add_code(codes, trail->steps[i].code);
    }
    add_code(codes, trail->root->code);
    add_site(codes, records, site);
    if (tag != NULL) {
        add_site(codes, records, tag->site);
    }
    if (trail->root->kind == CM_ROOT_MODULE) {
        add_functions(codes, query->objects,
                      PyModule_GetDict(trail->root->object));
    }
}

/* A variable of a function that one of the group goes by. */
static struct cm_text_id
kept_variable(const struct search *self, uint32_t group)
{
    const struct cm_holders_query *query = self->query;
    for (uint32_t t = 0; t < query->target_count; t++) {
        for (uint32_t i = hits_from(self, t);
             query->groups[t] == group && i < hits_to(self, t); i++) {
            uint32_t parent = hit_at(self, i)->parent;
            enum cm_role role = CM_REFERENCE;
            if (parent < CM_FROM_ROOT) {
                continue;
            }
            struct cm_text_id edge = cm_root_edge(
                &self->roots, &self->roots.items[parent & ~CM_FROM_ROOT],
                query->targets[t], &role);
            if (role == CM_LOCAL) {
                return edge;
            }
        }
    }
    return (struct cm_text_id){0};
}

static enum cm_status
advise(const struct search *self, uint32_t group, const struct cm_trail *trail,
       PyObject *target, struct cm_holder *holder)
{
    const struct cm_holders_query *query = self->query;
    struct cm_texts *texts = query->objects->texts;
    struct cm_text_id kept = kept_variable(self, group);
    const char *name = cm_texts_get(texts, kept);
    struct codes codes = {.count = 0};
    struct cm_holding_advice advice;
    struct cm_holding holding = {
        .records = query->objects->records,
        .steps = holder->steps,
        .count = holder->step_count,
        .at = holder->at,
        .through = holder->through,
        .targets = holder->targets,
        .chain = holder->chain,
        .category =
            query->categories != NULL ? query->categories[group] : NULL,
        .autograd_depth =
            query->autograd_depths != NULL ? query->autograd_depths[group] : 0,
        .kept = kept.index != 0 ? name + strlen("local ") : NULL,
    };
    if (trail != NULL) {
        find_codes(self, trail, holder->at,
                   query->sites != NULL ? query->sites[group]
                                        : (struct cm_site_id){0},
                   target, &codes);
        holder->place_count =
            cm_holding_made(&holding, codes.ids, codes.count, holder->places);
    }
    enum cm_status status = cm_holding_advise(&holding, &advice);
    if (status == CM_OK) {
        holder->rule = advice.rule;
        holder->advice = advice.text; /* taken */
    }
    return status;
}

/* A storage of several tensors is looked at once. */
static void
add_shared(const struct search *self, uint32_t group, uint32_t place,
           bool *seen, struct cm_holder *holder)
{
    const struct cm_holders_query *query = self->query;
    const struct cm_retained *retained = &self->retained;
    for (uint32_t t = 0; t < query->target_count; t++) {
        uint32_t node = self->reach.target_nodes[t];
        if (query->groups[t] != group || node == 0) {
            continue;
        }
        struct cm_storage_id storage = cm_retained_storage(retained, node);
        if (storage.index != 0 && !seen[storage.index]) {
            seen[storage.index] = true;
            holder->shared_bytes +=
                cm_retained_goes(retained, place, storage)
                    ? 0
                    : retained->heap.storages[storage.index].bytes;
        }
    }
}

static enum cm_status
weigh(const struct search *self, uint32_t group, uint32_t place,
      struct cm_holder *holder)
{
    if (!self->retained.known || place == 0) {
        return CM_OK;
    }
    bool *seen =
        cm_calloc(self->retained.heap.storage_count + 1, sizeof(*seen));
    if (seen == NULL) {
        return CM_NO_MEMORY;
    }
    holder->retained_known = true;
    holder->retained_bytes = cm_retained_bytes(&self->retained, place);
    add_shared(self, group, place, seen, holder);
    cm_free(seen);
    return CM_OK;
}

static enum cm_status
tell(struct search *self, uint32_t group, uint32_t place,
     const struct cm_reach_hit *way, struct cm_holder *holder)
{
    struct cm_trail trail = {0};
    PyObject *target = self->query->targets[way->target];
    enum cm_status status =
        cm_trail_find(&trail, &self->reach, way->parent, target);
    if (status == CM_OK) {
        status = copy_steps(holder, &trail);
    }
    if (status == CM_OK) {
        holder->at = step_of(&trail, place);
        status = advise(self, group, &trail, target, holder);
    }
    if (status == CM_OK) {
        uint32_t node =
            place != 0 ? place : self->reach.target_nodes[way->target];
        status = weigh(self, group, node, holder);
    }
    cm_trail_release(&trail);
    return status;
}

static uint32_t
place_of(struct search *self, uint32_t group, struct cm_holder *holder)
{
    const struct cm_holders_query *query = self->query;
    uint32_t place;
    for (uint32_t t = 0; t < query->target_count; t++) {
        if (query->groups[t] == group) {
            holder->targets++;
            holder->unreached += self->reach.target_nodes[t] == 0;
            climb(self, t);
        }
    }
    uint32_t met = holder->targets - holder->unreached;
    place = nearest_with_most(self, group, met);
    if (place != 0) {
        place = chain_of(self, group, place, &holder->chain);
    }
    holder->through = place != 0 ? self->below[place] : met;
    for (uint32_t t = 0; t < query->target_count; t++) {
        if (query->groups[t] == group) {
            take_back(self, t);
        }
    }
    return place;
}

static enum cm_status
find_holder(struct search *self, uint32_t group, struct cm_holder *holder)
{
    uint32_t place = place_of(self, group, holder);
    const struct cm_reach_hit *way = way_through(self, group, place);
    if (way == NULL) {
        return advise(self, group, NULL, NULL, holder);
    }
    return tell(self, group, place, way, holder);
}

static enum cm_status
look(struct search *self, struct cm_holders *result)
{
    const struct cm_holders_query *query = self->query;
    enum cm_status status = cm_roots_find(&self->roots, query->objects);
    if (status != CM_OK) {
        return status;
    }
    self->reach = (struct cm_reach){.roots = &self->roots,
                                    .devices = query->devices,
                                    .more = query->more,
                                    .bounds = query->bounds,
                                    .targets = query->targets,
                                    .target_count = query->target_count,
                                    .hidden = query->hidden,
                                    .hidden_count = query->hidden_count,
                                    .ways = WAYS};
    status = cm_reach_run(&self->reach);
    if (status == CM_OK) {
        result->nodes = self->reach.node_count - self->reach.nodes_left;
        result->nodes_left = self->reach.nodes_left;
        result->cut = self->reach.cut;
        status = sort_hits(self);
    }
    if (status == CM_OK) {
        status = cm_retained_find(&self->retained, &self->reach,
                                  query->objects->records);
    }
    return status;
}

enum cm_status
cm_holders_find(struct cm_holders *self, const struct cm_holders_query *query)
{
    struct search search = {.query = query};
    *self = (struct cm_holders){0};
    self->items =
        cm_calloc((size_t)query->group_count + 1, sizeof(*self->items));
    enum cm_status status = self->items == NULL ? CM_NO_MEMORY : CM_OK;
    if (status == CM_OK) {
        self->count = query->group_count;
        status = look(&search, self);
    }
    for (uint32_t i = 0; i < self->count && status == CM_OK; i++) {
        status = find_holder(&search, i, &self->items[i]);
    }
    search_release(&search);
    if (status != CM_OK) {
        cm_holders_release(self);
    }
    return status;
}
