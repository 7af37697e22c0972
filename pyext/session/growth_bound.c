/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A container's bound is read from its holder and the code around it
 * (graph/bound.h).  A parameter has one gradient, and an optimizer one tensor
 * of each name for it: as long as there are no more parameters, these come to
 * an end whatever their series says. */

#include "growth_private.h"

#include "session_private.h"

static bool
grows(const struct cm_growth_row *row)
{
    return row->result.verdict == CM_VERDICT_LEAK
           || row->result.verdict == CM_VERDICT_GROWING;
}

static bool
has_more_parameters(const struct cm_growth_look *look, int device)
{
    for (size_t i = 0; i < look->count; i++) {
        const struct cm_growth_row *row = &look->findings[i].row;
        if (row->category == CM_PARAMETER && row->device == device
            && grows(row) && !look->findings[i].bounded) {
            return true;
        }
    }
    return false;
}

/* What came beside them is too little to be what grew: what a pass that runs
 * makes.  A workspace, as of cuBLAS in the first backward pass, was there. */
static bool
is_of_parameters(const struct cm_growth_look *look,
                 const struct cm_growing *self)
{
    const struct cm_growth_row *row = &self->row;
    int64_t lasts = look->session->iteration - row->result.since_iteration;
    double growth = row->result.bytes_per_iteration * (double)lasts;
    bool owned =
        (row->category == CM_GRADIENT || row->category == CM_OPTIMIZER)
        && row->owned_bytes != 0 && !self->copy;
    return owned && (double)row->other_bytes < growth / 4
           && !has_more_parameters(look, row->device);
}

static size_t
renewed_place(const struct cm_session *session,
              const struct cm_growth_row *row)
{
    const struct cm_renewed_line *lines = session->renewed_lines;
    size_t i = 0;
    while (i < CM_RENEWED_LINES
           && (lines[i].site != row->site || lines[i].device != row->device)) {
        i++;
    }
    return i;
}

static void
note_renewed(struct cm_session *session, const struct cm_growth_row *row,
             bool renewed)
{
    size_t place = renewed_place(session, row);
    if (place == CM_RENEWED_LINES && renewed) {
        place = session->renewed_at++ % CM_RENEWED_LINES;
    }
    if (place != CM_RENEWED_LINES) {
        session->renewed_lines[place] =
            (struct cm_renewed_line){renewed ? row->site : 0, row->device};
    }
}

/* Within a turn its graph and its calls hold what between two of them one
 * variable does: a look that comes then, since somebody asks, has the answer
 * that the last one between them had, and the next end of a turn is asked. */
static bool
is_renewed(const struct cm_growth_look *look, const struct cm_growth_row *row,
           const struct cm_holder *holder)
{
    struct cm_session *session = look->session;
    bool renewed = holder->renewed && cm_growing_larger(row);
    if (row->site == 0 || look->ending) {
        return renewed;
    }
    if (session->between_turns) {
        note_renewed(session, row, renewed);
    }
    else if (!renewed && cm_growing_larger(row)
             && renewed_place(session, row) != CM_RENEWED_LINES) {
        session->look_at = session->iteration + 1;
        renewed = true;
    }
    return renewed;
}

/* What is given a size is not full yet, and no leak; nor is what a line
 * empties, for as long as an epoch may take: then it is looked at again. */
void
cm_growing_bound(struct cm_growth_look *look, struct cm_growing *self,
                 const struct cm_holder *holder)
{
    struct cm_verdict_result *result = &self->row.result;
    struct cm_session *session = look->session;
    int64_t lapses =
        cm_iterations_epoch_end(&session->iterations, result->since_iteration);
    bool renewed = is_renewed(look, &self->row, holder);
    bool known = holder->bounded || is_of_parameters(look, self) || renewed;
    bool emptied = holder->emptied && session->iteration < lapses;
    if (result->verdict != CM_VERDICT_LEAK || !(known || emptied)) {
        return;
    }
    result->verdict = CM_VERDICT_GROWING;
    self->bounded = true;
    if (!known && (session->look_at == 0 || lapses < session->look_at)) {
        session->look_at = lapses;
    }
}
