/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A finding's path in three searches, each breadth first over an index of the
 * edges by tail: owner to the suspect edge, from it back to the owner (both
 * inside the component), then from the owner down to the largest payload.
 * Edges are tried in the order of their ids, so that equal documents give
 * equal paths.  No recursion; the work arrays are made once per document. */
#include "path.h"

#include <string.h>

#include "../detector/alloc.h"
#include "buffer.h"
#include "names.h"

/* Where a search ends. */
struct target {
    uint32_t vertex; /* 0: any vertex with a wanted storage */
    bool inside;     /* only vertices of the component are walked */
};

void
cm_path_release(struct cm_path *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->count; i++) {
        cm_free(self->steps[i].name);
        cm_free(self->steps[i].edge);
    }
    cm_free(self->steps);
    *self = (struct cm_path){0};
}

/* Counting sort of the edge ids by tail; stable, so ids stay in order. */
static void
index_edges(struct cm_paths *self)
{
    const struct cm_leak *leak = self->leak;

    for (size_t i = 0; i < leak->edge_count; i++) {
        self->first[leak->edges[i].tail + 1]++;
    }
    for (size_t i = 1; i < leak->vertex_count + 2; i++) {
        self->first[i] += self->first[i - 1];
    }
    for (size_t i = 0; i < leak->edge_count; i++) {
        uint32_t tail = leak->edges[i].tail;

        self->by_tail[self->first[tail] + self->seen[tail]++] =
            (uint32_t)i + 1;
    }
    memset(self->seen, 0, (leak->vertex_count + 1) * sizeof(uint32_t));
}

enum cm_status
cm_paths_init(struct cm_paths *self, const struct cm_leak *leak)
{
    size_t vertices = leak->vertex_count + 2;

    self->leak = leak;
    self->first = cm_calloc(vertices, sizeof(uint32_t));
    self->by_tail = cm_calloc(leak->edge_count + 1, sizeof(uint32_t));
    self->came_by = cm_calloc(vertices, sizeof(uint32_t));
    self->seen = cm_calloc(vertices, sizeof(uint32_t));
    self->member = cm_calloc(vertices, sizeof(uint32_t));
    self->wanted = cm_calloc(leak->storage_count + 1, sizeof(uint32_t));
    self->queue = cm_calloc(vertices, sizeof(uint32_t));
    if (self->first == NULL || self->by_tail == NULL || self->came_by == NULL
        || self->seen == NULL || self->member == NULL || self->wanted == NULL
        || self->queue == NULL) {
        cm_paths_release(self);
        return CM_NO_MEMORY;
    }
    index_edges(self);
    return CM_OK;
}

void
cm_paths_release(struct cm_paths *self)
{
    cm_free(self->first);
    cm_free(self->by_tail);
    cm_free(self->came_by);
    cm_free(self->seen);
    cm_free(self->member);
    cm_free(self->wanted);
    cm_free(self->queue);
    cm_free(self->route);
    *self = (struct cm_paths){0};
}

static bool
is_wanted(const struct cm_paths *self, uint32_t vertex)
{
    uint32_t storage = cm_leak_vertex_at(self->leak, vertex)->storage;

    return storage != 0 && self->wanted[storage] == self->stamp;
}

/* Breadth first from the `queued` vertices in the queue.  The vertex that was
 * reached, 0 when none was.  Before: mark() was called for each of them. */
static uint32_t
search(struct cm_paths *self, size_t queued, struct target target)
{
    size_t next = 0;

    while (next < queued && next < CM_PATH_MAX_VISITS) {
        uint32_t tail = self->queue[next++];

        for (uint32_t i = self->first[tail]; i < self->first[tail + 1]; i++) {
            uint32_t head = self->leak->edges[self->by_tail[i] - 1].head;

            if (self->seen[head] == self->search_stamp
                || (target.inside && self->member[head] != self->stamp)) {
                continue;
            }
            self->seen[head] = self->search_stamp;
            self->came_by[head] = self->by_tail[i];
            if (target.vertex != 0 ? head == target.vertex
                                   : is_wanted(self, head)) {
                return head;
            }
            self->queue[queued++] = head;
        }
    }
    return 0;
}

/* Puts a vertex where the next search starts.  A vertex that is its own
 * target stays unseen, so that the search finds the way round to it. */
static void
mark(struct cm_paths *self, size_t position, uint32_t vertex, bool seen)
{
    self->queue[position] = vertex;
    self->came_by[vertex] = 0;
    if (seen) {
        self->seen[vertex] = self->search_stamp;
    }
}

static enum cm_status
add_route(struct cm_paths *self, uint32_t edge)
{
    enum cm_status status =
        cm_grow((void **)&self->route, &self->route_capacity,
                self->route_count + 1, sizeof(*self->route));

    if (status == CM_OK) {
        self->route[self->route_count++] = edge;
    }
    return status;
}

/* Appends the way from `from` to the vertex that the last search reached. */
static enum cm_status
add_way(struct cm_paths *self, uint32_t from, uint32_t reached)
{
    size_t start = self->route_count;
    enum cm_status status = CM_OK;
    uint32_t vertex = reached;

    do {
        status = add_route(self, self->came_by[vertex]);
        vertex = cm_leak_edge_at(self->leak, self->came_by[vertex])->tail;
    } while (status == CM_OK && vertex != from);
    for (size_t low = start, high = self->route_count; low + 1 < high;) {
        uint32_t edge = self->route[--high];

        self->route[high] = self->route[low];
        self->route[low++] = edge;
    }
    return status;
}

/* The shortest way, appended; nothing when there is none. */
static enum cm_status
find_way(struct cm_paths *self, uint32_t from, struct target target)
{
    uint32_t reached;

    self->search_stamp++;
    mark(self, 0, from, from != target.vertex);
    reached = search(self, 1, target);
    return reached != 0 ? add_way(self, from, reached) : CM_OK;
}

/* Stamps the component and the storages of the largest size. */
static void
stamp_cycle(struct cm_paths *self, const struct cm_leak_cycle *cycle)
{
    uint64_t largest = 0;

    self->stamp++;
    for (size_t i = 0; i < cycle->vertex_count; i++) {
        self->member[cycle->vertices[i]] = self->stamp;
    }
    for (size_t i = 0; i < cycle->payload_count; i++) {
        uint64_t bytes =
            cm_leak_storage_at(self->leak, cycle->payload[i])->bytes;

        largest = bytes > largest ? bytes : largest;
    }
    for (size_t i = 0; i < cycle->payload_count; i++) {
        if (cm_leak_storage_at(self->leak, cycle->payload[i])->bytes
            == largest) {
            self->wanted[cycle->payload[i]] = self->stamp;
        }
    }
}

/* The suspect edge when it lies in the component, else 0. */
static uint32_t
suspect_of(const struct cm_paths *self, const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *edge;

    if (cycle->cut_count == 0) {
        return 0;
    }
    edge = cm_leak_edge_at(self->leak, cycle->cut[0]);
    return self->member[edge->tail] == self->stamp
                   && self->member[edge->head] == self->stamp
               ? cycle->cut[0]
               : 0;
}

/* The vertex of the component that is nearest to the largest payload; of
 * equally near ones `preferred`, else the first. */
static uint32_t
find_holder(struct cm_paths *self, const struct cm_leak_cycle *cycle,
            uint32_t preferred)
{
    uint32_t reached = 0;
    size_t queued = 0;

    self->search_stamp++;
    if (preferred != 0) {
        mark(self, queued++, preferred, true);
    }
    for (size_t i = 0; i < cycle->vertex_count; i++) {
        if (self->seen[cycle->vertices[i]] != self->search_stamp) {
            mark(self, queued++, cycle->vertices[i], true);
        }
    }
    for (size_t i = 0; i < queued && reached == 0; i++) {
        reached = is_wanted(self, self->queue[i]) ? self->queue[i] : 0;
    }
    if (reached == 0) {
        reached = search(self, queued, (struct target){0});
    }
    while (reached != 0 && self->came_by[reached] != 0) {
        reached = cm_leak_edge_at(self->leak, self->came_by[reached])->tail;
    }
    return reached != 0 ? reached : self->queue[0];
}

/* How a rule's suspect edge stands to the object that owns the cycle. */
enum ownership {
    OWNS_FROM_HEAD = 0, /* the edge leads back to the owner */
    OWNS_HEAD,          /* exactly its head */
    OWNS_RUNNING,       /* the generator that it leads back to */
    OWNS_TO_TAIL,       /* the owner makes this reference */
    OWNS_LINKED,        /* head, but the tail where the two are alike */
    OWNS_PAYLOAD,       /* no edge tells: who holds the payload */
};

static enum ownership
ownership_of(const char *rule)
{
    static const struct {
        const char *rule;
        enum ownership ownership;
    } table[] = {
        {"exception_in_frame", OWNS_TO_TAIL},
        {"exception_on_self", OWNS_TO_TAIL},
        {"frame_in_local", OWNS_TO_TAIL},
        {"class_in_function", OWNS_TO_TAIL},
        {"generator_holds_itself", OWNS_RUNNING},
        {"container_cycle", OWNS_HEAD},
        {"back_link", OWNS_LINKED},
        {"unknown", OWNS_PAYLOAD},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(rule, table[i].rule) == 0) {
            return table[i].ownership;
        }
    }
    return OWNS_FROM_HEAD;
}

/* From the suspect's head along the way back to its tail, which is in the
 * route: the first vertex that fits, or for OWNS_TO_TAIL the last one; the
 * head when none does. */
static uint32_t
owner_on_way(const struct cm_paths *self, uint32_t head,
             enum ownership ownership)
{
    uint32_t result = 0, vertex = head;

    for (size_t i = 0; i <= self->route_count; i++) {
        bool fits = ownership == OWNS_TO_TAIL
                        ? !cm_name_folded(self->leak, vertex)
                    : ownership == OWNS_RUNNING
                        ? cm_name_is_running(self->leak, vertex)
                        : !cm_name_is_between(self->leak, vertex);

        if (fits && (result == 0 || ownership == OWNS_TO_TAIL)) {
            result = vertex;
        }
        if (i < self->route_count) {
            vertex = cm_leak_edge_at(self->leak, self->route[i])->head;
        }
    }
    return result != 0 ? result : head;
}

/* Whether like objects refer to each other by the same name, so that neither
 * leads: `tail` makes the suspect reference. */
static bool
is_mutual(const struct cm_paths *self, const struct cm_leak_edge *suspect,
          uint32_t tail)
{
    const struct cm_leak *leak = self->leak;
    bool same = false;

    for (size_t i = 0; i < self->route_count; i++) {
        same |= cm_text_same(cm_leak_edge_at(leak, self->route[i])->annotation,
                             suspect->annotation);
    }
    return same
           && cm_text_same(cm_leak_vertex_at(leak, tail)->type,
                           cm_leak_vertex_at(leak, suspect->head)->type);
}

/* The owner of a cycle whose suspect edge has its way back in the route. */
static uint32_t
owner_by_rule(struct cm_paths *self, const struct cm_leak_cycle *cycle,
              const struct cm_leak_edge *suspect, enum ownership ownership)
{
    uint32_t tail = owner_on_way(self, suspect->head, OWNS_TO_TAIL);

    if (ownership == OWNS_HEAD) {
        return suspect->head;
    }
    if (ownership == OWNS_LINKED && is_mutual(self, suspect, tail)
        && find_holder(self, cycle, tail) == tail) {
        return tail;
    }
    return owner_on_way(self, suspect->head, ownership);
}

static enum cm_status
find_owner(struct cm_paths *self, const struct cm_leak_cycle *cycle,
           uint32_t suspect, uint32_t *result)
{
    enum ownership ownership =
        ownership_of(cm_leak_text(self->leak, cycle->rule));
    const struct cm_leak_edge *edge;
    enum cm_status status = CM_OK;

    if (suspect == 0 || ownership == OWNS_PAYLOAD) {
        *result = find_holder(self, cycle, 0);
        return CM_OK;
    }
    edge = cm_leak_edge_at(self->leak, suspect);
    if (edge->tail != edge->head) {
        status = find_way(self, edge->head, (struct target){edge->tail, true});
    }
    *result = owner_by_rule(self, cycle, edge, ownership);
    self->route_count = 0;
    return status;
}

/* Once round the cycle, through the suspect edge if there is one. */
static enum cm_status
add_round(struct cm_paths *self, uint32_t owner, uint32_t suspect)
{
    enum cm_status status = CM_OK;
    const struct cm_leak_edge *edge;

    if (suspect == 0) {
        return find_way(self, owner, (struct target){owner, true});
    }
    edge = cm_leak_edge_at(self->leak, suspect);
    if (owner != edge->tail) {
        status = find_way(self, owner, (struct target){edge->tail, true});
    }
    if (status == CM_OK) {
        status = add_route(self, suspect);
    }
    if (status == CM_OK && owner != edge->head) {
        status = find_way(self, edge->head, (struct target){owner, true});
    }
    return status;
}

/* Whether the route is one way from `owner` round to it.  A document of
 * another program may name a component that is none. */
static bool
is_closed(const struct cm_paths *self, uint32_t owner)
{
    uint32_t vertex = owner;

    for (size_t i = 0; i < self->route_count; i++) {
        const struct cm_leak_edge *edge =
            cm_leak_edge_at(self->leak, self->route[i]);

        if (edge->tail != vertex) {
            return false;
        }
        vertex = edge->head;
    }
    return vertex == owner;
}

/* A cell is called after the reference that leads to it or out of it. */
static void
add_name(struct cm_buffer *out, const struct cm_paths *self, size_t at,
         uint32_t vertex)
{
    const struct cm_leak *leak = self->leak;
    const char *kind =
        cm_leak_text(leak, cm_leak_vertex_at(leak, vertex)->kind);
    bool cell = strcmp(kind, "cell") == 0;

    for (size_t i = at > 0 ? at - 1 : 0;
         cell && i <= at && i < self->route_count; i++) {
        const char *label = cm_leak_text(
            leak, cm_leak_edge_at(leak, self->route[i])->annotation);

        if (strncmp(label, "cell ", 5) == 0) {
            cm_buffer_add_text(out, label);
            return;
        }
    }
    cm_name_add_vertex(out, leak, vertex);
}

/* Adds the text of the edges from route[at] to the next vertex that is shown;
 * returns the position of the first edge behind.  The end of the round is
 * always shown, a container too: it is the owner. */
static size_t
add_edges(struct cm_buffer *out, const struct cm_paths *self, size_t at,
          uint32_t suspect, struct cm_path_step *step)
{
    bool in_dict = false;

    while (true) {
        const struct cm_leak_edge *edge =
            cm_leak_edge_at(self->leak, self->route[at]);

        cm_name_add_edge(out, self->leak, self->route[at], in_dict);
        in_dict =
            strcmp(cm_leak_text(self->leak, edge->annotation), "__dict__")
            == 0;
        step->suspect |= at < self->round_count && self->route[at] == suspect;
        at++;
        if (at == self->round_count || at == self->route_count
            || !cm_name_folded(self->leak, edge->head)) {
            return at;
        }
        step->folded++;
    }
}

/* Appends the step of `vertex`, which is left by route[*at]. */
static enum cm_status
add_step(struct cm_path *path, const struct cm_paths *self, uint32_t vertex,
         uint32_t suspect, size_t *at)
{
    struct cm_path_step step = {.vertex = vertex};
    struct cm_buffer name = {0}, edge = {0};
    enum cm_status status;

    add_name(&name, self, *at, vertex);
    step.owner = *at == 0 || *at == self->round_count;
    if (*at < self->route_count) {
        step.out = self->route[*at];
        *at = add_edges(&edge, self, *at, suspect, &step);
    }
    step.name = cm_strdup(cm_buffer_text(&name));
    step.edge = cm_strdup(cm_buffer_text(&edge));
    status = cm_buffer_status(&name);
    status = status == CM_OK ? cm_buffer_status(&edge) : status;
    status = step.name == NULL || step.edge == NULL ? CM_NO_MEMORY : status;
    if (status == CM_OK) {
        status = cm_grow((void **)&path->steps, &path->capacity,
                         path->count + 1, sizeof(*path->steps));
    }
    if (status == CM_OK) {
        path->steps[path->count++] = step;
    }
    else {
        cm_free(step.name);
        cm_free(step.edge);
    }
    cm_buffer_release(&name);
    cm_buffer_release(&edge);
    return status;
}

static enum cm_status
add_steps(struct cm_path *path, const struct cm_paths *self, uint32_t owner,
          uint32_t suspect)
{
    enum cm_status status = CM_OK;
    uint32_t vertex = owner;
    size_t at = 0;

    while (status == CM_OK && at < self->route_count) {
        status = add_step(path, self, vertex, suspect, &at);
        vertex = cm_leak_edge_at(self->leak, self->route[at - 1])->head;
    }
    if (status == CM_OK && self->route_count > 0) {
        status = add_step(path, self, vertex, suspect, &at);
    }
    return status;
}

enum cm_status
cm_paths_find(struct cm_paths *self, size_t cycle, struct cm_path *result)
{
    const struct cm_leak_cycle *found = &self->leak->cycles[cycle];
    enum cm_status status;
    uint32_t owner = 0, suspect;

    if (found->vertex_count == 0) {
        return CM_OK;
    }
    self->route_count = 0;
    stamp_cycle(self, found);
    suspect = suspect_of(self, found);
    status = find_owner(self, found, suspect, &owner);
    if (status == CM_OK) {
        status = add_round(self, owner, suspect);
    }
    if (!is_closed(self, owner)) {
        self->route_count = 0;
    }
    self->round_count = self->route_count;
    if (status == CM_OK && !is_wanted(self, owner)) {
        status = find_way(self, owner, (struct target){0});
    }
    if (status == CM_OK) {
        status = add_steps(result, self, owner, suspect);
    }
    if (status != CM_OK) {
        cm_path_release(result);
    }
    return status;
}
