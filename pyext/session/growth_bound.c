/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A container's bound is read from its holder and the code around it
 * (graph/bound.h).  A parameter has one gradient, and an optimizer one tensor
 * of each name for it: as long as there are no more parameters, these come to
 * an end whatever their series says. */

#include "growth_private.h"

#include "../../detector/growth_items.h"
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

static void
set_earlier(int64_t *at, int64_t iteration)
{
    if (*at == 0 || iteration < *at) {
        *at = iteration;
    }
}

static void
look_again(struct cm_session *session, int64_t iteration)
{
    set_earlier(&session->look_at, iteration);
}

/* When as many iterations have come as there have been since then. */
static int64_t
twice_as_old(const struct cm_session *session, int64_t since)
{
    const int64_t least = 8;
    int64_t age = session->iteration - since;
    return session->iteration + (age > least ? age : least);
}

void
cm_growing_look_again(struct cm_session *session)
{
    look_again(session, twice_as_old(session, session->unit_iteration));
}

/* It may be full by then, and another one goes on that has the same. */
static void
look_twice_as_old(struct cm_session *session, int64_t since)
{
    set_earlier(&session->check_at, twice_as_old(session, since));
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
        look_again(session, session->iteration + 1);
        renewed = true;
    }
    return renewed;
}

/* `some`: its items are asked for. */
static struct cm_growth_fill
fill_of(const struct cm_growth_look *look, const struct cm_growth_row *row,
        const struct cm_holder *holder, bool some)
{
    /* What C++ has, or was not sought among so many, hangs there or not. */
    uint64_t others =
        row->count > holder->targets ? row->count - holder->targets : 0;
    return (struct cm_growth_fill){
        .items = some ? holder->steps[holder->at].items : 0,
        .hung = holder->through + others,
        .iterations = look->session->iteration,
        .between = look->session->between_turns};
}

static enum cm_growth_items
items_of(const struct cm_growth_look *look, const struct cm_growth_row *row,
         const struct cm_holder *holder, int64_t *lasts)
{
    struct cm_session *session = look->session;
    struct cm_site_id site = {row->site};
    struct cm_growth_fill fill = fill_of(
        look, row, holder, holder->fills && !cm_growing_has_larger(row));
    return cm_growth_note_items(&session->growth, row->device, site, &fill,
                                lasts);
}

/* A container that gets no more items, each of which gets it once, ends it: two
 * looks know, and later ones, ever fewer, since it may get one now and then. */
static bool
fills(const struct cm_growth_look *look, enum cm_growth_items items,
      int64_t lasts)
{
    struct cm_session *session = look->session;
    bool new = items == CM_GROWTH_NEW_ITEMS && !look->ending;
    bool filling = new || items == CM_GROWTH_SAME_ITEMS;
    if (filling) {
        look_again(session, session->iteration + (lasts > 0 ? lasts : 1));
    }
    return filling;
}

/* Ever more items, each with as much as the first had: what bounds or empties
 * one of them is no end of all.  *lasts: since the first was seen so. */
static bool
has_more_items(const struct cm_growth_look *look,
               const struct cm_growth_row *row, const struct cm_holder *holder,
               int64_t *lasts)
{
    struct cm_site_id site = {row->site};
    struct cm_growth_fill fill = fill_of(look, row, holder, holder->of_each);
    return cm_growth_note_each(&look->session->growth, row->device, site,
                               &fill, lasts);
}

/* It was bounded, and stands still since that is full: this verdict, which is
 * of before, is over soon. */
static bool
is_just_full(const struct cm_growth_look *look,
             const struct cm_growth_row *row, bool bounded)
{
    const int64_t soon = 4;
    struct cm_session *session = look->session;
    struct cm_growth *growth = &session->growth;
    struct cm_site_id site = {row->site};
    bool full = cm_growth_note_bound(growth, row->device, site, bounded)
                && !bounded
                && cm_series_pauses(row->series, session->iteration);
    if (full) {
        (void)cm_growth_note_bound(growth, row->device, site, true);
        set_earlier(&session->check_at, session->iteration + soon);
    }
    return full;
}

/* A window that the loop itself keeps is full soon, if ever; what is emptied at
 * an epoch's end, when that is over. */
static int64_t
end_of_trust(const struct cm_session *session, const struct cm_holder *holder,
             int64_t since)
{
    const int64_t longest = 256; /* iterations */
    bool timed = session->iterations.by == CM_BY_TIME;
    return holder->windowed && !timed
               ? since + longest
               : cm_iterations_epoch_end(&session->iterations, since);
}

/* What is given a size is not full yet, and no leak; nor is what a line
 * empties, for some time: then it is looked at again. */
void
cm_growing_bound(struct cm_growth_look *look, struct cm_growing *self,
                 const struct cm_holder *holder)
{
    struct cm_verdict_result *result = &self->row.result;
    struct cm_session *session = look->session;
    int64_t lapses = end_of_trust(session, holder, result->since_iteration);
    bool renewed = is_renewed(look, &self->row, holder);
    int64_t lasts, same;
    enum cm_growth_items items = items_of(look, &self->row, holder, &lasts);
    bool more = has_more_items(look, &self->row, holder, &same);
    if (result->verdict != CM_VERDICT_LEAK) {
        return;
    }
    bool known = (holder->bounded && !more) || is_of_parameters(look, self)
                 || renewed || fills(look, items, lasts);
    bool emptied = holder->emptied && !more && session->iteration < lapses;
    bool full = is_just_full(look, &self->row, known || emptied);
    if (!known && !emptied && !full) {
        return;
    }
    result->verdict = CM_VERDICT_GROWING;
    self->bounded = true;
    if (full) {
        return;
    }
    if (!known) {
        look_again(session, lapses);
    }
    if ((holder->bounded || emptied) && !look->ending) {
        look_twice_as_old(session, result->since_iteration);
    }
    if (holder->of_each && !look->ending) {
        look_again(session, session->iteration + (same > 8 ? same : 8));
    }
}
