/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Candidates are gathered with a distance and kept apart by file and line.
 * A bounded number of members is looked at, and of candidates kept; sorting
 * is by insertion, since they are few.  O(stores looked at * candidates). */

#include "place.h"

#include <string.h>

/* Distances: smaller is nearer. */
enum {
    IN_OWN_METHOD = 0,
    IN_OWN_METHOD_OF_OTHER = 1, /* other.link = self */
    IN_ALLOCATION = 10,         /* and one more for each frame further out */
    IN_CYCLE = 1000,
    IN_OTHER_METHOD = 2000,
    OF_OTHER_OBJECT = 1000, /* added: self.link = x, of another class */
    IN_GENERATED = 5000,    /* added */
    IN_LIBRARY = 10000,     /* added */
};

/* Where to look */

static void
add_candidate(struct cm_place_search *self,
              struct cm_place_candidate candidate)
{
    const struct cm_code *code = cm_place_code(self, candidate.place.code);

    for (uint32_t i = 0; i < self->count; i++) {
        struct cm_place_candidate *known = &self->found[i];
        const struct cm_code *other = cm_place_code(self, known->place.code);

        if (cm_text_same(code->filename, other->filename)
            && candidate.place.line == known->place.line) {
            known->distance = candidate.distance < known->distance
                                  ? candidate.distance
                                  : known->distance;
            return;
        }
    }
    if (self->count < CM_PLACE_CANDIDATES) {
        self->found[self->count++] = candidate;
    }
}

static bool
is_in_no_file(const struct cm_place_search *self, const struct cm_code *code)
{
    const char *name = cm_place_text(self, code->filename);

    return strcmp(name, "<string>") == 0
           || (name[0] == '<' && strstr(name, "generated") != NULL);
}

/* "<string>" is the code that dataclasses and namedtuple make, or a program of
 * `python -c`; "<attrs generated init m.Node>" says it.  What lies in a file
 * comes before it. */
static uint32_t
added_distance(const struct cm_place_search *self, const struct cm_code *code)
{
    return code->library               ? IN_LIBRARY
           : is_in_no_file(self, code) ? IN_GENERATED
                                       : 0;
}

/* Also where it is not known whose line is sought. */
static bool
is_of_owner(const struct cm_place_search *self, struct cm_code_id id)
{
    const struct cm_type *type =
        cm_records_type(self->cycle->records, self->owner_type);
    bool found = self->owner_type.index == 0;

    for (uint32_t i = 0; i < type->method_count; i++) {
        found |= type->methods[i].index == id.index;
    }
    return found;
}

static void
look_in_code(struct cm_place_search *self, struct cm_code_id id,
             uint32_t distance)
{
    const struct cm_code *code = cm_place_code(self, id);

    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        struct cm_place_candidate candidate = {
            .place = {.code = id, .line = store->line},
            .distance = distance + added_distance(self, code),
            .made = store->made,
        };

        if (store->line == 0 || !self->is_wanted(self, store)) {
            continue;
        }
        bool own = strcmp(cm_place_text(self, store->owner), "self") == 0;
        if (distance == IN_OWN_METHOD && !own) {
            candidate.distance += IN_OWN_METHOD_OF_OTHER;
        }
        if (distance == IN_OTHER_METHOD && own
            && store->kind == CM_STORE_ATTRIBUTE && !is_of_owner(self, id)) {
            candidate.distance += OF_OTHER_OBJECT;
        }
        add_candidate(self, candidate);
    }
}

static void
look_in_type(struct cm_place_search *self, struct cm_type_id id,
             uint32_t distance)
{
    const struct cm_type *type = cm_records_type(self->cycle->records, id);

    for (uint32_t i = 0; i < type->method_count; i++) {
        look_in_code(self, type->methods[i], distance);
    }
}

static void
look_in_site(struct cm_place_search *self, struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(self->cycle->records, id);

    for (uint32_t i = 0; i < site->frame_count; i++) {
        look_in_code(self, site->frames[i].code, IN_ALLOCATION + i);
    }
}

static void
look_at_allocations(struct cm_place_search *self)
{
    const struct cm_heap *heap = self->cycle->heap;

    for (uint32_t i = 0; i < self->cycle->payload_count; i++) {
        const struct cm_node *node = &heap->nodes[self->cycle->payload[i]];

        look_in_site(self, node->site);
        if (node->storage.index != 0) {
            look_in_site(self, heap->storages[node->storage.index].site);
        }
    }
}

void
cm_place_look_at_members(struct cm_place_search *self)
{
    const struct cm_cycle *cycle = self->cycle;

    for (uint32_t i = 0; i < cycle->size && i < CM_PLACE_MEMBERS; i++) {
        const struct cm_node *node = cm_cycle_node(cycle, cycle->nodes[i]);

        look_in_code(self, node->code, IN_CYCLE);
        look_in_type(self, node->type, IN_OTHER_METHOD);
    }
}

void
cm_place_look_around(struct cm_place_search *self, uint32_t owner)
{
    self->owner_type = cm_cycle_node(self->cycle, owner)->type;
    look_in_type(self, self->owner_type, IN_OWN_METHOD);
    look_at_allocations(self);
    cm_place_look_at_members(self);
}

/* What counts */

bool
cm_place_sets_attribute(const struct cm_place_search *self,
                        const struct cm_store *store)
{
    return store->kind == CM_STORE_ATTRIBUTE && !store->constant
           && strcmp(cm_place_text(self, store->name), self->name) == 0;
}

bool
cm_place_fills(const struct cm_place_search *self,
               const struct cm_store *store)
{
    static const char *const calls[] = {
        "append",     "add",        "insert",   "extend", "update",
        "setdefault", "add_module", "put",      "push",   "appendleft",
        "register",   "put_nowait", "heappush", NULL,
    };

    if (store->kind == CM_STORE_ITEM) {
        return !store->constant;
    }
    if (store->kind != CM_STORE_CALL) {
        return false;
    }
    for (const char *const *call = calls; *call != NULL; call++) {
        if (strcmp(cm_place_text(self, store->name), *call) == 0) {
            return true;
        }
    }
    return false;
}

/* What is chosen */

/* Moves the nearest candidates to the front: first by distance, then in the
 * order of the source. */
static void
sort_candidates(struct cm_place_search *self)
{
    for (uint32_t i = 1; i < self->count; i++) {
        struct cm_place_candidate moved = self->found[i];
        uint32_t at = i;

        for (; at > 0; at--) {
            const struct cm_place_candidate *before = &self->found[at - 1];

            if (before->distance < moved.distance
                || (before->distance == moved.distance
                    && before->place.line <= moved.place.line)) {
                break;
            }
            self->found[at] = *before;
        }
        self->found[at] = moved;
    }
}

/* What lies in a library, or in no file, unless there is nothing else. */
static void
drop_others_code(struct cm_place_search *self)
{
    uint32_t limit = IN_GENERATED;

    if (self->count == 0 || self->found[0].distance >= IN_LIBRARY) {
        return;
    }
    if (self->found[0].distance >= IN_GENERATED) {
        limit = IN_LIBRARY;
    }
    while (self->found[self->count - 1].distance >= limit) {
        self->count--;
    }
}

void
cm_place_look_in_code(struct cm_place_search *self, struct cm_code_id code)
{
    look_in_code(self, code, IN_CYCLE);
}

static uint32_t
distance_in_frame(const struct cm_frame *frame, uint32_t line)
{
    uint32_t below = line - frame->line;
    bool above = line < frame->line;

    return above ? IN_CYCLE : below < IN_CYCLE ? below : IN_CYCLE - 1;
}

void
cm_place_look_in_frame(struct cm_place_search *self,
                       const struct cm_frame *frame)
{
    uint32_t first = self->count;

    look_in_code(self, frame->code, IN_CYCLE);
    for (uint32_t i = first; i < self->count; i++) {
        struct cm_place_candidate *found = &self->found[i];

        found->distance = distance_in_frame(frame, found->place.line);
    }
}

void
cm_place_sort(struct cm_place_search *self)
{
    sort_candidates(self);
    drop_others_code(self);
}

bool
cm_place_is_library(const struct cm_place_search *self)
{
    return self->count > 0 && self->found[0].distance >= IN_LIBRARY;
}

static bool
is_call_of(const struct cm_place_search *self, const struct cm_store *store)
{
    return store->kind == CM_STORE_CALL
           && strcmp(cm_place_text(self, store->name), self->name) == 0;
}

void
cm_place_prefer_callers(struct cm_place_search *self, uint32_t owner)
{
    struct cm_place_search callers = {.cycle = self->cycle,
                                      .is_wanted = is_call_of};

    struct cm_type_id type = cm_cycle_node(self->cycle, owner)->type;

    cm_place_sort(self);
    if (!cm_place_is_library(self)
        || cm_records_type(self->cycle->records, type)->library) {
        return;
    }
    callers.name = cm_place_text(
        self, cm_place_code(self, self->found[0].place.code)->name);
    cm_place_look_around(&callers, owner);
    cm_place_sort(&callers);
    if (callers.count > 0 && callers.found[0].distance < IN_LIBRARY) {
        *self = callers;
    }
}

/* Some frame of the user's own that allocated lies in a file. */
static bool
is_program_in_file(const struct cm_place_search *self, struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(self->cycle->records, id);

    for (uint32_t i = 0; i < site->frame_count; i++) {
        const struct cm_code *code = cm_place_code(self, site->frames[i].code);

        if (!code->library && !is_in_no_file(self, code)) {
            return true;
        }
    }
    return false;
}

bool
cm_place_is_generated(const struct cm_place_search *self)
{
    const struct cm_cycle *cycle = self->cycle;
    const struct cm_node *node = &cycle->heap->nodes[cycle->payload[0]];

    if (self->count == 0 || cycle->payload_count == 0
        || !is_in_no_file(self,
                          cm_place_code(self, self->found[0].place.code))) {
        return false;
    }
    return is_program_in_file(self, node->site)
           || is_program_in_file(
               self, cycle->heap->storages[node->storage.index].site);
}

uint32_t
cm_place_take(struct cm_place_search *self,
              struct cm_place places[CM_MAX_PLACES])
{
    cm_place_sort(self);
    uint32_t count = self->count < CM_MAX_PLACES ? self->count : CM_MAX_PLACES;
    for (uint32_t i = 0; i < count; i++) {
        bool running = i == 0 && self->found[0].distance == 0;
        places[i] = self->found[i].place;
        places[i].certain = self->count == 1 || running;
    }
    return count;
}
