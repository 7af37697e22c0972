/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * SVG by hand: it is short, the same on every machine (no font is measured:
 * a monospace advance is taken as 0.602 of the size), and every text in it has
 * gone through escape.h.  Graphviz's own SVG writer passes control characters
 * and entities on (RELIABILITY, O7). */
#include "svg.h"

#include <math.h>
#include <stdlib.h> // labs()

#include "escape.h"

#define TITLE_COLUMNS 40
#define LABEL_COLUMNS 30
#define TITLE_ADVANCE 7.25 /* of 12 px */
#define SMALL_ADVANCE 6.65 /* of 11 px */
#define MARGIN 8.0
/* Where a label is drawn without a place of its own. */
#define CUT_TEXT "cut "

static const char style_alone[] =
    "svg{--ink:#1f2328;--soft:#59636e;--line:#8c959f;--paper:#fff;"
    "--fill:#f6f8fa;--cut:#b3261e;--held:#fdf0d5;--heldline:#9a6700}"
    "@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9198a1;"
    "--line:#6e7681;--paper:#0d1117;--fill:#161b22;--cut:#ff8a80;"
    "--held:#2e2407;--heldline:#d29922}}"
    "svg{background:var(--paper)}"
    "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:var(--ink);text-anchor:middle}"
    ".s,.l{font-size:11px;fill:var(--soft)}"
    "rect{fill:var(--fill);stroke:var(--line)}"
    ".e path{fill:none;stroke:var(--line)}.e polygon{fill:var(--line)}"
    ".c path{stroke:var(--ink);stroke-width:1.6}.c polygon{fill:var(--ink)}"
    ".x path{stroke:var(--cut);stroke-width:2;stroke-dasharray:5 3}"
    ".x polygon{fill:var(--cut)}.x .l{fill:var(--cut);font-weight:700}"
    ".m rect{stroke:var(--ink)}.o rect{stroke-width:2.2}"
    ".p rect{fill:var(--held);stroke:var(--heldline)}"
    ".f rect{stroke-dasharray:3 3}.f text{fill:var(--soft)}";

/* ===== measure ========================================================== */

static double
width_of(const char *text, size_t most, double advance)
{
    return (double)cm_escape_columns(text, most) * advance;
}

static bool
has_detail(const struct cm_draw_node *node)
{
    return node->detail != NULL && node->detail[0] != '\0';
}

/* "cut .parent", "[0] and 3 more", "" */
static void
add_label(const struct cm_draw_edge *edge, struct cm_buffer *out)
{
    if (edge->suspect) {
        cm_buffer_add_text(out, edge->label[0] ? CUT_TEXT : "cut");
    }
    cm_escape_html_label(out, edge->label, LABEL_COLUMNS);
    if (edge->count > 1) {
        cm_buffer_addf(out, " +%u", edge->count - 1);
    }
}

static double
label_width(const struct cm_draw_edge *edge)
{
    double columns = edge->suspect ? (double)sizeof(CUT_TEXT) : 0.0;

    columns += edge->count > 1 ? 3.0 + floor(log10((double)edge->count)) : 0.0;
    columns += (double)cm_escape_columns(edge->label, LABEL_COLUMNS);
    return columns > 0 ? columns * SMALL_ADVANCE + 6 : 0;
}

void
cm_svg_measure(struct cm_drawing *drawing)
{
    for (size_t i = 0; i < drawing->node_count; i++) {
        struct cm_draw_node *node = &drawing->nodes[i];
        double width = width_of(node->title, TITLE_COLUMNS, TITLE_ADVANCE);

        node->size.y = 26;
        if (has_detail(node)) {
            width = fmax(width,
                         width_of(node->detail, TITLE_COLUMNS, SMALL_ADVANCE));
            node->size.y = 40;
        }
        node->size.x = fmax(width + 20, 48);
    }
    for (size_t i = 0; i < drawing->edge_count; i++) {
        struct cm_draw_edge *edge = &drawing->edges[i];

        edge->label_size.x = label_width(edge);
        edge->label_size.y = edge->label_size.x > 0 ? 16 : 0;
    }
}

/* ===== write ============================================================ */

/* With one decimal, whatever the locale says of decimal points. */
static void
add_number(struct cm_buffer *out, double number)
{
    long tenths = lround(number * 10);

    cm_buffer_addf(out, "%s%ld", tenths < 0 ? "-" : "", labs(tenths) / 10);
    if (tenths % 10 != 0) {
        cm_buffer_addf(out, ".%ld", labs(tenths) % 10);
    }
}

static void
add_point(struct cm_buffer *out, double x, double y)
{
    add_number(out, x + MARGIN);
    cm_buffer_add_char(out, ' ');
    add_number(out, y + MARGIN);
}

static void
add_attribute(struct cm_buffer *out, const char *name, double number)
{
    cm_buffer_addf(out, " %s=\"", name);
    add_number(out, number);
    cm_buffer_add_char(out, '"');
}

static void
add_text(struct cm_buffer *out, const char *class, struct cm_draw_point at)
{
    cm_buffer_add_text(out, "<text");
    if (class[0] != '\0') {
        cm_buffer_addf(out, " class=\"%s\"", class);
    }
    add_attribute(out, "x", at.x + MARGIN);
    add_attribute(out, "y", at.y + MARGIN);
    cm_buffer_add_char(out, '>');
}

static const char *
node_class(const struct cm_draw_node *node)
{
    if (node->vertex == 0) {
        return "n f";
    }
    if (node->kind == CM_DRAW_PAYLOAD) {
        return node->owner ? "n p o" : "n p";
    }
    if (node->kind == CM_DRAW_MEMBER) {
        return node->owner ? "n m o" : "n m";
    }
    return "n";
}

static void
write_node(const struct cm_draw_node *node, struct cm_buffer *out)
{
    struct cm_draw_point at = node->at;

    cm_buffer_addf(out, "<g class=\"%s\"><rect", node_class(node));
    add_attribute(out, "x", at.x - node->size.x / 2 + MARGIN);
    add_attribute(out, "y", at.y - node->size.y / 2 + MARGIN);
    add_attribute(out, "width", node->size.x);
    add_attribute(out, "height", node->size.y);
    cm_buffer_add_text(out, " rx=\"4\"/>");
    at.y += has_detail(node) ? -3 : 4;
    add_text(out, "", at);
    cm_escape_html_label(out, node->title, TITLE_COLUMNS);
    cm_buffer_add_text(out, "</text>");
    if (has_detail(node)) {
        at.y += 15;
        add_text(out, "s", at);
        cm_escape_html_label(out, node->detail, TITLE_COLUMNS);
        cm_buffer_add_text(out, "</text>");
    }
    cm_buffer_add_text(out, "</g>\n");
}

/* A triangle with its tip at the last point, along the curve's end. */
static void
write_arrow(const struct cm_draw_edge *edge, struct cm_buffer *out)
{
    struct cm_draw_point tip = edge->points[edge->point_count - 1];
    struct cm_draw_point from = edge->points[edge->point_count - 2];
    double dx = tip.x - from.x, dy = tip.y - from.y;
    double length = hypot(dx, dy);

    if (length < 1e-6) {
        return;
    }
    dx /= length;
    dy /= length;
    cm_buffer_add_text(out, "<polygon points=\"");
    add_point(out, tip.x, tip.y);
    cm_buffer_add_char(out, ' ');
    add_point(out, tip.x - 8 * dx - 3.2 * dy, tip.y - 8 * dy + 3.2 * dx);
    cm_buffer_add_char(out, ' ');
    add_point(out, tip.x - 8 * dx + 3.2 * dy, tip.y - 8 * dy - 3.2 * dx);
    cm_buffer_add_text(out, "\"/>");
}

static const char *
edge_class(const struct cm_drawing *drawing, const struct cm_draw_edge *edge)
{
    bool inside =
        drawing->nodes[edge->tail].member && drawing->nodes[edge->head].member;

    return edge->suspect ? "e x" : inside ? "e c" : "e";
}

static void
write_edge(const struct cm_drawing *drawing, const struct cm_draw_edge *edge,
           struct cm_buffer *out)
{
    struct cm_draw_point at = edge->label_at;

    if (edge->point_count < 2) {
        return;
    }
    cm_buffer_addf(out, "<g class=\"%s\"><path d=\"M",
                   edge_class(drawing, edge));
    add_point(out, edge->points[0].x, edge->points[0].y);
    for (size_t i = 1; i < edge->point_count - 1; i++) {
        cm_buffer_add_text(out, i == 1 ? "C" : " ");
        add_point(out, edge->points[i].x, edge->points[i].y);
    }
    cm_buffer_add_text(out, "\"/>");
    write_arrow(edge, out);
    if (edge->label_size.x > 0) {
        at.y += 4;
        add_text(out, "l", at);
        add_label(edge, out);
        cm_buffer_add_text(out, "</text>");
    }
    cm_buffer_add_text(out, "</g>\n");
}

void
cm_svg_write(const struct cm_drawing *drawing, bool alone,
             struct cm_buffer *out)
{
    double width = drawing->size.x + 2 * MARGIN;
    double height = drawing->size.y + 2 * MARGIN;

    cm_buffer_add_text(out, "<svg class=\"drawing\"");
    if (alone) { /* within HTML it is known */
        cm_buffer_add_text(out, " xmlns=\"http://www.w3.org/2000/svg\"");
    }
    cm_buffer_add_text(out, " viewBox=\"0 0 ");
    add_number(out, width);
    cm_buffer_add_char(out, ' ');
    add_number(out, height);
    cm_buffer_add_char(out, '"');
    add_attribute(out, "width", width);
    add_attribute(out, "height", height);
    cm_buffer_add_text(out, " role=\"img\"><title>The cycle and the device"
                            " memory it holds</title>\n");
    if (alone) {
        cm_buffer_addf(out, "<style>%s</style>\n", style_alone);
    }
    for (size_t i = 0; i < drawing->edge_count; i++) {
        write_edge(drawing, &drawing->edges[i], out);
    }
    for (size_t i = 0; i < drawing->node_count; i++) {
        write_node(&drawing->nodes[i], out);
    }
    cm_buffer_add_text(out, "</svg>\n");
}
