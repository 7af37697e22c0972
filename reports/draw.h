/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DRAW_H
#define CM_DRAW_H

/* What a picture of a finding shows: the objects of the cycle and what they
 * hold, with containers folded into the references that lead through them and
 * everything beyond a bound folded into counts.  It knows neither Graphviz nor
 * where things stand: the layout (dot.c) fills the geometry in, and svg.h
 * writes it down. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leak.h"
#include "path.h"

/* Nodes of a drawing on the page. */
#define CM_DRAW_BRIEF 12

enum cm_draw_kind {
    CM_DRAW_MEMBER = 0, /* of the cycle */
    CM_DRAW_VIA,        /* between the cycle and its payload */
    CM_DRAW_PAYLOAD,    /* device memory */
    CM_DRAW_FOLD,       /* stands for several */
};

struct cm_draw_point {
    double x, y;
};

struct cm_draw_node {
    uint32_t vertex; /* 0: a fold */
    enum cm_draw_kind kind;
    bool member;     /* of the cycle (a payload can be one as well) */
    bool owner;      /* of the cycle: where its path begins */
    bool container;  /* may be folded into a reference */
    uint64_t bytes;  /* device bytes of a payload or of a fold */
    uint32_t folded; /* objects that a fold stands for */
    uint32_t rank;   /* what is left out first: the largest */
    char *title;     /* owned */
    char *detail;    /* owned: a second line, or NULL */
    struct cm_draw_point at, size; /* centre and extent, in pixels */
};

struct cm_draw_edge {
    uint32_t tail, head; /* positions in nodes */
    uint32_t edge;       /* of the document; one of them, if several */
    uint32_t count;      /* references that it stands for */
    bool suspect;        /* the reference to cut */
    char *label;         /* owned, or NULL */
    struct cm_draw_point label_at, label_size;
    struct cm_draw_point *points; /* owned: 1 + 3n, of a Bezier curve; the
                                   * arrow's tip comes last */
    size_t point_count;
};

/* A zeroed drawing is a valid empty one. */
struct cm_drawing {
    struct cm_draw_node *nodes; /* owned */
    size_t node_count, node_capacity;
    struct cm_draw_edge *edges; /* owned */
    size_t edge_count, edge_capacity;
    struct cm_draw_point size; /* of the whole, in pixels */
};

void cm_drawing_release(struct cm_drawing *self);

/* Chooses what is drawn of the cycles of one document. */
struct cm_draw {
    const struct cm_leak *leak; /* borrowed, unchanged meanwhile */
    struct cm_paths paths;
    uint32_t *slot;    /* owned: per vertex, its node's position + 1 */
    uint32_t *came_by; /* owned: per vertex, edge of the search */
    uint32_t *reached; /* owned: per vertex, when the search came: 0 never */
    uint32_t *queue;   /* owned */
};

enum cm_draw_way {
    CM_DRAW_RAW = 0, /* every object and every reference */
    CM_DRAW_MERGED,  /* parallel references are one */
    CM_DRAW_FOLDED,  /* and containers are folded into references */
};

/* Cost: O(vertices + edges) once.  `self` is zeroed before. */
enum cm_status cm_draw_init(struct cm_draw *self, const struct cm_leak *leak)
    CM_CHECKED;
void cm_draw_release(struct cm_draw *self);
/* At most `most` nodes (0: all).  `result` is zeroed before; on failure it is
 * to be released.  Cost: O(what the cycle reaches), bounded as in path.h. */
enum cm_status cm_draw_cycle(struct cm_draw *self, size_t cycle,
                             enum cm_draw_way way, size_t most,
                             struct cm_drawing *result) CM_CHECKED;

#endif
