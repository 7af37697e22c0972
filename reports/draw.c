/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * From a cycle to the few boxes that a person can take in.  In order: gather
 * the component, and by one breadth-first search the nearest object of each
 * payload with the way to it; list the references among them; rank them, so
 * that what the path (path.h) tells is left out last; fold (fold.h); name.
 * Linear in what was gathered, but for a sort. */
#include "draw.h"

#include "../detector/alloc.h"
#include "../detector/size.h"
#include "buffer.h"
#include "fold.h"
#include "names.h"

void
cm_drawing_release(struct cm_drawing *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->node_count; i++) {
        cm_free(self->nodes[i].title);
        cm_free(self->nodes[i].detail);
    }
    for (size_t i = 0; i < self->edge_count; i++) {
        cm_free(self->edges[i].label);
        cm_free(self->edges[i].points);
    }
    cm_free(self->nodes);
    cm_free(self->edges);
    *self = (struct cm_drawing){0};
}

enum cm_status
cm_draw_init(struct cm_draw *self, const struct cm_leak *leak)
{
    size_t room = leak->vertex_count + 1;
    enum cm_status status = cm_paths_init(&self->paths, leak);

    if (status != CM_OK) {
        goto done;
    }
    status = CM_NO_MEMORY;
    self->leak = leak;
    self->slot = cm_calloc(room, sizeof(*self->slot));
    self->came_by = cm_calloc(room, sizeof(*self->came_by));
    self->reached = cm_calloc(room, sizeof(*self->reached));
    self->queue = cm_calloc(room, sizeof(*self->queue));
    if (self->slot && self->came_by && self->reached && self->queue) {
        status = CM_OK;
    }
done:
    if (status != CM_OK) {
        cm_draw_release(self);
    }
    return status;
}

void
cm_draw_release(struct cm_draw *self)
{
    if (self == NULL) {
        return;
    }
    cm_paths_release(&self->paths);
    cm_free(self->slot);
    cm_free(self->came_by);
    cm_free(self->reached);
    cm_free(self->queue);
    *self = (struct cm_draw){0};
}

/* ===== gather: the objects ============================================= */

/* Adds the vertex unless it is there already. */
static enum cm_status
add_node(struct cm_draw *self, uint32_t vertex, enum cm_draw_kind kind,
         struct cm_drawing *drawing)
{
    enum cm_status status;

    if (self->slot[vertex] != 0) {
        return CM_OK;
    }
    status = cm_grow((void **)&drawing->nodes, &drawing->node_capacity,
                     drawing->node_count + 1, sizeof(*drawing->nodes));
    if (status != CM_OK) {
        return status;
    }
    drawing->nodes[drawing->node_count++] = (struct cm_draw_node){
        .vertex = vertex,
        .kind = kind,
        .member = kind == CM_DRAW_MEMBER,
        .container = cm_name_folded(self->leak, vertex),
        .rank = UINT32_MAX,
    };
    self->slot[vertex] = (uint32_t)drawing->node_count;
    return CM_OK;
}

/* Numbers what the members lead to in the order of distance; returns how many
 * were reached, which stand in the queue. */
static size_t
search(struct cm_draw *self, const struct cm_leak_cycle *cycle)
{
    size_t count = 0;

    for (size_t i = 0; i < cycle->vertex_count; i++) {
        if (self->reached[cycle->vertices[i]] == 0) {
            self->queue[count++] = cycle->vertices[i];
            self->reached[cycle->vertices[i]] = (uint32_t)count;
            self->came_by[cycle->vertices[i]] = 0;
        }
    }
    for (size_t i = 0; i < count && count < CM_PATH_MAX_VISITS; i++) {
        uint32_t tail = self->queue[i];

        for (uint32_t j = self->paths.first[tail];
             j < self->paths.first[tail + 1]; j++) {
            uint32_t edge = self->paths.by_tail[j];
            uint32_t head = self->leak->edges[edge - 1].head;

            if (self->reached[head] == 0) {
                self->queue[count++] = head;
                self->reached[head] = (uint32_t)count;
                self->came_by[head] = edge;
            }
        }
    }
    return count;
}

/* The object of the storage that the search met first; 0: none. */
static uint32_t
nearest(const struct cm_draw *self, const struct cm_leak_storage *storage)
{
    uint32_t best = 0;

    for (size_t i = 0; i < storage->vertex_count; i++) {
        uint32_t vertex = storage->vertices[i];

        if (self->reached[vertex] != 0
            && (best == 0 || self->reached[vertex] < self->reached[best])) {
            best = vertex;
        }
    }
    return best;
}

/* Adds the object that stands for a storage, and the way to it. */
static enum cm_status
add_payload(struct cm_draw *self, const struct cm_leak_storage *storage,
            struct cm_drawing *drawing)
{
    uint32_t vertex = nearest(self, storage);
    enum cm_status status;

    if (vertex == 0) {
        return CM_OK;
    }
    status = add_node(self, vertex, CM_DRAW_PAYLOAD, drawing);
    if (status == CM_OK) {
        struct cm_draw_node *node = &drawing->nodes[self->slot[vertex] - 1];

        node->kind = CM_DRAW_PAYLOAD;
        node->bytes += storage->bytes;
        node->container = false;
    }
    while (status == CM_OK && self->came_by[vertex] != 0) {
        vertex = self->leak->edges[self->came_by[vertex] - 1].tail;
        if (self->slot[vertex] != 0) {
            break;
        }
        status = add_node(self, vertex, CM_DRAW_VIA, drawing);
    }
    return status;
}

static enum cm_status
gather(struct cm_draw *self, const struct cm_leak_cycle *cycle,
       struct cm_drawing *drawing)
{
    size_t reached = search(self, cycle);
    enum cm_status status = CM_OK;

    for (size_t i = 0; status == CM_OK && i < cycle->vertex_count; i++) {
        status = add_node(self, cycle->vertices[i], CM_DRAW_MEMBER, drawing);
    }
    for (size_t i = 0; status == CM_OK && i < cycle->payload_count; i++) {
        status = add_payload(
            self, &self->leak->storages[cycle->payload[i] - 1], drawing);
    }
    for (size_t i = 0; i < reached; i++) {
        self->reached[self->queue[i]] = 0;
    }
    return status;
}

/* ===== list: the references ============================================ */

static bool
is_cut(const struct cm_leak_cycle *cycle, uint32_t edge)
{
    return cycle->cut_count > 0 && cycle->cut[0] == edge;
}

static enum cm_status
list_edges(struct cm_draw *self, const struct cm_leak_cycle *cycle,
           struct cm_drawing *drawing)
{
    enum cm_status status = CM_OK;

    for (size_t i = 0; status == CM_OK && i < drawing->node_count; i++) {
        uint32_t tail = drawing->nodes[i].vertex;

        for (uint32_t j = self->paths.first[tail];
             j < self->paths.first[tail + 1]; j++) {
            uint32_t edge = self->paths.by_tail[j];
            uint32_t head = self->slot[self->leak->edges[edge - 1].head];

            if (head == 0) {
                continue;
            }
            status = cm_grow((void **)&drawing->edges, &drawing->edge_capacity,
                             drawing->edge_count + 1, sizeof(*drawing->edges));
            if (status != CM_OK) {
                break;
            }
            drawing->edges[drawing->edge_count++] = (struct cm_draw_edge){
                .tail = (uint32_t)i,
                .head = head - 1,
                .edge = edge,
                .count = 1,
                .suspect = is_cut(cycle, edge),
            };
        }
    }
    return status;
}

/* ===== rank: what the path tells comes first ============================ */

static void
rank_vertex(const struct cm_draw *self, uint32_t vertex, uint32_t *next,
            struct cm_drawing *drawing)
{
    uint32_t slot = self->slot[vertex];

    if (slot != 0 && drawing->nodes[slot - 1].rank == UINT32_MAX) {
        drawing->nodes[slot - 1].rank = (*next)++;
    }
}

/* Owner, both ends of the suspect, then from the payload backwards. */
static void
rank_path(const struct cm_draw *self, const struct cm_path *path,
          struct cm_drawing *drawing)
{
    uint32_t next = 0;

    for (size_t i = 0; i < path->count; i++) {
        if (i == 0 || path->steps[i].suspect || path->steps[i - 1].suspect) {
            rank_vertex(self, path->steps[i].vertex, &next, drawing);
        }
    }
    for (size_t i = path->count; i > 0; i--) {
        rank_vertex(self, path->steps[i - 1].vertex, &next, drawing);
    }
    if (path->count > 0 && self->slot[path->steps[0].vertex] != 0) {
        drawing->nodes[self->slot[path->steps[0].vertex] - 1].owner = true;
    }
}

/* The names that the path has for its objects: "cell self", not "cell". */
static enum cm_status
take_names(const struct cm_draw *self, const struct cm_path *path,
           struct cm_drawing *drawing)
{
    for (size_t i = 0; i < path->count; i++) {
        uint32_t slot = self->slot[path->steps[i].vertex];

        if (slot == 0 || drawing->nodes[slot - 1].title != NULL) {
            continue;
        }
        drawing->nodes[slot - 1].title = cm_strdup(path->steps[i].name);
        if (drawing->nodes[slot - 1].title == NULL) {
            return CM_NO_MEMORY;
        }
    }
    return CM_OK;
}

/* ===== name: what stands in the boxes =================================== */

/* Takes the text out of the buffer and leaves it empty. */
static enum cm_status
take_text(struct cm_buffer *text, char **result)
{
    enum cm_status status = cm_buffer_status(text);

    if (status == CM_OK) {
        *result = cm_strdup(cm_buffer_text(text));
        status = *result != NULL ? CM_OK : CM_NO_MEMORY;
    }
    cm_buffer_clear(text);
    return status;
}

static const char *
device_of(const struct cm_leak *leak, uint32_t vertex)
{
    uint32_t storage = leak->vertices[vertex - 1].storage;

    return storage == 0
               ? ""
               : cm_leak_text(leak, leak->storages[storage - 1].device);
}

static void
add_title(const struct cm_leak *leak, const struct cm_draw_node *node,
          enum cm_draw_way way, struct cm_buffer *text)
{
    if (node->vertex == 0) {
        cm_buffer_addf(text, "%u more %s%s", node->folded,
                       node->bytes > 0 ? "tensor" : "object",
                       node->folded == 1 ? "" : "s");
    }
    else if (way == CM_DRAW_RAW) {
        cm_buffer_add_text(
            text,
            cm_leak_text(leak, leak->vertices[node->vertex - 1].annotation));
    }
    else {
        cm_name_add_vertex(text, leak, node->vertex);
    }
}

static void
add_detail(const struct cm_leak *leak, const struct cm_draw_node *node,
           struct cm_buffer *text)
{
    char size[CM_SIZE_TEXT_BYTES];

    if (node->bytes > 0) {
        cm_size_format(node->bytes, size);
        cm_buffer_add_text(text, size);
        if (node->vertex != 0) {
            cm_buffer_addf(text, " %s", device_of(leak, node->vertex));
        }
    }
    else if (node->vertex == 0) {
        cm_buffer_add_text(text, node->kind == CM_DRAW_MEMBER ? "of this cycle"
                                                              : "held by it");
    }
}

static enum cm_status
name_nodes(const struct cm_leak *leak, enum cm_draw_way way,
           struct cm_drawing *drawing)
{
    struct cm_buffer text = {0};
    enum cm_status status = CM_OK;

    for (size_t i = 0; status == CM_OK && i < drawing->node_count; i++) {
        struct cm_draw_node *node = &drawing->nodes[i];

        if (node->title == NULL) {
            add_title(leak, node, way, &text);
            status = take_text(&text, &node->title);
        }
        if (status == CM_OK && way != CM_DRAW_RAW) {
            add_detail(leak, node, &text);
            status = take_text(&text, &node->detail);
        }
    }
    cm_buffer_release(&text);
    return status;
}

/* Labels that folding has not made yet. */
static enum cm_status
name_edges(const struct cm_leak *leak, enum cm_draw_way way,
           struct cm_drawing *drawing)
{
    struct cm_buffer text = {0};
    enum cm_status status = CM_OK;

    for (size_t i = 0; status == CM_OK && i < drawing->edge_count; i++) {
        struct cm_draw_edge *edge = &drawing->edges[i];

        if (edge->label != NULL) {
            continue;
        }
        if (way == CM_DRAW_RAW) {
            cm_buffer_add_text(
                &text,
                cm_leak_text(leak, leak->edges[edge->edge - 1].annotation));
        }
        else {
            cm_name_add_edge(&text, leak, edge->edge, false);
        }
        status = take_text(&text, &edge->label);
    }
    cm_buffer_release(&text);
    return status;
}

/* ===== the whole ======================================================== */

static void
forget(struct cm_draw *self, const struct cm_drawing *drawing)
{
    for (size_t i = 0; i < drawing->node_count; i++) {
        self->slot[drawing->nodes[i].vertex] = 0;
    }
}

static enum cm_status
choose(struct cm_draw *self, size_t cycle, enum cm_draw_way way,
       struct cm_drawing *drawing)
{
    struct cm_path path = {0};
    enum cm_status status = gather(self, &self->leak->cycles[cycle], drawing);

    if (status == CM_OK) {
        status = list_edges(self, &self->leak->cycles[cycle], drawing);
    }
    if (status == CM_OK) {
        status = cm_paths_find(&self->paths, cycle, &path);
    }
    if (status == CM_OK) {
        rank_path(self, &path, drawing);
    }
    if (status == CM_OK && way != CM_DRAW_RAW) {
        status = take_names(self, &path, drawing);
    }
    cm_path_release(&path);
    forget(self, drawing);
    return status;
}

enum cm_status
cm_draw_cycle(struct cm_draw *self, size_t cycle, enum cm_draw_way way,
              size_t most, struct cm_drawing *result)
{
    enum cm_status status = choose(self, cycle, way, result);

    if (status == CM_OK && way == CM_DRAW_FOLDED) {
        status = cm_fold_containers(self->leak, result);
    }
    if (status == CM_OK && way != CM_DRAW_RAW) {
        status = cm_fold_rest(result, most);
    }
    if (status == CM_OK) {
        status = name_nodes(self->leak, way, result);
    }
    if (status == CM_OK) {
        status = name_edges(self->leak, way, result);
    }
    return status;
}
