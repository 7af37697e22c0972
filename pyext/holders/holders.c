/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One walk, then for each group: the place (pile.c), the way through it in
 * words (trail.c), the code that fills it, what goes with it (retained.c), and
 * the sentence for it (graph/holding.c). */

#include "holders.h"

#include "../../detector/alloc.h"
#include "../../graph/bound.h"
#include "../../graph/item.h"
#include "../../graph/container.h"
#include "../../graph/metric.h"
#include "../../graph/way.h"
#include "fillers.h"
#include "helpers.h"
#include "keys.h"
#include "memories.h"
#include "../objects/maker.h"
#include "../tables/phrase.h"
#include "pile.h"
#include "retained.h"
#include "../allocations/unhooked.h"
#include "../frameworks/tags.h"
#include "tee.h"
#include "trail.h"
#include "turns.h"
#include "uncalled.h"

enum {
    WAYS = 4, /* of each target that are counted */
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
    struct cm_piles piles;
    struct cm_program program;
    unsigned asked;
};

static void
search_release(struct search *self)
{
    cm_program_release(&self->program);
    cm_piles_release(&self->piles);
    cm_retained_release(&self->retained);
    cm_reach_release(&self->reach);
    cm_roots_release(&self->roots);
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
            .bounded = from->bounded,
            .full = from->full,
            .cache = from->cache,
            .items = from->items,
            .shown_bytes = from->shown_bytes,
            .memory_bytes = from->memory_bytes,
        };
    }
    holder->step_count = trail->count;
    return CM_OK;
}

static bool
is_named_key(const struct search *self, const struct cm_step *step)
{
    const char *edge = cm_texts_get(self->query->objects->texts, step->edge);
    return step->role == CM_VALUE && strncmp(edge, "['", 2) == 0;
}

/* The step of the place, or of what was folded into the one before.  What
 * holds a single object by a name is told as that name; the head of a chain
 * as itself. */
static size_t
step_of(const struct search *self, const struct cm_trail *trail,
        uint32_t place, const struct cm_holder *holder)
{
    bool single = holder->targets - holder->unreached == 1;
    const struct cm_step *last = &trail->steps[trail->count - 1];
    size_t at = 0;
    for (size_t i = 1; i < trail->count; i++) {
        uint32_t node = trail->steps[i].node;
        at = node != 0 && node <= place ? i : at;
    }
    bool by_name =
        !trail->steps[at].counted || (single && is_named_key(self, last));
    if (at + 2 >= trail->count && by_name && holder->chain == 0) {
        at = trail->count - 1;
    }
    return at;
}

/* ---- what is said of it */

/* A variable of a function that the target goes by; id 0: none.  *contained: an
 * object holds it too. */
static struct cm_text_id
variable_of(const struct search *self, uint32_t target, bool *contained)
{
    struct cm_text_id found = {0};
    *contained = false;
    for (uint32_t i = cm_piles_from(&self->piles, target);
         i < cm_piles_to(&self->piles, target); i++) {
        uint32_t parent = cm_piles_way(&self->piles, i)->parent;
        enum cm_role role = CM_REFERENCE;
        if (parent < CM_FROM_ROOT) {
            *contained = true;
            continue;
        }
        struct cm_text_id edge = cm_root_edge(
            &self->roots, &self->roots.items[parent & ~CM_FROM_ROOT],
            self->query->targets[target], &role);
        found = role == CM_LOCAL ? edge : found;
    }
    return found;
}

static uint64_t
bytes_of(const struct search *self, uint32_t target)
{
    struct cm_device_memory memory;
    PyObject *object = self->query->targets[target];
    return self->query->devices != NULL
                   && cm_devices_read(self->query->devices, object, &memory)
               ? memory.bytes
               : 0;
}

/* Bytes of the first of the group that an object holds; 0: of none. */
static uint64_t
contained_bytes(const struct search *self, uint32_t group)
{
    for (uint32_t t = 0; t < self->query->target_count; t++) {
        bool contained = false;
        if (self->query->groups[t] == group) {
            (void)variable_of(self, t, &contained);
        }
        if (contained) {
            return bytes_of(self, t);
        }
    }
    return 0;
}

/* Best of one that lies where they pile up; else of one as large as those: the
 * output that a loss was made of has the same memory behind it. */
static struct cm_text_id
kept_variable(const struct search *self, uint32_t group)
{
    struct cm_text_id best = {0};
    int best_fit = -1;
    uint64_t bytes = contained_bytes(self, group);
    for (uint32_t t = 0; t < self->query->target_count; t++) {
        bool contained = false;
        struct cm_text_id name = self->query->groups[t] == group
                                     ? variable_of(self, t, &contained)
                                     : (struct cm_text_id){0};
        if (name.index == 0) {
            continue;
        }
        int fit = contained ? 2 : bytes_of(self, t) == bytes;
        if (fit > best_fit) {
            best = name;
            best_fit = fit;
        }
    }
    return best;
}

/* Asked of views alone: it reads all targets. */
static uint64_t
bytes_behind(const struct search *self, uint32_t group,
             const struct cm_holder *holder)
{
    const struct cm_holding_step *last =
        holder->step_count != 0 ? &holder->steps[holder->step_count - 1]
                                : NULL;
    return last != NULL && last->shown_bytes < last->memory_bytes
               ? cm_memories_bytes(self->query, group)
               : 0;
}

static bool
is_on_host(const struct search *self, PyObject *target)
{
    struct cm_device_memory memory;
    struct cm_devices *devices = self->query->devices;
    return target != NULL && devices != NULL
           && cm_devices_read(devices, target, &memory) && !memory.accelerator;
}

/* That of its memory, where tensors that were made have none of their own. */
static struct cm_site_id
made_by(const struct search *self, PyObject *target)
{
    const struct cm_tag *tag = cm_tags_find(target);
    struct cm_devices *devices = self->query->devices;
    struct cm_block block = {.site = {0}};
    if (tag == NULL && devices != NULL && target != NULL) {
        (void)cm_unhooked_block(devices, target, &block);
    }
    return tag != NULL ? tag->site : block.site;
}

/* 0: it is at its place. */
static void
move_to(size_t at, struct cm_holding *holding, struct cm_holder *holder)
{
    if (at != 0) {
        holding->at = holder->at = at;
    }
}

static void
note_emptied(struct search *self, struct cm_holding *holding,
             struct cm_holder *holder)
{
    holder->emptied = cm_bound_is_emptied(holding)
                      && !cm_uncalled_empties(&self->program, holding);
    holding->without_inner = true;
    holder->windowed = holder->emptied && !cm_bound_is_emptied(holding);
    holding->without_inner = false;
}

static void
note_bounds(const struct cm_holding *holding, struct cm_holder *holder)
{
    holder->bounded = cm_bound_is_known(holding);
    holder->of_each = (holder->bounded || holder->emptied)
                      && cm_item_has_bound_alone(holding);
    holder->fills = cm_item_fills(holding);
}

/* An attribute of a library's object may be filled by any code of the program's,
 * but for a metric's state; what has no name of the program's too, where no code
 * near it does, and is emptied by none. */
static void
find_places(struct search *self, struct cm_holding *holding,
            struct cm_fillers *codes, struct cm_holder *holder)
{
    if (cm_way_is_on_librarys(holding) && !cm_metric_is(holding)) {
        cm_helpers_add_all(&self->roots, holding, codes->ids, CM_MOST_FILLERS);
    }
    holder->place_count = cm_holding_made(holding, holder->places);
    if (holder->place_count == 0 && cm_way_is_handed_over(holding)) {
        cm_helpers_add_all(&self->roots, holding, codes->ids, CM_MOST_FILLERS);
        holder->place_count = cm_holding_made(holding, holder->places);
        holding->code_count = codes->count;
    }
}

static enum cm_status
advise(struct search *self, uint32_t group, const struct cm_trail *trail,
       PyObject *target, struct cm_holder *holder)
{
    const struct cm_holders_query *query = self->query;
    struct cm_text_id kept = kept_variable(self, group);
    const char *name = cm_texts_get(query->objects->texts, kept);
    struct cm_fillers codes = {.count = 0};
    struct cm_site_id site =
        query->sites != NULL ? query->sites[group] : (struct cm_site_id){0};
    struct cm_holding_advice advice;
    struct cm_holding holding = {
        .records = query->objects->records,
        .steps = holder->steps,
        .count = holder->step_count,
        .at = holder->at,
        .through = holder->through,
        .targets = holder->targets,
        .bytes_behind = bytes_behind(self, group, holder),
        .stepped = holder->stepped,
        .of_several = query->several_optimizers,
        .grows = query->growing != NULL && query->growing[group],
        .on_host = is_on_host(self, target),
        .chained = query->chained != NULL && query->chained[group],
        .chain = holder->chain,
        .category =
            query->categories != NULL ? query->categories[group] : NULL,
        .autograd_depth =
            query->autograd_depths != NULL ? query->autograd_depths[group] : 0,
        .site = site,
        .kept = kept.index != 0 ? name + strlen("local ") : NULL,
    };
    if (trail != NULL) {
        move_to(cm_container_of_longer(&holding), &holding, holder);
        move_to(cm_container_of_threads(&holding), &holding, holder);
        cm_fillers_find(&codes, query->objects, trail, holder->at,
                        made_by(self, target), site);
        holding.codes = codes.ids;
        holding.code_count = codes.count;
        move_to(cm_container_of_modules(&holding), &holding, holder);
        move_to(cm_container_of_hooks(&holding), &holding, holder);
        find_places(self, &holding, &codes, holder);
        cm_helpers_find(&self->roots, &holding, codes.ids, CM_MOST_FILLERS);
        holding.chained = holding.chained && !cm_bound_is_made_anew(&holding);
        note_emptied(self, &holding, holder);
    }
    note_bounds(&holding, holder);
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
        holder->at = step_of(self, &trail, place, holder);
        holder->steps[holder->at].keys = (uint8_t)cm_keys_of(
            trail.steps[holder->at].object, self->query->devices);
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

/* ---- all of it */

/* It is in a graph that the targets have behind them. */
static bool
has_graph(const struct search *self, uint32_t group)
{
    return self->query->autograd_depths != NULL
           && self->query->autograd_depths[group] != 0;
}

static bool
is_behind_few(const struct search *self, uint32_t group,
              const struct cm_pile *pile)
{
    const bool *few = self->query->behind_few;
    return cm_pile_is_behind(pile)
           || (few != NULL && few[group] && pile->way != NULL
               && pile->way->parent < CM_FROM_ROOT);
}

/* Variables have one or two, and nothing that Python knows of has the many
 * others: no variable is what holds them. */
static bool
is_held_unseen(const struct search *self, uint32_t group,
               const struct cm_pile *pile)
{
    uint32_t met = pile->targets - pile->unreached;
    return pile->node == 0 && met * 2 < pile->unreached
           && !has_graph(self, group) && !self->reach.cut;
}

/* Which holds no more than it did, whatever grows behind what it has. */
static bool
is_window(const struct search *self, uint32_t group,
          const struct cm_pile *pile)
{
    const bool *chained = self->query->chained;
    return chained != NULL && chained[group] && pile->way != NULL
           && pile->way->parent < CM_FROM_ROOT
           && (pile->node == 0 || pile->node == pile->way->parent)
           && cm_trail_is_full(self->reach.objects[pile->way->parent]);
}

static enum cm_status
find_holder(struct search *self, uint32_t group, struct cm_holder *holder)
{
    struct cm_pile pile;
    struct cm_turns turns = {&self->piles, self->query, &self->program,
                             &self->asked};
    cm_piles_find(&self->piles, group, &pile);
    holder->targets = pile.targets;
    holder->unreached = pile.unreached;
    holder->through = pile.through;
    holder->chain = pile.chain;
    holder->stepped = pile.stepped;
    holder->renewed = cm_turns_renew(&turns, group);
    /* of several variables, the one that a turn leaves to the next */
    if (pile.way != NULL
        && (pile.node == 0
            || (has_graph(self, group)
                && cm_turns_renew_way(&turns, pile.way)))) {
        pile.way = cm_turns_carried(&turns, group, pile.way, &pile.node);
    }
    if (has_graph(self, group)
        && (is_behind_few(self, group, &pile) || is_window(self, group, &pile))
        && !cm_turns_renew_way(&turns, pile.way)) {
        const struct cm_reach_hit *kept =
            cm_turns_kept(&turns, group, pile.way);
        pile.node =
            pile.node == 0 || kept != pile.way ? kept->parent : pile.node;
        pile.way = kept;
    }
    bool unseen = is_held_unseen(self, group, &pile);
    enum cm_status status =
        unseen || pile.way == NULL
            ? advise(self, group, NULL, NULL, holder)
            : tell(self, group, pile.node, pile.way, holder);
    holder->fills = holder->fills
                    && !cm_piles_have_two_ways(&self->piles, group, pile.node);
    return status;
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
                                    .bounds = query->bounds,
                                    .targets = query->targets,
                                    .target_count = query->target_count,
                                    .hidden = query->hidden,
                                    .hidden_count = query->hidden_count,
                                    .ways = WAYS};
    status = cm_reach_run(&self->reach);
    self->program.reach = &self->reach;
    if (status == CM_OK) {
        cm_tee_settle(&self->reach);
        result->nodes = self->reach.node_count - self->reach.nodes_left;
        result->nodes_left = self->reach.nodes_left;
        result->cut = self->reach.cut;
        status = cm_piles_init(&self->piles, &self->reach, query->groups);
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
