/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Folding.  A container that a single reference leads to is no box of its own:
 * what it refers to is labelled with both steps, ".acts[0]".  Beyond the bound
 * of a drawing only what the path tells stays, and the rest becomes two counts,
 * one for the cycle and one for what it holds.  O(n log n) for the sorts. */
#include "fold.h"

#include <stdlib.h> // qsort()
#include <string.h>

#include "../detector/alloc.h"
#include "buffer.h"
#include "names.h"

/* Containers in a row that one label may tell. */
#define MAX_DEPTH 8
#define GONE UINT32_MAX
/* Boxes of device memory side by side that still read. */
#define MAX_PAYLOAD 4

/* How a node is reached. */
struct arrival {
    uint32_t count; /* references that lead to it */
    uint32_t edge;  /* one of them */
    uint32_t depth; /* folded containers up to and with it; 0: not folded */
    bool walked;
};

static void
count_arrivals(const struct cm_drawing *drawing, struct arrival *arrivals)
{
    for (size_t i = 0; i < drawing->edge_count; i++) {
        struct arrival *head = &arrivals[drawing->edges[i].head];

        head->count++;
        head->edge = (uint32_t)i;
    }
}

static uint32_t
parent(const struct cm_drawing *drawing, const struct arrival *arrivals,
       uint32_t node)
{
    return drawing->edges[arrivals[node].edge].tail;
}

/* Decides whether `node` and the containers above it are folded.  `trail` has
 * room for every node. */
static void
settle(struct cm_drawing *drawing, struct arrival *arrivals, uint32_t node,
       uint32_t *trail)
{
    struct cm_draw_node *nodes = drawing->nodes;
    size_t length = 0;
    uint32_t depth;

    while (nodes[node].container && !arrivals[node].walked) {
        arrivals[node].walked = true;
        trail[length++] = node;
        node = parent(drawing, arrivals, node);
    }
    if (nodes[node].container && arrivals[node].depth == 0) {
        nodes[node].container = false; /* containers in a ring: one stays */
    }
    depth = arrivals[node].depth;
    while (length > 0) {
        node = trail[--length];
        if (depth == MAX_DEPTH) {
            nodes[node].container = false;
        }
        depth = nodes[node].container ? depth + 1 : 0;
        arrivals[node].depth = depth;
    }
}

/* The label of an edge with the containers before it. */
static enum cm_status
label_edge(const struct cm_leak *leak, struct cm_drawing *drawing,
           const struct arrival *arrivals, struct cm_draw_edge *edge)
{
    struct cm_buffer text = {0};
    uint32_t way[MAX_DEPTH + 1];
    size_t length = 0;
    bool in_dict = false;
    enum cm_status status;

    way[length++] = edge->edge;
    while (arrivals[edge->tail].depth > 0 && length <= MAX_DEPTH) {
        const struct cm_draw_edge *into =
            &drawing->edges[arrivals[edge->tail].edge];

        way[length++] = into->edge;
        edge->suspect = edge->suspect || into->suspect;
        edge->tail = into->tail;
    }
    while (length > 0) {
        uint32_t step = way[--length];

        cm_name_add_edge(&text, leak, step, in_dict);
        in_dict = strcmp(cm_leak_text(leak, leak->edges[step - 1].annotation),
                         "__dict__")
                  == 0;
    }
    status = cm_buffer_status(&text);
    if (status == CM_OK) {
        edge->label = cm_strdup(cm_buffer_text(&text));
        status = edge->label != NULL ? CM_OK : CM_NO_MEMORY;
    }
    cm_buffer_release(&text);
    return status;
}

/* Takes out the nodes whose place in `map` is GONE and moves the others; an
 * edge at a node that is gone is taken out as well. */
static void
renumber(struct cm_drawing *drawing, const uint32_t *map)
{
    size_t kept = 0;

    for (size_t i = 0; i < drawing->edge_count; i++) {
        struct cm_draw_edge edge = drawing->edges[i];

        if (map[edge.tail] == GONE || map[edge.head] == GONE) {
            cm_free(edge.label);
            continue;
        }
        edge.tail = map[edge.tail];
        edge.head = map[edge.head];
        drawing->edges[kept++] = edge;
    }
    drawing->edge_count = kept;
    kept = 0;
    for (size_t i = 0; i < drawing->node_count; i++) {
        if (map[i] != GONE) {
            drawing->nodes[kept++] = drawing->nodes[i];
        }
        else {
            cm_free(drawing->nodes[i].title);
        }
    }
    drawing->node_count = kept;
}

static enum cm_status
apply_containers(const struct cm_leak *leak, struct cm_drawing *drawing,
                 const struct arrival *arrivals, uint32_t *map)
{
    enum cm_status status = CM_OK;
    uint32_t kept = 0;

    for (size_t i = 0; status == CM_OK && i < drawing->edge_count; i++) {
        struct cm_draw_edge *edge = &drawing->edges[i];

        if (arrivals[edge->head].depth == 0) {
            status = label_edge(leak, drawing, arrivals, edge);
        }
    }
    for (size_t i = 0; i < drawing->node_count; i++) {
        map[i] = arrivals[i].depth > 0 ? GONE : kept++;
    }
    if (status == CM_OK) {
        renumber(drawing, map);
    }
    return status;
}

enum cm_status
cm_fold_containers(const struct cm_leak *leak, struct cm_drawing *drawing)
{
    size_t count = drawing->node_count;
    struct arrival *arrivals = cm_calloc(count + 1, sizeof(*arrivals));
    uint32_t *work = cm_calloc(count + 1, sizeof(*work));
    enum cm_status status = CM_NO_MEMORY;

    if (arrivals == NULL || work == NULL) {
        goto done;
    }
    count_arrivals(drawing, arrivals);
    for (size_t i = 0; i < count; i++) {
        struct cm_draw_node *node = &drawing->nodes[i];

        node->container =
            node->container && !node->owner && arrivals[i].count == 1;
    }
    for (size_t i = 0; i < count; i++) {
        settle(drawing, arrivals, (uint32_t)i, work);
    }
    status = apply_containers(leak, drawing, arrivals, work);
done:
    cm_free(arrivals);
    cm_free(work);
    return status;
}

/* ===== counts =========================================================== */

struct place {
    uint32_t rank;
    uint32_t position;
};

static int
compare_places(const void *left, const void *right)
{
    const struct place *a = left, *b = right;

    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return a->position < b->position ? -1 : 1;
}

/* Sets map to GONE for what does not stay, 0 for what does: of what the path
 * tells at most `stay`. */
static enum cm_status
choose_nodes(const struct cm_drawing *drawing, size_t stay, uint32_t *map)
{
    size_t count = drawing->node_count;
    struct place *places = cm_calloc(count, sizeof(*places));

    if (places == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct place){
            .rank = drawing->nodes[i].rank,
            .position = (uint32_t)i,
        };
    }
    qsort(places, count, sizeof(*places), compare_places);
    for (size_t i = 0; i < count; i++) {
        map[places[i].position] =
            i < stay && places[i].rank != UINT32_MAX ? 0 : GONE;
    }
    cm_free(places);
    return CM_OK;
}

/* Which fold a node goes into: members are the first. */
static size_t
fold_of(const struct cm_draw_node *node)
{
    return node->kind == CM_DRAW_MEMBER ? 0 : 1;
}

/* Counts what goes into both folds. */
static void
fill_folds(const struct cm_drawing *drawing, const uint32_t *map,
           struct cm_draw_node folds[2])
{
    uint32_t payloads = 0;

    for (size_t i = 0; i < drawing->node_count; i++) {
        const struct cm_draw_node *node = &drawing->nodes[i];

        if (map[i] == GONE) {
            folds[fold_of(node)].folded++;
            folds[fold_of(node)].bytes += node->bytes;
            payloads += node->kind == CM_DRAW_PAYLOAD;
        }
    }
    if (payloads > 0) {
        folds[1].folded = payloads;
    }
}

/* Moves the ends of references from nodes that are gone to their fold; what
 * then leads from a fold to itself says nothing. */
static void
move_ends(struct cm_drawing *drawing, const uint32_t *map,
          const uint32_t folds_at[2])
{
    const struct cm_draw_node *nodes = drawing->nodes;
    size_t kept = 0;

    for (size_t i = 0; i < drawing->edge_count; i++) {
        struct cm_draw_edge *edge = &drawing->edges[i];

        if (map[edge->tail] == GONE) {
            edge->tail = folds_at[fold_of(&nodes[edge->tail])];
        }
        if (map[edge->head] == GONE) {
            edge->head = folds_at[fold_of(&nodes[edge->head])];
        }
        if (edge->tail == edge->head && nodes[edge->tail].vertex == 0) {
            cm_free(edge->label);
            continue;
        }
        drawing->edges[kept++] = *edge;
    }
    drawing->edge_count = kept;
}

static enum cm_status
fold_nodes(struct cm_drawing *drawing, size_t most)
{
    struct cm_draw_node folds[2] = {{.kind = CM_DRAW_MEMBER, .member = true},
                                    {.kind = CM_DRAW_FOLD}};
    uint32_t folds_at[2] = {GONE, GONE}, kept = 0;
    uint32_t *map = cm_calloc(drawing->node_count + 2, sizeof(*map));
    enum cm_status status =
        cm_grow((void **)&drawing->nodes, &drawing->node_capacity,
                drawing->node_count + 2, sizeof(*drawing->nodes));

    if (map == NULL || status != CM_OK) {
        status = CM_NO_MEMORY;
        goto done;
    }
    status = choose_nodes(drawing, most > 2 ? most - 2 : 0, map);
    if (status != CM_OK) {
        goto done;
    }
    fill_folds(drawing, map, folds);
    for (size_t i = 0; i < 2; i++) {
        if (folds[i].folded > 0) {
            folds_at[i] = (uint32_t)drawing->node_count;
            drawing->nodes[drawing->node_count++] = folds[i];
        }
    }
    move_ends(drawing, map, folds_at);
    for (size_t i = 0; i < drawing->node_count; i++) {
        map[i] = map[i] == GONE ? GONE : kept++;
    }
    renumber(drawing, map);
done:
    cm_free(map);
    return status;
}

/* By ends, the suspect first among equals. */
static int
compare_edges(const void *left, const void *right)
{
    const struct cm_draw_edge *a = left, *b = right;

    if (a->tail != b->tail) {
        return a->tail < b->tail ? -1 : 1;
    }
    if (a->head != b->head) {
        return a->head < b->head ? -1 : 1;
    }
    if (a->suspect != b->suspect) {
        return a->suspect ? -1 : 1;
    }
    return a->edge < b->edge ? -1 : a->edge > b->edge;
}

static void
merge_parallel(struct cm_drawing *drawing)
{
    size_t kept = 0;

    if (drawing->edge_count > 0) {
        qsort(drawing->edges, drawing->edge_count, sizeof(*drawing->edges),
              compare_edges);
    }
    for (size_t i = 0; i < drawing->edge_count; i++) {
        struct cm_draw_edge *edge = &drawing->edges[i];
        struct cm_draw_edge *last = &drawing->edges[kept ? kept - 1 : 0];

        if (kept > 0 && last->tail == edge->tail && last->head == edge->head) {
            last->count += edge->count;
            cm_free(edge->label);
            continue;
        }
        drawing->edges[kept++] = *edge;
    }
    drawing->edge_count = kept;
}

static size_t
count_payload(const struct cm_drawing *drawing)
{
    size_t count = 0;

    for (size_t i = 0; i < drawing->node_count; i++) {
        count += drawing->nodes[i].kind == CM_DRAW_PAYLOAD;
    }
    return count;
}

enum cm_status
cm_fold_rest(struct cm_drawing *drawing, size_t most)
{
    enum cm_status status = CM_OK;

    if (most > 0
        && (drawing->node_count > most
            || count_payload(drawing) > MAX_PAYLOAD)) {
        status = fold_nodes(drawing, most);
    }
    merge_parallel(drawing);
    return status;
}
