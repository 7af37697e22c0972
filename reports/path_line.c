/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A path on one line.  Steps are dropped from the middle outwards until the
 * line is short enough: linear in the number of steps. */
#include "path_line.h"

#include "../detector/alloc.h"
#include "utf8.h"

/* Longer names are cut, so that no single one fills the line. */
#define NAME_COLUMNS 60

struct plan {
    const struct cm_path *path;
    bool *dropped; /* owned: per step */
    long columns;  /* of the line as it stands */
};

static bool
is_kept(const struct cm_path *path, size_t step)
{
    return step == 0 || step + 1 == path->count || path->steps[step].suspect
           || path->steps[step - 1].suspect;
}

static long
columns_of(const struct cm_path_step *step)
{
    long name = cm_utf8_columns(step->name);
    long edge = cm_utf8_columns(step->edge);

    name = name < NAME_COLUMNS ? name : NAME_COLUMNS;
    edge = edge < NAME_COLUMNS ? edge : NAME_COLUMNS;
    return name + (edge > 0 ? edge + 1 : 0) + (step->suspect ? 5 : 3);
}

static void
drop(struct plan *self, size_t step)
{
    bool before = self->dropped[step - 1], behind = self->dropped[step + 1];

    if (is_kept(self->path, step)) {
        return;
    }
    self->dropped[step] = true;
    self->columns -= columns_of(&self->path->steps[step]);
    self->columns += before && behind ? -6 : before || behind ? 0 : 6;
}

/* Decides which steps are left out. */
static void
make_plan(struct plan *self, long room)
{
    size_t count = self->path->count, middle = count / 2;

    for (size_t i = 0; i < count; i++) {
        self->columns += columns_of(&self->path->steps[i]);
    }
    for (size_t away = 0; away < count && self->columns > room; away++) {
        if (middle + away + 1 < count) {
            drop(self, middle + away);
        }
        if (away > 0 && away < middle && self->columns > room) {
            drop(self, middle - away);
        }
    }
}

static void
add_limited(struct cm_line *line, enum cm_paint paint, const char *text)
{
    const char *at = text, *end = text;
    struct cm_buffer part = {0};
    long columns = cm_utf8_columns(text);

    if (columns <= NAME_COLUMNS) {
        cm_line_add(line, paint, text);
        return;
    }
    while (*end != '\0') {
        end++;
    }
    for (columns = 0; columns < NAME_COLUMNS - 3;) {
        columns += cm_utf8_width(cm_utf8_next(&at, end));
    }
    cm_buffer_add(&part, text, (size_t)(at - text));
    cm_buffer_add_text(&part, "...");
    cm_line_add(line, paint, cm_buffer_text(&part));
    if (line->out->status == CM_OK) {
        line->out->status = part.status;
    }
    cm_buffer_release(&part);
}

static void
add_step(struct cm_line *line, const struct cm_path_step *step, bool last)
{
    enum cm_paint paint = step->suspect ? CM_PAINT_SUSPECT : CM_PAINT_NONE;

    add_limited(line, CM_PAINT_NONE, step->name);
    if (step->edge[0] != '\0') {
        cm_line_add(line, CM_PAINT_NONE, " ");
        add_limited(line, paint, step->edge);
    }
    if (!last) {
        cm_line_add(line, CM_PAINT_NONE, " ");
        cm_line_add(line, paint, step->suspect ? "~~>" : ">");
        cm_line_add(line, CM_PAINT_NONE, " ");
    }
}

enum cm_status
cm_path_line_add(struct cm_line *line, const struct cm_path *path)
{
    struct plan plan = {.path = path};

    plan.dropped = cm_calloc(path->count + 1, sizeof(bool));
    if (plan.dropped == NULL) {
        return CM_NO_MEMORY;
    }
    make_plan(&plan, CM_PATH_COLUMNS - line->columns + 3);
    for (size_t i = 0; i < path->count; i++) {
        if (!plan.dropped[i]) {
            add_step(line, &path->steps[i], i + 1 == path->count);
        }
        else if (!plan.dropped[i + 1]) {
            cm_line_add(line, CM_PAINT_NONE, "... > ");
        }
    }
    cm_line_end(line);
    cm_free(plan.dropped);
    return CM_OK;
}
