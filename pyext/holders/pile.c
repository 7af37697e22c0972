/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Every way that the walk found to the targets of a group is climbed, and each
 * object on it counts the targets below it.  The place is the nearest object
 * that has (nearly) all of them: the list, not the module that holds the list;
 * where several lists have them, the largest.
 * In a chain of like objects that is one somewhere in its middle; then the
 * chain's head is the place.  Climbing is bounded in all; what it does not
 * reach counts nothing, and the place is then lower than it might be. */

#include "pile.h"

#include "../../detector/alloc.h"
#include "../tables/phrase.h" // cm_str_is()
#include "trail.h"            // cm_item_count()

enum {
    MOST_CLIMBS = 50000000,
    MOST_SECONDS = 64,
    CHAIN_LINKS = 8, /* of like objects, that make a chain */
    CHAIN_BETWEEN = 2,
    OPTIMIZER_DEPTH = 5, /* of a parameter in it */
    FEWEST = 3,          /* in a container, that it counts as one that grows */
};

void
cm_piles_release(struct cm_piles *self)
{
    cm_free(self->below);
    cm_free(self->stamp);
    cm_free(self->order);
    cm_free(self->first);
    *self = (struct cm_piles){0};
}

/* Hits by target: those of target t begin at first[t + 1] in the end. */
static void
sort_hits(struct cm_piles *self)
{
    const struct cm_reach *reach = self->reach;
    for (size_t i = 0; i < reach->hit_count; i++) {
        self->first[reach->hits[i].target + 1]++;
    }
    for (size_t i = 1; i <= reach->target_count; i++) {
        self->first[i] += self->first[i - 1];
    }
    for (size_t i = reach->hit_count; i-- > 0;) {
        self->order[--self->first[reach->hits[i].target + 1]] = (uint32_t)i;
    }
}

enum cm_status
cm_piles_init(struct cm_piles *self, const struct cm_reach *reach,
              const uint32_t *groups)
{
    size_t nodes = (size_t)reach->node_count + 1;
    *self = (struct cm_piles){.reach = reach, .groups = groups};
    self->below = cm_calloc(nodes, sizeof(*self->below));
    self->stamp = cm_calloc(nodes, sizeof(*self->stamp));
    self->order = cm_calloc(reach->hit_count + 1, sizeof(*self->order));
    self->first =
        cm_calloc((size_t)reach->target_count + 2, sizeof(*self->first));
    if (self->below == NULL || self->stamp == NULL || self->order == NULL
        || self->first == NULL) {
        cm_piles_release(self);
        return CM_NO_MEMORY;
    }
    sort_hits(self);
    return CM_OK;
}

/* ---- counting */

/* What is above a node, on the way that counts: an object that a variable
 * refers to may lie in a container as well. */
static uint32_t
above(const struct cm_piles *self, uint32_t node)
{
    uint32_t second = cm_reach_second(self->reach, node);
    return second != 0 ? second : self->reach->parents[node];
}

/* Counts the target at all objects above it, each once. */
static void
climb(struct cm_piles *self, uint32_t target)
{
    for (uint32_t i = cm_piles_from(self, target);
         i < cm_piles_to(self, target); i++) {
        uint32_t node = cm_piles_way(self, i)->parent;
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
take_back(struct cm_piles *self, uint32_t target)
{
    for (uint32_t i = cm_piles_from(self, target);
         i < cm_piles_to(self, target); i++) {
        uint32_t node = cm_piles_way(self, i)->parent;
        while (node < CM_FROM_ROOT && self->below[node] != 0) {
            self->below[node] = 0;
            self->stamp[node] = 0;
            node = above(self, node);
        }
    }
}

/* ---- the place */

/* The newest may be held by a variable only as yet, and be two: a layer has a
 * weight and a bias.  Of many, one in eight. */
static bool
has_most(uint32_t below, uint32_t met)
{
    uint32_t newest = met / 3 < 2 ? met / 3 : 2;
    uint32_t fewer = met / 8 > newest ? met / 8 : newest;
    return below + fewer >= met;
}

static bool
is_optimizer(const PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    while (type != NULL && strcmp(type->tp_name, "Optimizer") != 0) {
        type = type->tp_base;
    }
    PyObject *module =
        type != NULL ? cm_dict_find(type->tp_dict, "__module__") : NULL;
    return module != NULL && cm_str_is(module, "torch.optim.optimizer");
}

/* An optimizer has all parameters that it was ever given. */
static bool
is_in_optimizer(const struct cm_reach *reach, uint32_t node)
{
    for (int i = 0; i < OPTIMIZER_DEPTH && node < CM_FROM_ROOT; i++) {
        if (is_optimizer(reach->objects[node])) {
            return true;
        }
        node = reach->parents[node];
    }
    return false;
}

static bool
may_be_place(const struct cm_piles *self, uint32_t node, uint32_t met)
{
    return has_most(self->below[node], met)
           && !(self->outside && is_in_optimizer(self->reach, node));
}

struct place {
    uint32_t node; /* 0: none */
    uint32_t distance;
};

static bool
is_below(struct cm_piles *self, uint32_t node, uint32_t place)
{
    while (node < CM_FROM_ROOT && node > place && self->climbs < MOST_CLIMBS) {
        node = self->reach->parents[node];
        self->climbs++;
    }
    return node == place;
}

bool
cm_piles_have_two_ways(struct cm_piles *self, uint32_t group, uint32_t node)
{
    uint32_t ways = 0;
    for (uint32_t t = 0; ways < 2 && t < self->reach->target_count; t++) {
        ways = 0;
        for (uint32_t i = cm_piles_from(self, t);
             self->groups[t] == group && i < cm_piles_to(self, t); i++) {
            ways += is_below(self, cm_piles_way(self, i)->parent, node);
        }
    }
    return ways > 1;
}

/* Of a module and the list in it the list, also where the newest target, which
 * an attribute of the module has as yet, is as near to the module. */
static bool
is_nearer(struct cm_piles *self, struct place one, struct place best)
{
    if (best.node == 0 || one.node == best.node) {
        return best.node == 0 || one.distance < best.distance;
    }
    if (is_below(self, best.node, one.node)) {
        return false;
    }
    return is_below(self, one.node, best.node) || one.distance < best.distance;
}

/* Seconds can lead in circles. */
static void
climb_to_most(struct cm_piles *self, uint32_t node, uint32_t met,
              struct place *best)
{
    uint32_t distance = 0, seconds = 0;
    while (node < CM_FROM_ROOT && seconds < MOST_SECONDS
           && self->climbs++ < MOST_CLIMBS && !may_be_place(self, node, met)) {
        seconds += cm_reach_second(self->reach, node) != 0;
        distance++;
        node = self->outside && is_optimizer(self->reach->objects[node])
                   ? CM_FROM_ROOT
                   : above(self, node);
    }
    struct place found = {node, distance};
    if (node < CM_FROM_ROOT && may_be_place(self, node, met)
        && is_nearer(self, found, *best)) {
        *best = found;
    }
}

/* The nearest object that has most of them, by ways of the first rank that has
 * any: what a library holds too is of no interest. */
static uint32_t
nearest_with_most(struct cm_piles *self, uint32_t group, uint32_t met)
{
    struct place best = {0};
    for (uint8_t rank = 0; rank < CM_RANKS && best.node == 0; rank++) {
        for (uint32_t t = 0; t < self->reach->target_count; t++) {
            for (uint32_t i = cm_piles_from(self, t);
                 self->groups[t] == group && i < cm_piles_to(self, t); i++) {
                if (cm_piles_way(self, i)->rank == rank) {
                    climb_to_most(self, cm_piles_way(self, i)->parent, met,
                                  &best);
                }
            }
        }
    }
    return best.node;
}

/* A list, a dict and their like; not the dict that has an object's attributes
 * or a module's variables. */
static bool
is_container(const struct cm_reach *reach, uint32_t node)
{
    uint32_t parent = reach->parents[node];
    uint64_t items;
    if (node <= reach->module_nodes
        || !cm_item_count(reach->objects[node], &items)) {
        return false;
    }
    PyObject *owner = parent < CM_FROM_ROOT ? reach->objects[parent] : NULL;
    bool of_owner = owner != NULL && PyDict_Check(reach->objects[node])
                    && (PyType_Check(owner)
                        || cm_instance_dict(reach->roots->objects, owner)
                               == reach->objects[node]);
    return !of_owner;
}

/* The nearest container from `node` upwards that has so many; 0: none. */
static uint32_t
container_with(struct cm_piles *self, uint32_t node, uint32_t fewest)
{
    uint32_t seconds = 0;
    while (
        node < CM_FROM_ROOT && seconds < MOST_SECONDS
        && self->climbs++ < MOST_CLIMBS
        && (self->below[node] < fewest || !is_container(self->reach, node))) {
        seconds += cm_reach_second(self->reach, node) != 0;
        node = above(self, node);
    }
    bool found = node < CM_FROM_ROOT && self->below[node] >= fewest
                 && is_container(self->reach, node);
    return found ? node : 0;
}

/* The container of modules that the program fills. */
static uint32_t
outside_of_optimizer(struct cm_piles *self, uint32_t group, uint32_t met,
                     uint32_t place)
{
    if (place == 0 || !is_in_optimizer(self->reach, place)) {
        return place;
    }
    self->outside = true;
    uint32_t other = nearest_with_most(self, group, met);
    self->outside = false;
    return other != 0 && is_container(self->reach, other) ? other : place;
}

/* Of the caches of several sessions not one cache, but the table of sessions,
 * which has at least twice as much; not what `place`, where all of it meets,
 * hangs from.  The walk has met what is further away later. */
static uint32_t
container_of_several(struct cm_piles *self, uint32_t node, uint32_t place)
{
    uint64_t items = 0;
    uint32_t outer = node != 0 ? container_with(self, above(self, node),
                                                2 * self->below[node])
                               : 0;
    bool several = outer > place
                   && cm_item_count(self->reach->objects[outer], &items)
                   && items > 1;
    return several ? outer : node;
}

/* Several owners of what one line makes have most of it together: of their
 * containers the one that has most, if that is a fair share. */
static uint32_t
largest_container(struct cm_piles *self, uint32_t group, uint32_t met,
                  uint32_t place)
{
    uint32_t best = 0, fewest = met / 4 > FEWEST ? met / 4 : FEWEST;
    if (place != 0 && is_container(self->reach, place)) {
        return place;
    }
    for (uint32_t t = 0; t < self->reach->target_count; t++) {
        for (uint32_t i = cm_piles_from(self, t);
             self->groups[t] == group && i < cm_piles_to(self, t); i++) {
            uint32_t node = container_of_several(
                self,
                container_with(self, cm_piles_way(self, i)->parent, fewest),
                place);
            best = node != 0 && self->below[node] > self->below[best] ? node
                                                                      : best;
        }
    }
    return best != 0 ? best : place;
}

/* An object of a class that is written in Python. */
static bool
is_instance(const PyObject *object)
{
    return PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE)
           && !PyType_Check(object);
}

/* Dicts of two objects are no chain unless these are alike: a model's modules
 * are each in the dict of another one. */
static bool
are_of_alike(const struct cm_reach *reach, uint32_t above,
             const PyObject *instance)
{
    uint32_t owner = reach->parents[above];
    return instance == NULL
           || (owner != 0 && owner < CM_FROM_ROOT
               && Py_TYPE(reach->objects[owner]) == Py_TYPE(instance));
}

/* The like object above it, with little in between; 0: none. */
static uint32_t
like_above(const struct cm_reach *reach, uint32_t node)
{
    uint32_t above = reach->parents[node];
    bool dict = PyDict_CheckExact(reach->objects[node]);
    const PyObject *instance = NULL;
    for (int between = 0; between <= CHAIN_BETWEEN && above < CM_FROM_ROOT;
         between++) {
        PyObject *object = reach->objects[above];
        if (Py_TYPE(object) == Py_TYPE(reach->objects[node])) {
            return are_of_alike(reach, above, instance) ? above : 0;
        }
        if (dict && instance == NULL && is_instance(object)) {
            instance = object;
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
last_parent(const struct cm_piles *self, uint32_t group)
{
    uint32_t last = 0;
    for (uint32_t t = 0; t < self->reach->target_count; t++) {
        uint32_t node = self->reach->target_nodes[t];
        uint32_t parent = self->groups[t] == group && node != 0
                              ? self->reach->parents[node]
                              : 0;
        last = parent < CM_FROM_ROOT && parent > last ? parent : last;
    }
    return last;
}

/* Where the place is a link of a chain, the chain's head. */
static uint32_t
chain_of(const struct cm_piles *self, uint32_t group, uint32_t place,
         uint32_t *links)
{
    const struct cm_reach *reach = self->reach;
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

/* A way to one of the group's targets that passes the place: to the one given
 * last, which is as a rule the newest.  Any way where none does. */
static const struct cm_reach_hit *
way_through(struct cm_piles *self, uint32_t group, uint32_t place)
{
    const struct cm_reach_hit *any = NULL;
    for (uint32_t t = self->reach->target_count; t-- > 0;) {
        for (uint32_t i = cm_piles_from(self, t);
             self->groups[t] == group && i < cm_piles_to(self, t); i++) {
            any = cm_piles_way(self, i);
            if (place != 0 && is_below(self, any->parent, place)) {
                return any;
            }
        }
    }
    return any;
}

static void
count(struct cm_piles *self, uint32_t group, struct cm_pile *result)
{
    for (uint32_t t = 0; t < self->reach->target_count; t++) {
        if (self->groups[t] == group) {
            result->targets++;
            result->unreached += self->reach->target_nodes[t] == 0;
            climb(self, t);
        }
    }
}

void
cm_piles_find(struct cm_piles *self, uint32_t group, struct cm_pile *result)
{
    *result = (struct cm_pile){0};
    count(self, group, result);
    uint32_t met = result->targets - result->unreached;
    uint32_t place = nearest_with_most(self, group, met);
    uint32_t other = outside_of_optimizer(self, group, met, place);
    result->stepped = other != place;
    place = other;
    if (place != 0) {
        place = chain_of(self, group, place, &result->chain);
    }
    if (result->chain == 0) {
        place = largest_container(self, group, met, place);
    }
    result->node = place;
    result->through = place != 0 ? self->below[place] : met;
    result->way = way_through(self, group, place);
    for (uint32_t t = 0; t < self->reach->target_count; t++) {
        if (self->groups[t] == group) {
            take_back(self, t);
        }
    }
}
