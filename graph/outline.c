/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One breadth-first search from all members at once meets each device object
 * on a shortest way; walking back along the edges of the search gives what
 * lies in between.  Its visits are bounded for each cycle and for the heap as
 * a whole, so that many cycles above one large structure stay linear. */

#include "outline.h"

#include <stdlib.h> // qsort()
#include "../detector/alloc.h"

#define MAX_VISITS 65536u
#define MIN_VISITS 1024u

enum cm_status
cm_outlines_init(struct cm_outlines *self, const struct cm_heap *heap)
{
    size_t words = heap->node_count + 1;

    *self = (struct cm_outlines){.heap = heap};
    self->visits = 4 * heap->node_count;
    self->came_by = cm_calloc(words, sizeof *self->came_by);
    self->seen = cm_calloc(words, sizeof *self->seen);
    self->queue = cm_calloc(words, sizeof *self->queue);
    if (self->came_by == NULL || self->seen == NULL || self->queue == NULL) {
        cm_outlines_release(self);
        return CM_NO_MEMORY;
    }
    return CM_OK;
}

void
cm_outlines_release(struct cm_outlines *self)
{
    cm_free(self->came_by);
    cm_free(self->seen);
    cm_free(self->queue);
    *self = (struct cm_outlines){0};
}

static void
meet(struct cm_outlines *self, uint32_t node, uint32_t edge, uint32_t *queued)
{
    if (self->seen[node] != self->stamp) {
        self->seen[node] = self->stamp;
        self->came_by[node] = edge;
        self->queue[(*queued)++] = node;
    }
}

/* The number of nodes met, in `queue`; those started from are the first. */
static uint32_t
search(struct cm_outlines *self, const uint32_t *starts, uint32_t count)
{
    size_t spent = self->visits < MAX_VISITS ? self->visits : MAX_VISITS;
    uint32_t queued = 0;

    spent = spent < MIN_VISITS ? MIN_VISITS : spent;
    self->stamp++;
    for (uint32_t i = 0; i < count; i++) {
        meet(self, starts[i], 0, &queued);
    }
    for (uint32_t next = 0; next < queued; next++) {
        const struct cm_node *node = &self->heap->nodes[self->queue[next]];

        if (queued - count > spent) {
            break;
        }
        for (uint32_t i = 0; i < node->edge_count; i++) {
            uint32_t edge = node->first_edge + i;

            meet(self, self->heap->edges[edge].head, edge, &queued);
        }
    }
    spent = queued - count;
    self->visits -= spent < self->visits ? spent : self->visits;
    return queued;
}

struct device_node {
    uint64_t bytes;
    uint32_t met; /* place in the queue */
    uint32_t node;
};

static int
compare_device_nodes(const void *left, const void *right)
{
    const struct device_node *a = left, *b = right;

    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->met < b->met ? -1 : a->met > b->met;
}

/* The device objects among the nodes met, the largest first.  `*result` is
 * new. */
static enum cm_status
sort_device_nodes(const struct cm_outlines *self, uint32_t met,
                  struct device_node **result, uint32_t *count)
{
    const struct cm_heap *heap = self->heap;
    struct device_node *found = NULL;
    size_t capacity = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < met; i++) {
        const struct cm_node *node = &heap->nodes[self->queue[i]];

        if (node->storage.index == 0) {
            continue;
        }
        if (cm_grow((void **)&found, &capacity, (size_t)n + 1, sizeof *found)
            != CM_OK) {
            cm_free(found);
            return CM_NO_MEMORY;
        }
        found[n++] = (struct device_node){
            heap->storages[node->storage.index].bytes, i, self->queue[i]};
    }
    if (n > 0) {
        qsort(found, n, sizeof *found, compare_device_nodes);
    }
    *result = found;
    *count = n;
    return CM_OK;
}

static bool
is_listed(const uint32_t *nodes, size_t count, uint32_t node)
{
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == node) {
            return true;
        }
    }
    return false;
}

/* Adds what lies between the component and `node`, if there is room for all
 * of it: a way with a gap says nothing. */
static void
add_way(struct cm_outlines *self, const struct cm_cycle *cycle, uint32_t node,
        struct cm_finding *finding)
{
    size_t count = finding->via_count;

    while (self->came_by[node] != 0) {
        node = self->heap->edges[self->came_by[node]].tail;
        if (cm_cycle_has(cycle, node)
            || is_listed(finding->via, count, node)) {
            continue;
        }
        if (count == CM_OUTLINE_VIA) {
            return;
        }
        finding->via[count++] = node;
    }
    finding->via_count = count;
}

/* The member that a way down to `node` starts from. */
static uint32_t
holder_of(const struct cm_outlines *self, uint32_t node)
{
    while (self->came_by[node] != 0) {
        node = self->heap->edges[self->came_by[node]].tail;
    }
    return node;
}

/* Takes out of `via` what is payload itself. */
static void
drop_payload_from_via(struct cm_finding *finding)
{
    size_t kept = 0;

    for (size_t i = 0; i < finding->via_count; i++) {
        uint32_t node = finding->via[i];

        if (!is_listed(finding->payload, finding->payload_count, node)) {
            finding->via[kept++] = node;
        }
    }
    finding->via_count = kept;
}

enum cm_status
cm_outline_payload(struct cm_outlines *self, struct cm_cycle *cycle,
                   struct cm_finding *finding)
{
    struct device_node *found = NULL;
    uint32_t count = 0;
    enum cm_status status = CM_NO_MEMORY;

    finding->via = cm_calloc(CM_OUTLINE_VIA, sizeof *finding->via);
    finding->payload = cm_calloc(CM_OUTLINE_PAYLOAD, sizeof *finding->payload);
    if (finding->via == NULL || finding->payload == NULL) {
        goto done;
    }
    status = sort_device_nodes(self, search(self, cycle->nodes, cycle->size),
                               &found, &count);
    for (uint32_t i = 0; i < count && i < CM_OUTLINE_PAYLOAD; i++) {
        finding->payload[finding->payload_count++] = found[i].node;
        add_way(self, cycle, found[i].node, finding);
        if (i < CM_CYCLE_PAYLOADS) {
            cycle->payload[cycle->payload_count++] = found[i].node;
        }
    }
    drop_payload_from_via(finding);
    if (count > 0) {
        cycle->holder = holder_of(self, found[0].node);
    }
done:
    cm_free(found);
    return status;
}

void
cm_outline_owner(struct cm_outlines *self, const struct cm_cycle *cycle,
                 uint32_t owner, struct cm_finding *finding)
{
    uint32_t payload = finding->payload_count > 0 ? finding->payload[0] : 0;

    if (payload == 0 || owner == 0 || cycle->size > MAX_VISITS) {
        return;
    }
    (void)search(self, &owner, 1);
    if (self->seen[payload] == self->stamp) {
        add_way(self, cycle, payload, finding);
        drop_payload_from_via(finding);
    }
}

/* The members on a shortest way round, in order, the first last; 0: none. */
static uint32_t
find_round(struct cm_cycle *cycle, uint32_t edge, uint32_t *round)
{
    uint32_t from =
        edge != 0 ? cm_cycle_edge(cycle, edge)->head : cycle->holder;
    uint32_t to = edge != 0 ? cm_cycle_edge(cycle, edge)->tail : cycle->holder;
    uint32_t node = to, count = 0;

    if (from == to && edge != 0) {
        round[0] = from;
        return 1;
    }
    if (cm_cycle_reach(cycle, from, to, CM_ROLES_ALL) == 0) {
        return 0;
    }
    do {
        uint32_t came_by = cycle->came_by[cm_cycle_place(cycle, node)];

        round[count++] = node;
        node = cm_cycle_edge(cycle, came_by)->tail;
    } while (node != from);
    if (from != to) {
        round[count++] = from;
    }
    return count;
}

/* Copies the way round, which is listed backwards, from `owner` on. */
static void
list_round(const uint32_t *round, uint32_t count, uint32_t owner,
           struct cm_finding *finding)
{
    uint32_t start = count > 0 ? count - 1 : 0;

    for (uint32_t i = 0; i < count; i++) {
        start = round[i] == owner ? i : start;
    }
    for (uint32_t i = 0; i < count && i < CM_OUTLINE_COMPONENT; i++) {
        finding->component[finding->component_count++] =
            round[(start + count - i) % count];
    }
}

enum cm_status
cm_outline_component(struct cm_cycle *cycle, uint32_t edge, uint32_t owner,
                     struct cm_finding *finding)
{
    uint32_t *round = cm_calloc(cycle->size, sizeof *round);
    uint32_t count;

    finding->component =
        cm_calloc(CM_OUTLINE_COMPONENT, sizeof *finding->component);
    if (round == NULL || finding->component == NULL) {
        cm_free(round);
        return CM_NO_MEMORY;
    }
    count = find_round(cycle, edge, round);
    list_round(round, count, owner, finding);
    cm_free(round);
    finding->round_count = finding->component_count;
    for (uint32_t i = 0;
         i < cycle->size && finding->component_count < CM_OUTLINE_COMPONENT;
         i++) {
        if (!is_listed(finding->component, finding->round_count,
                       cycle->nodes[i])) {
            finding->component[finding->component_count++] = cycle->nodes[i];
        }
    }
    return CM_OK;
}
