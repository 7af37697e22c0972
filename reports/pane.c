/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * One finding, in the order in which it is used: what it costs, the line with
 * the mended one under it, the path with its drawing, what it holds, where
 * that was allocated, and all of it as text.  Lists are bounded; what is left
 * out is counted. */
#include <inttypes.h>
#include <string.h>

#include "mend.h"
#include "names.h"
#include "sheet.h"

/* Steps at both ends of a path that are always shown. */
#define PATH_ENDS 6
#define MAX_HELD 8
#define MAX_FRAMES 100

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
    cm_buffer_addf(self->out, "<li>iteration %" PRId64,
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
        cm_put(self, " each</li><li>");
        if (cycle->peak_bytes > cycle->bytes_each) {
            cm_put(self, "at most <b>");
            cm_put_size(self, cycle->peak_bytes);
            cm_put(self, "</b> at once</li><li>");
        }
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

/* ===== the line to cut ================================================== */

/* Lines joined by line ends. */
static uint32_t
count_lines(const char *text)
{
    uint32_t lines = text[0] != '\0';

    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

/* The smaller of `indent` and that of every line that is not blank. */
static size_t
least_indent(const char *text, size_t indent)
{
    while (*text != '\0') {
        size_t own = strspn(text, " \t"), length = strcspn(text, "\n");

        if (own < length && own < indent) {
            indent = own;
        }
        text += length + (text[length] == '\n');
    }
    return indent;
}

/* Lines of an excerpt.  `mark` is their class; `line` 0: no numbers; `indent`
 * bytes of white space are left away. */
static void
add_code(struct cm_sheet *self, const char *mark, uint32_t line,
         const char *text, size_t indent)
{
    uint32_t count = count_lines(text);

    for (uint32_t i = 0; i < count; i++) {
        size_t length = strcspn(text, "\n"), blank = strspn(text, " \t");
        size_t skip = blank < indent ? blank : indent;

        cm_buffer_addf(self->out, "<span class=\"%s\"><i>", mark);
        if (line > 0) {
            cm_buffer_addf(self->out, "%" PRIu32, line + i);
        }
        cm_put(self, "</i>");
        cm_put(self, mark[0] == 'd' ? "- " : mark[0] == 'a' ? "+ " : "  ");
        cm_escape_html_part(self->out, text + skip, length - skip);
        cm_put(self, "\n</span>");
        text += length + (text[length] == '\n');
    }
}

/* What comes: a mended line, or the advice as a comment. */
static void
add_mended(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
           const char *source, size_t indent, struct cm_buffer *mended)
{
    const char *advice = cm_sheet_text(self, cycle->advice);

    if (mended->length > 0) {
        cm_buffer_truncate(mended, mended->length - 1); /* its line end */
    }
    else if (advice[0] != '\0') {
        cm_buffer_add(mended, source, strspn(source, " \t"));
        cm_buffer_addf(mended, "# %s", advice);
    }
    add_code(self, "add", 0, cm_buffer_text(mended), indent);
}

/* Two lines before, the line, what comes in its place, two lines after. */
static void
add_diff(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
         const struct cm_leak_edge *edge)
{
    const struct cm_leak_frame *place = &edge->made_at[0];
    const char *source = cm_sheet_text(self, place->source);
    const char *before = cm_sheet_text(self, place->before);
    const char *after = cm_sheet_text(self, place->after);
    size_t indent = least_indent(
        before, least_indent(after, least_indent(source, SIZE_MAX)));
    struct cm_buffer mended = {0};
    enum cm_mend way =
        cm_mend_line(&mended, cm_sheet_text(self, cycle->rule),
                     cm_sheet_text(self, edge->annotation), source);

    if (source[0] == '\0') {
        goto done;
    }
    cm_put(self, "<pre class=\"code\">");
    if (count_lines(before) < place->line) {
        add_code(self, "near", place->line - count_lines(before), before,
                 indent);
    }
    add_code(self, way == CM_MEND_REPLACE ? "del" : "here", place->line,
             source, indent);
    if (way != CM_MEND_AFTER) {
        add_mended(self, cycle, source, indent, &mended);
    }
    add_code(self, "near", place->line + 1, after, indent);
    if (way == CM_MEND_AFTER) {
        cm_put(self, "<span class=\"gap\"><i></i>  \u22ee\n</span>");
        add_mended(self, cycle, source, indent, &mended);
    }
    cm_put(self, "</pre>\n");
done:
    cm_buffer_release(&mended);
}

static const char *
without_indent(const char *source)
{
    return source + strspn(source, " \t");
}

static void
add_candidates(struct cm_sheet *self, const struct cm_leak_edge *edge)
{
    for (size_t i = 1; i < edge->made_at_count; i++) {
        cm_put(self, i == 1 ? "<p class=\"or\">or " : "<br>or ");
        cm_put_place(self, &edge->made_at[i]);
        cm_put(self, " <code>");
        cm_say(self, without_indent(
                         cm_sheet_text(self, edge->made_at[i].source)));
        cm_put(self, "</code>");
    }
    if (edge->made_at_count > 1) {
        cm_put(self, "</p>\n");
    }
}

static void
add_cut_heading(struct cm_sheet *self, const struct cm_leak_frame *place)
{
    const char *name = cm_sheet_text(self, place->name);

    cm_put(self, place->certain ? "<h3>Cut at " : "<h3>Cut, probably at ");
    cm_put_place(self, place);
    if (name[0] != '\0') {
        cm_put(self, " <small>in <code>");
        cm_say(self, name);
        cm_put(self, "</code></small>");
    }
    cm_put(self, "</h3>\n");
}

static void
add_cut(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *edge = cm_sheet_cut(self, cycle);
    const char *reason = cm_sheet_text(self, cycle->no_cut_reason);
    const char *link = cm_sheet_text(self, cycle->library_link);

    cm_put(self, "<section class=\"cut\">");
    if (edge != NULL) {
        add_cut_heading(self, &edge->made_at[0]);
    }
    else {
        cm_put(self, "<h3>The line to cut is not known</h3>\n<p>");
        cm_say(self, reason[0] ? reason : "the report does not say why");
        cm_put(self, "</p>\n");
    }
    if (cycle->advice.index != 0) {
        cm_put(self, "<p class=\"fix\"><b>Fix</b> ");
        cm_say(self, cm_sheet_text(self, cycle->advice));
        cm_put(self, "</p>\n");
    }
    if (edge != NULL) {
        add_diff(self, cycle, edge);
        add_candidates(self, edge);
    }
    if (link[0] != '\0') {
        cm_put(self, "<p class=\"known\">Known: ");
        cm_say(self, link);
        cm_put(self, "</p>\n");
    }
    cm_put(self, "</section>\n");
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
                   step->suspect ? "suspect" : last ? "held" : "step",
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
    size_t most = 2 * MAX_HELD;

    cm_put(self, "<ul class=\"objects\">");
    for (size_t i = 0; i < cycle->vertex_count && i < most; i++) {
        cm_put(self, "<li><code>");
        cm_escape_html_label(
            self->out,
            cm_sheet_text(self, cm_leak_vertex_at(self->leak,
                                                  cycle->vertices[i])
                                    ->annotation),
            CM_LABEL_MAX);
        cm_put(self, "</code></li>");
    }
    if (cycle->vertex_count > most) {
        cm_buffer_addf(self->out, "<li>%zu more</li>",
                       cycle->vertex_count - most);
    }
    cm_put(self, "</ul>\n");
}

static void
add_drawing(struct cm_sheet *self, const struct cm_sheet_finding *finding)
{
    const char *const *drawings = self->options->drawings;
    const char *drawing =
        drawings != NULL ? drawings[finding->cycle] : NULL;

    cm_put(self, "<figure>");
    if (drawing != NULL) {
        cm_put(self, drawing);
    }
    else {
        cm_put(self, drawings == NULL
                         ? "<figcaption>Not drawn: this page was made "
                           "without Graphviz. The objects of the cycle:"
                           "</figcaption>"
                         : "<figcaption>Not drawn: the layout met its bounds. "
                           "The objects of the cycle:</figcaption>");
        add_table(self, &self->leak->cycles[finding->cycle]);
    }
    cm_put(self, "</figure>\n");
}

/* ===== what it holds, and where that came from ========================== */

static void
add_storage(struct cm_sheet *self, uint32_t id)
{
    const struct cm_leak_storage *storage =
        cm_leak_storage_at(self->leak, id);

    cm_put(self, "<li><b>");
    cm_put_size(self, storage->bytes);
    cm_put(self, "</b> ");
    cm_say(self, cm_sheet_text(self, storage->device));
    if (storage->vertex_count > 0) {
        struct cm_buffer name = {0};

        cm_name_add_vertex(&name, self->leak, storage->vertices[0]);
        cm_put(self, " <code>");
        cm_escape_html_label(self->out, cm_buffer_text(&name), CM_LABEL_MAX);
        cm_put(self, "</code>");
        cm_buffer_release(&name);
    }
    cm_put(self, "</li>\n");
}

/* The largest of `ids` first, those of one size in their order. */
static size_t
pick_largest(struct cm_sheet *self, const uint32_t *ids, size_t count,
             uint32_t picked[MAX_HELD])
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = cm_leak_storage_at(self->leak, ids[i])->bytes;
        size_t place = kept;

        while (place > 0 &&
               cm_leak_storage_at(self->leak, picked[place - 1])->bytes <
                   bytes) {
            place--;
        }
        if (place == MAX_HELD) {
            continue;
        }
        kept += kept < MAX_HELD;
        memmove(picked + place + 1, picked + place,
                (kept - 1 - place) * sizeof(*picked));
        picked[place] = ids[i];
    }
    return kept;
}

static void
add_storages(struct cm_sheet *self, const char *title, const uint32_t *ids,
             size_t count)
{
    uint32_t picked[MAX_HELD];
    size_t kept = pick_largest(self, ids, count, picked);
    uint64_t rest = 0;

    if (count == 0) {
        return;
    }
    cm_put(self, title);
    cm_put(self, "<ul class=\"held\">\n");
    for (size_t i = 0; i < count; i++) {
        rest += cm_leak_storage_at(self->leak, ids[i])->bytes;
    }
    for (size_t i = 0; i < kept; i++) {
        add_storage(self, picked[i]);
        rest -= cm_leak_storage_at(self->leak, picked[i])->bytes;
    }
    if (count > kept) {
        cm_buffer_addf(self->out, "<li>%zu more, ", count - kept);
        cm_put_size(self, rest);
        cm_put(self, "</li>");
    }
    cm_put(self, "</ul>\n");
}

static void
add_shared(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    if (cycle->shared_count == 0) {
        return;
    }
    cm_put(self, "<p>Some of it is also held by");
    for (size_t i = 0; i < cycle->shared_count && i < MAX_HELD; i++) {
        cm_buffer_addf(self->out, " <code>%06" PRIx64 "</code>",
                       cycle->shared_with[i] >> 40);
    }
    cm_put(self, "; it is counted once.</p>\n");
}

static void
add_held(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    cm_put(self, "<section class=\"holds\">");
    add_storages(self, "<h3>Holds</h3>", cycle->payload,
                 cycle->payload_count);
    add_storages(self,
                 "<h3>Also held elsewhere <small>in no total</small></h3>",
                 cycle->held_elsewhere, cycle->held_elsewhere_count);
    add_shared(self, cycle);
    cm_put(self, "</section>\n");
}

static void
add_frame(struct cm_sheet *self, const struct cm_leak_frame *frame,
          bool here)
{
    cm_put(self, here ? "<li class=\"user\">" : "<li>");
    cm_put_place(self, frame);
    cm_put(self, " <span class=\"name\">");
    cm_escape_html_label(self->out, cm_sheet_text(self, frame->name),
                         CM_LABEL_MAX);
    cm_put(self, "</span> <code class=\"source\">");
    cm_escape_html_label(self->out,
                         without_indent(cm_sheet_text(self, frame->source)),
                         CM_LABEL_MAX);
    cm_put(self, "</code></li>\n");
}

/* A run of library frames, folded; returns the index behind it. */
static size_t
add_library_frames(struct cm_sheet *self, const struct cm_leak_site *site,
                   size_t i)
{
    size_t end = i;

    while (end < site->frame_count && site->frames[end].library) {
        end++;
    }
    cm_buffer_addf(self->out,
                   "<li class=\"library\"><details%s><summary>%zu frame%s in "
                   "libraries</summary><ol>\n",
                   self->options->all_frames ? " open" : "", end - i,
                   end - i == 1 ? "" : "s");
    for (; i < end; i++) {
        add_frame(self, &site->frames[i], false);
    }
    cm_put(self, "</ol></details></li>\n");
    return end;
}

static void
add_stack(struct cm_sheet *self, const struct cm_leak_site *site)
{
    size_t i = 0;

    cm_put(self, "<ol class=\"stack\">\n");
    while (i < site->frame_count && i < MAX_FRAMES) {
        if (site->frames[i].library) {
            i = add_library_frames(self, site, i);
        }
        else {
            add_frame(self, &site->frames[i], (int64_t)i == site->user_frame);
            i++;
        }
    }
    if (i < site->frame_count) {
        cm_buffer_addf(self->out, "<li>%zu more frames</li>\n",
                       site->frame_count - i);
    }
    cm_put(self, "</ol>\n");
}

/* The stack of the path's end, else of the first payload that has one. */
static const struct cm_leak_site *
find_site(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
          const struct cm_path *path)
{
    uint32_t site = 0;

    if (path->count > 0) {
        const struct cm_leak_vertex *last = cm_leak_vertex_at(
            self->leak, path->steps[path->count - 1].vertex);

        site = last->storage != 0
                   ? cm_leak_storage_at(self->leak, last->storage)->site
                   : 0;
        site = site != 0 ? site : last->site;
    }
    for (size_t i = 0; site == 0 && i < cycle->payload_count; i++) {
        site = cm_leak_storage_at(self->leak, cycle->payload[i])->site;
    }
    return site != 0 ? cm_leak_site_at(self->leak, site) : NULL;
}

static void
add_alloc(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
          const struct cm_path *path)
{
    const struct cm_leak_site *site = find_site(self, cycle, path);

    cm_put(self, "<section class=\"alloc\"><h3>Allocated at</h3>\n");
    if (site == NULL || site->frame_count == 0) {
        cm_put(self, "<p>Not known: no stack was recorded.</p>\n");
    }
    else {
        add_stack(self, site);
    }
    cm_put(self, "</section>\n");
}

/* ===== the whole ======================================================== */

static void
add_text(struct cm_sheet *self, const struct cm_sheet_finding *finding)
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
    enum cm_status status =
        cm_paths_find(&self->paths, finding->cycle, &path);

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
    add_cut(self, cycle);
    cm_put(self, "<section class=\"path\"><h3>Path</h3>\n"
                 "<div class=\"both\">\n");
    add_ladder(self, &path);
    add_drawing(self, finding);
    cm_put(self, "</div></section>\n<div class=\"both\">\n");
    add_alloc(self, cycle, &path);
    add_held(self, cycle);
    cm_put(self, "</div>\n");
    add_text(self, finding);
    cm_put(self, "</article>\n");
done:
    cm_path_release(&path);
    return status;
}
