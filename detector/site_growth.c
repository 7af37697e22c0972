/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "site_growth.h"

#include <string.h>

#include "alloc.h"

/* A verdict costs some microseconds, so in a long run each series has its
 * turn: judged at each of the first boundaries, then at each eighth; one that
 * was not suspect before, at once: it may have begun to leak. */
enum {
    EACH_UNTIL = 64,
    THEN_EACH = 8,
    NEW_FOR = 16,
    MOST_AT_ONCE = 32,
    MOST_DOUBTS = 6,
};

const char *const cm_category_names[CM_CATEGORIES] = {
    [CM_OTHER] = "other",
    [CM_PARAMETER] = "parameter",
    [CM_GRADIENT] = "gradient",
    [CM_OPTIMIZER] = "optimizer state",
    [CM_SAVED] = "saved for backward",
    [CM_INPUT] = "input",
    [CM_OUTSIDE] = "outside the frameworks",
};

void
cm_growth_release(struct cm_growth *self)
{
    cm_series_table_release(&self->table);
    for (size_t i = 0; i <= CM_MAX_DEVICES; i++) {
        cm_free(self->numbers[i].of_site);
    }
    cm_free(self->states);
    cm_free(self->categories);
    cm_free(self->suspects);
    cm_free(self->gradients);
    cm_free(self->gradient_uses);
    *self = (struct cm_growth){0};
}

enum cm_category
cm_growth_category(const struct cm_growth *self, uint32_t site)
{
    return site == 0 ? CM_OUTSIDE
           : site < self->category_capacity
               ? (enum cm_category)self->categories[site]
               : CM_OTHER;
}

/* NULL: no memory. */
static struct cm_growth_state *
state_of(struct cm_growth *self, const struct cm_series *series)
{
    if (cm_grow_zeroed((void **)&self->states, &self->state_capacity,
                       (size_t)series->number + 1, sizeof(*self->states))
        != CM_OK) {
        self->lost++;
        return NULL;
    }
    return &self->states[series->number];
}

static void
suspect(struct cm_growth *self, const struct cm_series *series)
{
    if (cm_grow((void **)&self->suspects, &self->suspect_capacity,
                self->suspect_count + 1, sizeof(*self->suspects))
        != CM_OK) {
        self->lost++;
        return;
    }
    self->suspects[self->suspect_count++] = series->number;
}

/* A verdict that the next one may take back. */
static bool
is_open(const struct cm_growth_state *state)
{
    return state->verdict == CM_VERDICT_GROWING
           || state->verdict == CM_VERDICT_LEAK
           || state->verdict == CM_VERDICT_LINGERING;
}

static uint64_t
gradients_of(const struct cm_growth_state *state, uint64_t bytes)
{
    return bytes > state->other_bytes ? bytes - state->other_bytes : 0;
}

/* To the sums, or with `sign` -1 from them. */
static void
add_bytes(struct cm_growth *self, uint32_t device, enum cm_category category,
          const struct cm_growth_state *state, int sign)
{
    uint64_t own = category == CM_GRADIENT ? gradients_of(state, state->bytes)
                                           : state->bytes;
    uint64_t other = state->bytes - own;
    self->bytes[device][category] += sign > 0 ? own : -own;
    self->bytes[device][CM_OTHER] += sign > 0 ? other : -other;
}

struct cm_growth_state *
cm_growth_known(const struct cm_growth *self, int device,
                struct cm_site_id site)
{
    const struct cm_growth_numbers *numbers = &self->numbers[device + 1];
    uint32_t number =
        site.index < numbers->capacity ? numbers->of_site[site.index] : 0;
    return number != 0 ? &self->states[number - 1] : NULL;
}

bool
cm_growth_may_keep(const struct cm_growth *self, int device,
                   struct cm_site_id site)
{
    const struct cm_growth_state *state = cm_growth_known(self, device, site);
    return state == NULL || state->kept || !state->looked;
}

bool
cm_growth_is_renewed(const struct cm_growth *self, int device,
                     struct cm_site_id site)
{
    const struct cm_growth_state *state = cm_growth_known(self, device, site);
    return state != NULL && state->renewed;
}

void
cm_growth_renew(struct cm_growth *self, int device, struct cm_site_id site,
                bool renewed)
{
    struct cm_growth_state *state = cm_growth_known(self, device, site);
    if (state != NULL) {
        state->renewed = renewed;
    }
}

/* Without memory it is sought in the table again. */
static void
note_number(struct cm_growth *self, int device, struct cm_site_id site,
            const struct cm_series *series)
{
    struct cm_growth_numbers *numbers = &self->numbers[device + 1];
    if (cm_grow_zeroed((void **)&numbers->of_site, &numbers->capacity,
                       (size_t)site.index + 1, sizeof(*numbers->of_site))
        == CM_OK) {
        numbers->of_site[site.index] = series->number + 1;
    }
}

/* Most sites hold at each boundary what they held at the one before, and then
 * their series, out of the cache, has nothing to learn; but that gradients were
 * made anew. */
static bool
says_nothing_new(const struct cm_growth *self,
                 const struct cm_growth_state *state,
                 const struct cm_site_use *use)
{
    return state != NULL && state->bytes == use->bytes
           && state->count == use->count && !state->suspected && !state->kept
           && !is_open(state)
           && cm_growth_category(self, use->site.index) != CM_GRADIENT;
}

static void
note_site(struct cm_growth *self, int device, int64_t iteration,
          const struct cm_site_use *use)
{
    struct cm_series *series;
    if (says_nothing_new(self, cm_growth_known(self, device, use->site),
                         use)) {
        return;
    }
    if (cm_series_table_get(&self->table, use->site.index,
                            (uint32_t)(device + 1), &series)
        != CM_OK) {
        return;
    }
    struct cm_growth_state *state = state_of(self, series);
    if (state == NULL) {
        return;
    }
    note_number(self, device, use->site, series);
    cm_series_add(series, iteration, use->count, use->bytes);
    enum cm_category category = cm_growth_category(self, use->site.index);
    self->stale |= category == CM_GRADIENT && state->peak_bytes == 0;
    add_bytes(self, (uint32_t)device + 1, category, state, -1);
    state->bytes = use->bytes;
    add_bytes(self, (uint32_t)device + 1, category, state, 1);
    state->count = use->count;
    if (use->bytes > state->peak_bytes) {
        state->peak_bytes = use->bytes;
    }
    if (is_open(state) || cm_series_suspect(series, iteration)) {
        suspect(self, series);
    }
    state->suspected = series->suspected;
}

void
cm_growth_boundary(struct cm_growth *self, struct cm_blocks *blocks,
                   int device, int64_t iteration)
{
    struct cm_site_use *uses;
    size_t count;
    if (cm_blocks_changes(blocks, device, &uses, &count) != CM_OK) {
        self->lost++;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (uses[i].site.index != 0) {
            note_site(self, device, iteration, &uses[i]);
        }
    }
    cm_free(uses);
}

void
cm_growth_outside(struct cm_growth *self, int device, int64_t iteration,
                  uint64_t bytes)
{
    if (device >= 0 && device < CM_MAX_DEVICES) {
        note_site(self, device, iteration,
                  &(struct cm_site_use){.bytes = bytes, .count = bytes != 0});
    }
}

/* Ten models of folds, or of an ensemble's members, each after many iterations,
 * are what the program is for; a leak goes on. */
static bool
are_few_models(enum cm_category category, int64_t now,
               const struct cm_verdict_result *result)
{
    const int64_t long_for = 96; /* iterations */
    const double few = 12;       /* rises, less than these */
    return (category == CM_PARAMETER || category == CM_GRADIENT
            || category == CM_OPTIMIZER)
           && result->verdict == CM_VERDICT_LEAK
           && now - result->since_iteration >= long_for && result->rises < few;
}

static void
judge(struct cm_growth *self, const struct cm_series *series,
      enum cm_category category, int64_t now, struct cm_verdict_result *result)
{
    struct cm_verdict_rules rules = cm_verdict_defaults;
    rules.only_replaced = category != CM_GRADIENT;
    rules.slices = self->slices;
    rules.sliced = self->sliced;
    rules.warmup += self->unit_began;
    if (category == CM_OUTSIDE) { /* asked seldom: unknown since, not flat */
        now = series->last_iteration;
    }
    struct cm_growth_state *state = &self->states[series->number];
    cm_verdict(series, now, &rules, result);
    if (are_few_models(category, now, result)) {
        result->verdict = CM_VERDICT_GROWING;
    }
    bool doubted = state->told == CM_VERDICT_LEAK
                   && result->verdict == CM_VERDICT_GROWING;
    if (doubted && state->doubts < MOST_DOUBTS) {
        result->verdict = CM_VERDICT_LEAK; /* not taken back by a tooth */
    }
    state->leaked |= result->verdict == CM_VERDICT_LEAK;
    state->earlier &= result->verdict != CM_VERDICT_LEAK;
    if (state->leaked && result->verdict == CM_VERDICT_OK) {
        result->verdict = CM_VERDICT_SETTLED; /* whoever was told hears it */
    }
    state->verdict = (uint8_t)result->verdict;
}

static void
note_doubt(struct cm_growth_state *state,
           const struct cm_verdict_result *result)
{
    bool whole = result->bytes_per_iteration > 0 && result->confidence > 0.5;
    if (state->told != CM_VERDICT_LEAK || whole) {
        state->doubts = 0;
    }
    else if (state->doubts < MOST_DOUBTS) {
        state->doubts++;
    }
}

static bool
is_for_a_person(enum cm_verdict verdict)
{
    return verdict == CM_VERDICT_LEAK || verdict == CM_VERDICT_LINGERING;
}

static void
add_gradient(struct cm_growth *self, size_t number, uint32_t site,
             uint32_t device)
{
    size_t at = self->gradient_count;
    if (cm_grow((void **)&self->gradients, &self->gradient_capacity, at + 1,
                sizeof(*self->gradients))
            != CM_OK
        || cm_grow((void **)&self->gradient_uses, &self->use_capacity, at + 1,
                   sizeof(*self->gradient_uses))
               != CM_OK) {
        self->lost++;
        return;
    }
    self->gradients[at] = (struct cm_growth_gradient){
        .series = (uint32_t)number, .device = device};
    self->gradient_uses[at] = (struct cm_site_use){.site = {site}};
    self->gradient_count++;
}

/* The sums of every category, and which series are gradients. */
static void
add_up(struct cm_growth *self)
{
    size_t count = cm_series_table_count(&self->table);
    memset(self->bytes, 0, sizeof(self->bytes));
    self->gradient_count = 0;
    self->stale = false;
    for (size_t i = 0; i < count && i < self->state_capacity; i++) {
        uint32_t site, device;
        cm_series_table_at(&self->table, i, &site, &device);
        enum cm_category category = cm_growth_category(self, site);
        add_bytes(self, device, category, &self->states[i], 1);
        if (category == CM_GRADIENT) {
            add_gradient(self, i, site, device);
        }
    }
}

/* Later on once in so many iterations; what changes more seldom, as in each
 * evaluation, whenever it does. */
static bool
has_turn(const struct cm_growth *self, const struct cm_series *series,
         const struct cm_growth_state *state, int64_t iteration)
{
    int64_t suspect_for =
        iteration - series->first_iteration - (int64_t)series->suspect_after;
    return iteration - self->unit_began < EACH_UNTIL
           || (series->suspected && suspect_for < NEW_FOR)
           || (iteration + series->number) / THEN_EACH
                  != (state->judged_at + series->number) / THEN_EACH;
}

void
cm_growth_judge(struct cm_growth *self, int64_t iteration)
{
    uint32_t judged = 0;
    for (size_t i = 0; i < self->suspect_count; i++) {
        /* Not always the same ones first. */
        size_t at = (i + (size_t)iteration) % self->suspect_count;
        uint32_t number = self->suspects[at], site, category;
        const struct cm_series *series =
            cm_series_table_at(&self->table, number, &site, &category);
        struct cm_growth_state *state = &self->states[number];
        struct cm_verdict_result result;
        bool again = state->judged_at == iteration; /* gradients come twice */
        if (again || !has_turn(self, series, state, iteration)
            || judged++ >= MOST_AT_ONCE) {
            continue;
        }
        state->judged_at = iteration;
        judge(self, series, cm_growth_category(self, site), iteration,
              &result);
        bool is_new =
            (is_for_a_person(result.verdict) || is_for_a_person(state->told))
            && state->told != result.verdict;
        self->due |= is_new;
        self->leak_due |= is_new && result.verdict == CM_VERDICT_LEAK;
        state->told = (uint8_t)result.verdict;
        note_doubt(state, &result);
    }
    self->calm = self->suspect_count == 0;
    self->suspect_count = 0;
    self->forward_noted = false;
    if (self->stale) {
        add_up(self);
    }
}

/* The same line may have allocated what stays, such as a workspace of cuBLAS:
 * only what went since the boundary counts against the gradients. */
static uint64_t
kept_gradients(const struct cm_growth_state *state, uint64_t now)
{
    uint64_t gone = now < state->bytes ? state->bytes - now : 0;
    uint64_t held = gradients_of(state, state->bytes);
    if (held > state->owned_bytes) {
        held = state->owned_bytes; /* as it was last looked at */
    }
    return gone < held ? held - gone : 0;
}

void
cm_growth_own(struct cm_growth *self, int device, struct cm_site_id site,
              uint64_t bytes, uint64_t live)
{
    struct cm_series *series;
    struct cm_growth_state *state =
        cm_series_table_get(&self->table, site.index, (uint32_t)(device + 1),
                            &series)
                == CM_OK
            ? state_of(self, series)
            : NULL;
    if (state == NULL) {
        return;
    }
    uint64_t other = live > bytes ? live - bytes : 0;
    self->stale |= state->other_bytes != other;
    state->owned_bytes = live - other; /* views of one block count once */
    state->other_bytes = other;
    if (!state->owns || other < state->least_other) {
        state->least_other = other;
    }
    state->owns = true;
}

/* Those of the forward before are live as well: somebody gathers them, as a
 * list of gradients does, whether they are cleared in time or not. */
static bool
are_gathered(const struct cm_growth_state *state, uint64_t kept, uint64_t now)
{
    return state->forward_bytes != 0 && now > state->forward_bytes
           && now - state->forward_bytes >= kept - kept / 4;
}

/* What is kept is told, and once that nothing is any more. */
static void
note_gradient(struct cm_growth *self,
              const struct cm_growth_gradient *gradient, int64_t iteration,
              uint64_t now)
{
    struct cm_growth_state *state = &self->states[gradient->series];
    uint64_t kept = state->bytes != 0 ? kept_gradients(state, now) : 0;
    kept = are_gathered(state, kept, now) ? 0 : kept;
    bool asked = state->looked;
    state->forward_bytes = now;
    state->looked = true;
    if (kept == 0 && !state->kept) {
        return;
    }
    uint32_t site, device;
    struct cm_series *series =
        cm_series_table_at(&self->table, gradient->series, &site, &device);
    state->kept = kept != 0;
    cm_series_skip_forwards(series, self->sliced - 1, iteration);
    self->calm = self->calm && kept == 0;
    cm_series_note_forward(series, iteration, kept);
    if (!asked) {
        cm_series_note_unasked(series, state->other_bytes + kept / 2);
    }
    if (is_open(state) || cm_series_suspect(series, iteration)) {
        suspect(self, series);
    }
}

/* Those of one device, which stand in a row; where the next one's begin. */
static size_t
ask_for_gradients(struct cm_growth *self, struct cm_blocks *blocks,
                  size_t from)
{
    uint32_t device = self->gradients[from].device;
    size_t to = from + 1;
    while (to < self->gradient_count && self->gradients[to].device == device) {
        to++;
    }
    cm_blocks_sites(blocks, (int)device - 1, &self->gradient_uses[from],
                    to - from);
    return to;
}

void
cm_growth_forward(struct cm_growth *self, struct cm_blocks *blocks,
                  int64_t iteration)
{
    if (self->forward_noted) {
        return;
    }
    self->forward_noted = true;
    for (size_t i = 0; i < self->gradient_count;) {
        i = ask_for_gradients(self, blocks, i);
    }
    for (size_t i = 0; i < self->gradient_count; i++) {
        note_gradient(self, &self->gradients[i], iteration,
                      self->gradient_uses[i].bytes);
    }
}

void
cm_growth_categorize(struct cm_growth *self, struct cm_site_id site,
                     enum cm_category category)
{
    if (site.index == 0 || cm_growth_category(self, site.index) == category) {
        return;
    }
    if (cm_grow_zeroed((void **)&self->categories, &self->category_capacity,
                       (size_t)site.index + 1, sizeof(*self->categories))
        != CM_OK) {
        self->lost++;
        return;
    }
    self->categories[site.index] = (uint8_t)category;
    self->stale = true;
}

bool
cm_growth_next_site(struct cm_growth *self, struct cm_site_id *result)
{
    uint32_t site, device;
    if (cm_series_table_at(&self->table, self->known, &site, &device)
        == NULL) {
        return false;
    }
    self->known++;
    *result = (struct cm_site_id){site};
    return true;
}

static void
tell_gradients_alone(const struct cm_growth_state *state,
                     struct cm_growth_row *row)
{
    if (row->category == CM_GRADIENT) {
        row->bytes = gradients_of(state, state->bytes);
        row->peak_bytes = gradients_of(state, state->peak_bytes);
    }
}

enum cm_status
cm_growth_rows(struct cm_growth *self, int64_t now,
               struct cm_growth_row **result, size_t *count)
{
    size_t series_count = cm_series_table_count(&self->table);
    struct cm_growth_row *rows = cm_calloc(series_count + 1, sizeof(*rows));
    *result = rows;
    *count = 0;
    if (rows == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < series_count && i < self->state_capacity; i++) {
        uint32_t site, device;
        /* Only so many are judged at one boundary, but who does not clear one
         * gradient clears none. */
        if (self->states[i].verdict == CM_VERDICT_OK
            && !self->states[i].kept) {
            continue;
        }
        struct cm_growth_row row = {
            .series = cm_series_table_at(&self->table, i, &site, &device),
            .bytes = self->states[i].bytes,
            .count = self->states[i].count,
            .peak_bytes = self->states[i].peak_bytes,
            .owned_bytes = self->states[i].owned_bytes,
            .other_bytes =
                self->states[i].other_bytes - self->states[i].least_other,
        };
        row.site = site;
        row.device = (int)device - 1;
        row.category = cm_growth_category(self, site);
        judge(self, row.series, row.category, now, &row.result);
        if (row.result.verdict == CM_VERDICT_LINGERING) {
            tell_gradients_alone(&self->states[i], &row);
        }
        if (row.result.verdict != CM_VERDICT_OK) {
            rows[(*count)++] = row;
        }
    }
    return CM_OK;
}
