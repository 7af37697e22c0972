/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * One finding, in the order in which it is used: what it costs, the line to
 * cut (excerpt.c), the path with its drawing, where what it holds was made and
 * what that is (held.c), and all of it as text. */
#include <inttypes.h>
#include <string.h>

#include "growth_unit.h"
#include "sheet.h"

/* Steps at both ends of a path that are always shown. */
#define PATH_ENDS 6
/* Objects that stand in the place of a drawing. */
#define MAX_OBJECTS 16

static bool
has_class(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
          const char *name)
{
    return strcmp(cm_sheet_text(self, cycle->class), name) == 0;
}

/* ===== what it costs ==================================================== */

static void
add_name(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
         size_t number)
{
    cm_buffer_addf(self->out, "<h2>#%zu %s cycle", number,
                   has_class(self, cycle, "uncollectable") ? "Uncollectable"
                                                           : "Dead");
    if (cycle->count > 1) {
        cm_buffer_addf(self->out, " \u00d7%" PRIu64, cycle->count);
    }
    if (cycle->library_package.index != 0) {
        cm_put(self, " in ");
        cm_say(self, cm_sheet_text(self, cycle->library_package));
    }
    cm_put(self, "</h2>\n");
}

/* What is particular about its class. */
static const char *
class_note(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    if (has_class(self, cycle, "finalizer")) {
        return "has a finalizer (<code>__del__</code>)";
    }
    if (has_class(self, cycle, "uncollectable")) {
        return "no collection frees it";
    }
    if (has_class(self, cycle, "frozen")) {
        return "behind <code>gc.freeze()</code>: no collection frees it";
    }
    return NULL;
}

static const char *
trigger_note(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    static const char *const notes[][2] = {
        {"scan", "seen by a scan"},
        {"oom", "seen when memory ran out"},
        {"exit", "seen at exit"},
        {"manual", "seen by find_cycles()"},
    };
    const char *trigger = cm_sheet_text(self, cycle->trigger);

    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
        if (strcmp(trigger, notes[i][0]) == 0) {
            return notes[i][1];
        }
    }
    return NULL;
}

static void
add_note(struct cm_sheet *self, const char *note)
{
    if (note != NULL) {
        cm_put(self, "<li>");
        cm_put(self, note);
        cm_put(self, "</li>");
    }
}

static void
add_iterations(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    if (cycle->first_iteration < 0) {
        return;
    }
    cm_buffer_addf(self->out, "<li>%s %" PRId64,
                   cm_growth_unit_of(self->leak, cycle->first_iteration),
                   cycle->first_iteration);
    if (cycle->last_iteration > cycle->first_iteration) {
        cm_buffer_addf(self->out, " to %" PRId64, cycle->last_iteration);
    }
    cm_put(self, "</li>");
}

static void
add_cost(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    cm_put(self, "<ul class=\"cost\"><li><b>");
    cm_put_size(self, cycle->bytes_each);
    cm_put(self, "</b>");
    if (cycle->count > 1) {
        cm_put(self, " each");
    }
    if (cycle->count > 1 && cycle->peak_bytes > cycle->bytes_each) {
        cm_put(self, cm_leak_is_partial(self->leak) ? "</li><li>at least <b>"
                                                    : "</li><li>at most <b>");
        cm_put_size(self, cycle->peak_bytes);
        cm_put(self, "</b> at once");
    }
    if (cycle->count > 1 && cycle->total_bytes > cycle->peak_bytes) {
        cm_put(self, "</li><li>");
        cm_put_size(self, cycle->total_bytes);
        cm_put(self, " in all");
    }
    cm_put(self, "</li>");
    add_iterations(self, cycle);
    add_note(self, trigger_note(self, cycle));
    add_note(self, class_note(self, cycle));
    cm_buffer_addf(self->out, "<li><code>%06" PRIx64 "</code></li></ul>\n",
                   cycle->fingerprint >> 40);
}

/* ===== the path and its drawing ========================================= */

static bool
is_shown(const struct cm_path *path, size_t step)
{
    size_t first = step > 2 ? step - 2 : 0;

    if (step < PATH_ENDS || step + PATH_ENDS >= path->count) {
        return true;
    }
    for (size_t i = first; i <= step + 2 && i < path->count; i++) {
        if (path->steps[i].suspect) {
            return true;
        }
    }
    return false;
}

/* Where the reference of a step was made, or what the last one weighs. */
static void
add_step_note(struct cm_sheet *self, const struct cm_path_step *step)
{
    const struct cm_leak_vertex *vertex =
        cm_leak_vertex_at(self->leak, step->vertex);

    if (step->out == 0 && vertex->storage != 0) {
        const struct cm_leak_storage *storage =
            cm_leak_storage_at(self->leak, vertex->storage);

        cm_put(self, "<span class=\"note\">");
        cm_put_size(self, storage->bytes);
        cm_put(self, " ");
        cm_say(self, cm_sheet_text(self, storage->device));
        cm_put(self, "</span>");
    }
    else if (step->suspect) {
        cm_put(self, "<span class=\"note\">cut this reference</span>");
    }
}

static void
add_step(struct cm_sheet *self, const struct cm_path *path, size_t i)
{
    const struct cm_path_step *step = &path->steps[i];
    bool last = i + 1 == path->count;
    bool again = step->owner && i > 0;

    cm_buffer_addf(self->out, "<li class=\"%s%s%s\"><code>",
                   step->suspect ? "suspect"
                   : last        ? "held"
                                 : "step",
                   again ? " again" : "", i == 0 ? " owner" : "");
    cm_put(self, step->suspect && step->edge[0] == '\0' ? "<u>" : "<b>");
    cm_escape_html_label(self->out, step->name, CM_LABEL_MAX);
    cm_put(self, step->suspect && step->edge[0] == '\0' ? "</u>" : "</b>");
    if (step->edge[0] != '\0') {
        cm_put(self, step->suspect ? " <u>" : " <span>");
        cm_escape_html_label(self->out, step->edge, CM_LABEL_MAX);
        cm_put(self, step->suspect ? "</u>" : "</span>");
    }
    cm_put(self, "</code>");
    if (again) {
        cm_put(self, "<span class=\"note\">the same object</span>");
    }
    add_step_note(self, step);
    cm_put(self, "</li>\n");
}

static void
add_ladder(struct cm_sheet *self, const struct cm_path *path)
{
    size_t left_out = 0;

    cm_put(self, "<ol class=\"ladder\">\n");
    for (size_t i = 0; i < path->count; i++) {
        if (!is_shown(path, i)) {
            left_out++;
            continue;
        }
        if (left_out > 0) {
            cm_buffer_addf(self->out,
                           "<li class=\"gap\">\u22ee %zu more steps</li>\n",
                           left_out);
            left_out = 0;
        }
        add_step(self, path, i);
    }
    cm_put(self, "</ol>\n");
}

/* In the place of a drawing: the objects of the cycle by name. */
static void
add_table(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    cm_put(self, "<ul class=\"objects\">");
    for (size_t i = 0; i < cycle->vertex_count && i < MAX_OBJECTS; i++) {
        cm_put(self, "<li><code>");
        cm_escape_html_label(
            self->out,
            cm_sheet_text(
                self,
                cm_leak_vertex_at(self->leak, cycle->vertices[i])->annotation),
            CM_LABEL_MAX);
        cm_put(self, "</code></li>");
    }
    if (cycle->vertex_count > MAX_OBJECTS) {
        cm_buffer_addf(self->out, "<li>%zu more</li>",
                       cycle->vertex_count - MAX_OBJECTS);
    }
    cm_put(self, "</ul>\n");
}

static void
add_drawing(struct cm_sheet *self, const struct cm_sheet_finding *finding)
{
    const char *const *drawings = self->options->drawings;
    const char *drawing = drawings != NULL ? drawings[finding->cycle] : NULL;

    cm_put(self, "<figure>");
    if (drawing != NULL) {
        cm_put(self, drawing);
    }
    else {
        cm_put(self, drawings == NULL
                         ? "<figcaption>Not drawn: this page was made "
                           "without Graphviz. The objects of the cycle:"
                           "</figcaption>"
                         : "<figcaption>Not drawn here. The objects of the "
                           "cycle:</figcaption>");
        add_table(self, &self->leak->cycles[finding->cycle]);
    }
    cm_put(self, "</figure>\n");
}

/* ===== the whole ======================================================== */

void
cm_pane_add_text(struct cm_sheet *self, const struct cm_sheet_finding *finding)
{
    const char *text = finding->text;
    const char *space =
        text != NULL ? memchr(text, ' ', finding->text_bytes) : NULL;

    if (space == NULL) {
        return;
    }
    cm_buffer_addf(self->out,
                   "<details class=\"text\"><summary>As text</summary>"
                   "<pre>#%zu",
                   finding->number);
    cm_escape_html_part(self->out, space,
                        finding->text_bytes - (size_t)(space - text));
    cm_put(self, "</pre></details>\n");
}

enum cm_status
cm_pane_add(struct cm_sheet *self, const struct cm_sheet_finding *finding)
{
    const struct cm_leak_cycle *cycle = &self->leak->cycles[finding->cycle];
    struct cm_path path = {0};
    enum cm_status status = cm_paths_find(&self->paths, finding->cycle, &path);

    if (status != CM_OK) {
        goto done;
    }
    cm_buffer_addf(self->out,
                   "<article id=\"finding-%zu\" tabindex=\"-1\">\n<header>",
                   finding->number);
    add_name(self, cycle, finding->number);
    cm_put(self, "<button type=\"button\" class=\"copy\" hidden>"
                 "Copy as text</button>\n");
    add_cost(self, cycle);
    cm_put(self, "</header>\n");
    cm_excerpt_add(self, cycle);
    cm_put(self, "<section class=\"path\"><h3>Path</h3>\n"
                 "<div class=\"both\">\n");
    add_ladder(self, &path);
    add_drawing(self, finding);
    cm_put(self, "</div></section>\n<div class=\"both wide\">\n");
    cm_held_add_stack(self, cycle, &path);
    cm_held_add(self, cycle);
    cm_put(self, "</div>\n");
    cm_pane_add_text(self, finding);
    cm_put(self, "</article>\n");
done:
    cm_path_release(&path);
    return status;
}
