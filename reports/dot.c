/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Graphviz, kept in a cage.  It is asked for positions only: boxes come to it
 * with their extent and without text, and svg.c writes what it placed.  So no
 * text of the traced program and no font reaches it, and equal reports give
 * equal drawings on every machine.
 *
 * A batch is laid out in one child (child.h).  When the child dies at drawing
 * k, what came before is kept, k is tried in the next cheaper way, and the
 * rest goes on in a new child.  Sizes after PERFORMANCE 2.6. */
#include "dot.h"

#include <cgraph.h>
#include <gvc.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../detector/alloc.h"
#include "buffer.h"
#include "child.h"
#include "draw.h"
#include "escape.h"
#include "svg.h"

/* dot takes seconds beyond these, sfdp beyond the third. */
#define DOT_NODES 150
#define DOT_EDGES 300
#define SFDP_NODES 2000

static const struct cm_child_limits usual_limits = {
    .bytes = (size_t)1 << 30, .cpu_seconds = 10, .wall_ms = 15000};

/* Ways of drawing, cheaper and cheaper. */
enum way {
    WAY_WHOLE = 0, /* all of it, by the engine for its size */
    WAY_SPREAD,    /* all of it, by sfdp */
    WAY_BRIEF,     /* at most a dozen nodes, by dot */
    WAY_NONE,
};

/* ===== a graph by cgraph's calls ======================================== */

/* cgraph takes char * where it only reads. */
static char *
loose(const char *text)
{
    return (char *)(uintptr_t)text;
}

static Agraph_t *
open_graph(Agdisc_t *discipline)
{
    Agraph_t *graph = agopen(loose("cumem"), Agdirected, discipline);

    if (graph != NULL) {
        agattr(graph, AGNODE, loose("shape"), loose("box"));
        agattr(graph, AGNODE, loose("label"), loose(""));
        agattr(graph, AGEDGE, loose("label"), loose(""));
    }
    return graph;
}

static Agnode_t *
add_node(Agraph_t *graph, size_t position)
{
    char name[24];

    snprintf(name, sizeof(name), "n%zu", position + 1);
    return agnode(graph, name, 1);
}

/* The key tells parallel references apart. */
static Agedge_t *
add_edge(Agraph_t *graph, Agnode_t *const *nodes,
         const struct cm_drawing *drawing, size_t position)
{
    const struct cm_draw_edge *edge = &drawing->edges[position];
    char key[24];

    snprintf(key, sizeof(key), "e%zu", position + 1);
    return agedge(graph, nodes[edge->tail], nodes[edge->head], key, 1);
}

/* ===== DOT ============================================================== */

static void
set_label(void *object, const char *text, struct cm_buffer *scratch)
{
    cm_buffer_clear(scratch);
    cm_escape_graphviz(scratch, text);
    agsafeset(object, loose("label"), loose(cm_buffer_text(scratch)),
              loose(""));
}

static void
fill_dot_node(Agnode_t *node, const struct cm_draw_node *drawn,
              struct cm_buffer *scratch)
{
    set_label(node, drawn->title, scratch);
    if (drawn->kind == CM_DRAW_PAYLOAD) {
        agsafeset(node, loose("style"), loose("filled"), loose(""));
    }
    if (drawn->owner) {
        agsafeset(node, loose("penwidth"), loose("2"), loose("1"));
    }
}

static void
fill_dot_edge(Agedge_t *edge, const struct cm_draw_edge *drawn,
              struct cm_buffer *scratch)
{
    set_label(edge, drawn->label, scratch);
    if (drawn->suspect) {
        agsafeset(edge, loose("color"), loose("red"), loose("black"));
        agsafeset(edge, loose("style"), loose("dashed"), loose("solid"));
    }
}

static enum cm_status
fill_dot(Agraph_t *graph, const struct cm_drawing *drawing)
{
    Agnode_t **nodes = cm_calloc(drawing->node_count + 1, sizeof(*nodes));
    struct cm_buffer scratch = {0};
    enum cm_status status = nodes != NULL ? CM_OK : CM_NO_MEMORY;

    for (size_t i = 0; status == CM_OK && i < drawing->node_count; i++) {
        nodes[i] = add_node(graph, i);
        if (nodes[i] == NULL) {
            status = CM_NO_MEMORY;
            break;
        }
        fill_dot_node(nodes[i], &drawing->nodes[i], &scratch);
        status = cm_buffer_status(&scratch);
    }
    for (size_t i = 0; status == CM_OK && i < drawing->edge_count; i++) {
        Agedge_t *edge = add_edge(graph, nodes, drawing, i);

        if (edge == NULL) {
            status = CM_NO_MEMORY;
            break;
        }
        fill_dot_edge(edge, &drawing->edges[i], &scratch);
        status = cm_buffer_status(&scratch);
    }
    cm_buffer_release(&scratch);
    cm_free(nodes);
    return status;
}

static int
put_text(void *channel, const char *text)
{
    cm_buffer_add_text(channel, text);
    return 0;
}

static int
put_nothing(void *channel)
{
    (void)channel;
    return 0;
}

enum cm_status
cm_dot_write(const struct cm_leak *leak, size_t cycle, struct cm_buffer *out)
{
    Agiodisc_t to_buffer = {.putstr = put_text, .flush = put_nothing};
    /* By name: Graphviz 2 has a field for memory before these two. */
    Agdisc_t discipline = {.id = &AgIdDisc, .io = &to_buffer};
    struct cm_draw draw = {0};
    struct cm_drawing drawing = {0};
    Agraph_t *graph = NULL;
    enum cm_status status = cm_draw_init(&draw, leak);

    if (status == CM_OK) {
        status = cm_draw_cycle(&draw, cycle, CM_DRAW_RAW, 0, &drawing);
    }
    if (status == CM_OK) {
        graph = open_graph(&discipline);
        status = graph != NULL ? fill_dot(graph, &drawing) : CM_NO_MEMORY;
    }
    if (status == CM_OK) {
        agwrite(graph, out);
        status = cm_buffer_status(out);
    }
    if (graph != NULL) {
        agclose(graph);
    }
    cm_drawing_release(&drawing);
    cm_draw_release(&draw);
    return status;
}

/* ===== layout, in the child ============================================= */

static void
set_inches(Agnode_t *node, const char *name, double pixels)
{
    char text[32];

    snprintf(text, sizeof(text), "%ld.%03ld", (long)(pixels / POINTS_PER_INCH),
             (long)(pixels / POINTS_PER_INCH * 1000) % 1000);
    agsafeset(node, loose(name), text, loose("1"));
}

/* Room for a label that Graphviz does not see: an empty table of its size.
 * The text stays until the graph is closed: how to give it back differs
 * between versions of Graphviz. */
static void
set_room(Agraph_t *graph, Agedge_t *edge, struct cm_draw_point size)
{
    char text[200], *html;

    if (size.x <= 0) {
        return;
    }
    snprintf(text, sizeof(text),
             "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLPADDING=\"0\" "
             "CELLSPACING=\"0\" FIXEDSIZE=\"TRUE\" WIDTH=\"%d\" "
             "HEIGHT=\"%d\"><TR><TD></TD></TR></TABLE>",
             (int)size.x, (int)size.y);
    html = agstrdup_html(graph, text);
    agsafeset(edge, loose("label"), html, loose(""));
}

static size_t
owner_of(const struct cm_drawing *drawing)
{
    for (size_t i = 0; i < drawing->node_count; i++) {
        if (drawing->nodes[i].owner) {
            return i;
        }
    }
    return 0;
}

static Agraph_t *
plan(const struct cm_drawing *drawing, bool labels, Agnode_t **nodes,
     Agedge_t **edges)
{
    Agraph_t *graph = open_graph(NULL);

    if (graph == NULL) {
        return NULL;
    }
    agsafeset(graph, loose("nodesep"), loose("0.3"), loose(""));
    agsafeset(graph, loose("ranksep"), loose("0.35"), loose(""));
    agsafeset(graph, loose("overlap"), loose("prism"), loose(""));
    agsafeset(graph, loose("splines"), loose(labels ? "true" : "line"),
              loose(""));
    agattr(graph, AGNODE, loose("fixedsize"), loose("true"));
    add_node(graph, owner_of(drawing)); /* dot puts the first on top */
    for (size_t i = 0; i < drawing->node_count; i++) {
        nodes[i] = add_node(graph, i);
        set_inches(nodes[i], "width", drawing->nodes[i].size.x);
        set_inches(nodes[i], "height", drawing->nodes[i].size.y);
    }
    for (size_t i = 0; i < drawing->edge_count; i++) {
        edges[i] = add_edge(graph, nodes, drawing, i);
        if (labels) {
            set_room(graph, edges[i], drawing->edges[i].label_size);
        }
    }
    return graph;
}

/* Graphviz counts upwards, SVG downwards. */
static struct cm_draw_point
place(boxf frame, pointf at)
{
    return (struct cm_draw_point){at.x - frame.LL.x, frame.UR.y - at.y};
}

/* The curve and, behind it, the arrow's tip. */
static enum cm_status
take_curve(boxf frame, Agedge_t *edge, struct cm_draw_edge *drawn)
{
    const splines *curves = ED_spl(edge);
    const bezier *curve;

    if (curves == NULL || curves->size < 1 || curves->list[0].size < 1) {
        return CM_OK;
    }
    curve = &curves->list[0];
    drawn->points = cm_calloc((size_t)curve->size + 1, sizeof(*drawn->points));
    if (drawn->points == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < (size_t)curve->size; i++) {
        drawn->points[i] = place(frame, curve->list[i]);
    }
    drawn->points[curve->size] =
        place(frame, curve->eflag ? curve->ep : curve->list[curve->size - 1]);
    drawn->point_count = (size_t)curve->size + 1;
    return CM_OK;
}

static enum cm_status
take_places(Agraph_t *graph, Agnode_t *const *nodes, Agedge_t *const *edges,
            struct cm_drawing *drawing)
{
    boxf frame = GD_bb(graph);
    enum cm_status status = CM_OK;

    drawing->size = place(frame, (pointf){frame.UR.x, frame.LL.y});
    for (size_t i = 0; i < drawing->node_count; i++) {
        drawing->nodes[i].at = place(frame, ND_coord(nodes[i]));
    }
    for (size_t i = 0; status == CM_OK && i < drawing->edge_count; i++) {
        struct cm_draw_edge *drawn = &drawing->edges[i];

        status = take_curve(frame, edges[i], drawn);
        if (ED_label(edges[i]) != NULL) {
            drawn->label_at = place(frame, ED_label(edges[i])->pos);
        }
        else {
            drawn->label_size.x = 0;
        }
    }
    return status;
}

/* Nothing of the graph is freed: the child ends soon. */
static enum cm_status
lay_out(GVC_t *graphviz, const char *engine, struct cm_drawing *drawing)
{
    Agnode_t **nodes = cm_calloc(drawing->node_count + 1, sizeof(*nodes));
    Agedge_t **edges = cm_calloc(drawing->edge_count + 1, sizeof(*edges));
    enum cm_status status = CM_NO_MEMORY;
    Agraph_t *graph;

    if (nodes == NULL || edges == NULL) {
        goto done;
    }
    graph = plan(drawing, strcmp(engine, "dot") == 0, nodes, edges);
    if (graph == NULL) {
        goto done;
    }
    status = CM_LIMIT;
    if (gvLayout(graphviz, graph, engine) == 0) {
        status = take_places(graph, nodes, edges, drawing);
    }
done:
    cm_free(nodes);
    cm_free(edges);
    return status;
}

static bool
fits_dot(const struct cm_drawing *drawing)
{
    return drawing->node_count <= DOT_NODES
           && drawing->edge_count <= DOT_EDGES;
}

static enum cm_status
choose(struct cm_draw *draw, size_t cycle, enum way way,
       struct cm_drawing *drawing)
{
    enum cm_status status = CM_OK;

    if (way != WAY_BRIEF) {
        status = cm_draw_cycle(draw, cycle, CM_DRAW_MERGED, 0, drawing);
        if (status != CM_OK || drawing->node_count <= SFDP_NODES) {
            return status;
        }
        cm_drawing_release(drawing);
    }
    return cm_draw_cycle(draw, cycle, CM_DRAW_FOLDED, CM_DRAW_BRIEF, drawing);
}

static enum cm_status
draw_one(GVC_t *graphviz, struct cm_draw *draw, size_t cycle, enum way way,
         bool alone, struct cm_buffer *out)
{
    struct cm_drawing drawing = {0};
    enum cm_status status = choose(draw, cycle, way, &drawing);

    if (status == CM_OK) {
        bool spread = way == WAY_SPREAD || !fits_dot(&drawing);

        cm_svg_measure(&drawing);
        status = lay_out(graphviz, spread ? "sfdp" : "dot", &drawing);
    }
    if (status == CM_OK) {
        cm_svg_write(&drawing, alone, out);
        status = cm_buffer_status(out);
    }
    cm_drawing_release(&drawing);
    return status;
}

/* ===== batches ========================================================== */

struct batch {
    struct cm_draw draw;
    const size_t *cycles;
    size_t count;
    size_t next;   /* the first that is not done */
    enum way way;  /* for the next one */
    enum way best; /* for those after it */
    bool alone;
    struct cm_child_limits limits;
};

static int
keep_quiet(char *text)
{
    (void)text;
    return 0;
}

/* A drawing goes back as its length and its bytes. */
static bool
send(int fd, const struct cm_buffer *svg)
{
    uint64_t length = svg->length;

    return cm_child_write(fd, &length, sizeof(length))
           && cm_child_write(fd, svg->bytes, svg->length);
}

/* A cm_child_work. */
static bool
draw_batch(int fd, void *context)
{
    struct batch *batch = context;
    struct cm_buffer svg = {0};
    GVC_t *graphviz = gvContext();
    enum way way = batch->way;

    agseterrf(keep_quiet);
    for (size_t i = batch->next; i < batch->count; i++) {
        cm_buffer_clear(&svg);
        if (draw_one(graphviz, &batch->draw, batch->cycles[i], way,
                     batch->alone, &svg)
                != CM_OK
            || !send(fd, &svg)) {
            return false;
        }
        way = batch->best;
    }
    return true;
}

/* Takes the whole drawings out of what a child sent. */
static enum cm_status
receive(struct batch *batch, const struct cm_buffer *sent, char **svgs)
{
    size_t at = 0;

    while (sent->length - at >= sizeof(uint64_t)) {
        uint64_t length;

        memcpy(&length, sent->bytes + at, sizeof(length));
        at += sizeof(length);
        if (length > sent->length - at || batch->next == batch->count) {
            break;
        }
        svgs[batch->next] = cm_alloc(length + 1);
        if (svgs[batch->next] == NULL) {
            return CM_NO_MEMORY;
        }
        memcpy(svgs[batch->next], sent->bytes + at, length);
        svgs[batch->next][length] = '\0';
        at += length;
        batch->next++;
        batch->way = batch->best;
    }
    return CM_OK;
}

/* One child's worth.  CM_OK also when it gave up at a drawing, which is then
 * to be tried in the next cheaper way or, after the last, left out. */
static enum cm_status
run_child(struct batch *batch, char **svgs)
{
    struct cm_buffer sent = {0};
    enum cm_status status =
        cm_child_run(draw_batch, batch, batch->limits, &sent);
    bool gave_up = status == CM_LIMIT;

    if (status == CM_OK || gave_up) {
        status = receive(batch, &sent, svgs);
    }
    if (gave_up && batch->next < batch->count && ++batch->way == WAY_NONE) {
        batch->next++;
        batch->way = batch->best;
    }
    cm_buffer_release(&sent);
    return status;
}

static enum cm_status
run_batch(struct batch *batch, const struct cm_leak *leak, char **svgs)
{
    enum cm_status status = cm_draw_init(&batch->draw, leak);

    for (size_t i = 0; i < batch->count; i++) {
        svgs[i] = NULL;
    }
    while (status == CM_OK && batch->next < batch->count) {
        status = run_child(batch, svgs);
    }
    cm_draw_release(&batch->draw);
    if (status != CM_OK) {
        for (size_t i = 0; i < batch->count; i++) {
            cm_free(svgs[i]);
            svgs[i] = NULL;
        }
    }
    return status;
}

enum cm_status
cm_dot_svgs(const struct cm_leak *leak, const size_t *cycles, size_t count,
            char **svgs)
{
    struct batch batch = {.cycles = cycles,
                          .count = count,
                          .way = WAY_BRIEF,
                          .best = WAY_BRIEF,
                          .limits = usual_limits};
    enum cm_status status = run_batch(&batch, leak, svgs);

    /* Without a child there is no drawing, but there is a page. */
    return status == CM_IO ? CM_OK : status;
}

enum cm_status
cm_dot_svg(const struct cm_leak *leak, size_t cycle, struct cm_buffer *out)
{
    return cm_dot_svg_within(leak, cycle, &usual_limits, out);
}

enum cm_status
cm_dot_svg_within(const struct cm_leak *leak, size_t cycle,
                  const struct cm_child_limits *limits, struct cm_buffer *out)
{
    struct batch batch = {
        .cycles = &cycle, .count = 1, .alone = true, .limits = *limits};
    char *svg = NULL;
    enum cm_status status = run_batch(&batch, leak, &svg);

    if (status == CM_OK && svg == NULL) {
        return CM_LIMIT;
    }
    if (status == CM_OK) {
        cm_buffer_add_text(out, svg);
        status = cm_buffer_status(out);
    }
    cm_free(svg);
    return status;
}
