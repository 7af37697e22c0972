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

/* Within a turn its graph and its calls hold what between two of them one
 * variable does: a look that comes then, since somebody asks, has the answer
 * that the last one between them had, and the next end of a turn is asked. */
static bool
is_renewed(const struct cm_growth_look *look, const struct cm_growth_row *row,
           const struct cm_holder *holder)
{
    struct cm_session *session = look->session;
    struct cm_site_id site = {row->site};
    bool larger = cm_growing_larger(row);
    bool renewed = larger && holder->renewed;
    if (session->between_turns) {
        cm_growth_renew(&session->growth, row->device, site, renewed);
    }
    else if (larger && !renewed && !look->ending
             && cm_growth_is_renewed(&session->growth, row->device, site)) {
        session->look_at = session->iteration + 1;
        renewed = true;
    }
    return renewed;
}

/* Seen once, it is not told before the next look has the items, too. */
static bool
fills(const struct cm_growth_look *look, const struct cm_growth_row *row,
      const struct cm_holder *holder)
{
    struct cm_session *session = look->session;
    struct cm_site_id site = {row->site};
    uint64_t items = holder->fills ? holder->steps[holder->at].items : 0;
    uint64_t first =
        cm_growth_note_items(&session->growth, row->device, site, items);
    bool new = items != 0 && first == 0 && !look->ending;
    if (new) {
        session->look_at = session->iteration + 1;
    }
    return new || (items != 0 && items <= first);
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
    bool filling = fills(look, &self->row, holder);
    bool known =
        holder->bounded || is_of_parameters(look, self) || renewed || filling;
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
