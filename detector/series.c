/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Two parts, because two questions are asked: "what happened just now?" needs
 * every iteration, "what happened since the start?" needs few points and the
 * least value between them, since saw-teeth hide growth everywhere else.  The
 * spans lie evenly over the run, so a page can draw them.
 *
 * A rise that was taken back is remembered by its length and depth alone: a
 * list that is emptied each epoch looks like a leak for one epoch, and must
 * not a second time. */

#include "series.h"

#include <string.h>

#include "alloc.h"

/* Iterations in which a site may do what it likes: lazy initialisation,
 * benchmarks of kernels. */
enum { SETTLING = 3, BLOCK = 8 };

/* ---- points */

static uint32_t
clamp(uint64_t number)
{
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

static struct cm_series_change *
recent_at(const struct cm_series *self, size_t number)
{
    size_t at = (self->recent_first + number) % CM_SERIES_RECENT;
    return (struct cm_series_change *)&self->recent[at];
}

static struct cm_series_change *
newest_change(const struct cm_series *self)
{
    return recent_at(self, self->recent_count - 1u);
}

/* Folds spans that lie closer than the stride into the one before. */
static void
thin_spans(struct cm_series *self)
{
    size_t kept = 0;
    for (size_t i = 1; i < self->spans_count; i++) {
        struct cm_series_span *into = &self->spans[kept];
        const struct cm_series_span *from = &self->spans[i];
        if (from->after - into->after >= self->stride) {
            self->spans[++kept] = *from;
        }
        else if (from->low_bytes < into->low_bytes) {
            into->low_bytes = from->low_bytes;
        }
    }
    self->spans_count = (uint8_t)(kept + 1);
}

static void
make_room_in_spans(struct cm_series *self)
{
    while (self->spans_count == CM_SERIES_SPANS
           && self->stride <= UINT32_MAX / 2) {
        self->stride = self->stride ? self->stride * 2 : 2;
        thin_spans(self);
    }
}

static void
move_to_spans(struct cm_series *self, const struct cm_series_change *change)
{
    struct cm_series_span *last =
        self->spans_count ? &self->spans[self->spans_count - 1] : NULL;
    if (last != NULL && change->after - last->after < self->stride) {
        if (change->bytes < last->low_bytes) {
            last->low_bytes = change->bytes;
        }
        return;
    }
    make_room_in_spans(self);
    if (self->spans_count < CM_SERIES_SPANS) {
        self->spans[self->spans_count++] = (struct cm_series_span){
            .after = change->after,
            .count = change->count,
            .bytes = change->bytes,
            .low_bytes = change->bytes,
        };
    }
}

static void
push(struct cm_series *self, struct cm_series_change change)
{
    if (self->recent_count > 0 && newest_change(self)->after == change.after) {
        *newest_change(self) = change;
        return;
    }
    if (self->recent_count == CM_SERIES_RECENT) {
        move_to_spans(self, recent_at(self, 0));
        self->recent_first =
            (uint8_t)((self->recent_first + 1) % CM_SERIES_RECENT);
        self->recent_count--;
    }
    self->recent_count++;
    *newest_change(self) = change;
}

/* ---- rises and falls */

static void
start_rise(struct cm_series *self, uint32_t after, uint64_t bytes)
{
    self->trough_after = self->peak_after = after;
    self->trough_bytes = self->peak_bytes = bytes;
}

static void
follow_rise(struct cm_series *self, uint32_t after, uint64_t bytes)
{
    if (bytes >= self->peak_bytes) {
        self->peak_bytes = bytes;
        self->peak_after = after;
        return;
    }
    self->fell |= after >= SETTLING;
    uint64_t fall = self->peak_bytes - bytes;
    if (fall <= (self->peak_bytes - self->trough_bytes) / 2) {
        return;
    }
    if (self->peak_bytes > self->trough_bytes && after >= SETTLING) {
        uint32_t length = self->peak_after - self->trough_after;
        if (length > self->longest_taken_back) {
            self->longest_taken_back = length;
        }
        if (fall > self->deepest_fall) {
            self->deepest_fall = fall;
        }
    }
    start_rise(self, after, bytes);
}

static void
follow_peaks(struct cm_series *self, uint32_t after, uint64_t bytes)
{
    if (bytes > self->highest_bytes) {
        memmove(&self->peaks_after[1], &self->peaks_after[0],
                sizeof(self->peaks_after) - sizeof(self->peaks_after[0]));
        self->peaks_after[0] = after;
        self->highest_bytes = bytes;
    }
}

/* One bit for each eight changes: was their least value above the least of
 * the eight before? */
static void
follow_lows(struct cm_series *self, uint64_t bytes)
{
    if (self->block_left == 0) {
        bool rose = self->changes > BLOCK && self->block_low > self->last_low;
        self->low_rises = (uint8_t)(self->low_rises << 1 | rose);
        self->last_low = self->block_low;
        self->block_low = bytes;
        self->block_left = BLOCK;
    }
    self->block_left--;
    if (bytes < self->block_low) {
        self->block_low = bytes;
    }
}

void
cm_series_add(struct cm_series *self, int64_t iteration, uint64_t count,
              uint64_t bytes)
{
    bool empty = self->recent_count == 0;
    if (empty) {
        self->first_iteration = self->last_iteration = iteration;
        start_rise(self, 0, bytes);
    }
    if (iteration > self->last_iteration) {
        self->last_iteration = iteration;
    }
    uint32_t after = clamp((uint64_t)self->last_iteration
                           - (uint64_t)self->first_iteration);
    if (!empty && newest_change(self)->bytes == bytes
        && newest_change(self)->count == clamp(count)) {
        return;
    }
    push(self, (struct cm_series_change){
                   .after = after, .count = clamp(count), .bytes = bytes});
    self->changes += self->changes < UINT32_MAX;
    follow_rise(self, after, bytes);
    follow_peaks(self, after, bytes);
    follow_lows(self, bytes);
}

/* ---- at the forward */

static int64_t
before(int64_t iteration)
{
    return (int64_t)((uint64_t)iteration - 1);
}

static void
lengthen(uint8_t *run, int64_t *began_after, int64_t iteration)
{
    if (*run == 0) {
        *began_after = before(iteration);
    }
    *run = (uint8_t)(*run + (*run < UINT8_MAX));
}

void
cm_series_note_forward(struct cm_series *self, int64_t iteration,
                       uint64_t bytes)
{
    struct cm_series_forward last = cm_series_forward(self, 0);
    if (self->forwards_run > 0 && iteration <= last.iteration) {
        return; /* only the first backward() of an iteration counts */
    }
    bool follows = self->forwards_run > 0
                   && (uint64_t)iteration - (uint64_t)last.iteration == 1;
    if (!follows) {
        self->forwards_run = self->replaced_run = 0;
    }
    if (bytes == 0) {
        self->forwards_run = self->replaced_run = 0;
        return;
    }
    /* Between two boundaries it is freed and made again, or stands still. */
    bool replaced =
        self->recent_count > 0
        && (uint64_t)iteration - (uint64_t)self->last_iteration <= 1;
    lengthen(&self->forwards_run, &self->kept_before, iteration);
    if (replaced) {
        lengthen(&self->replaced_run, &self->replaced_before, iteration);
    }
    else {
        self->replaced_run = 0;
    }
    self->forwards[self->forwards_next] =
        (struct cm_series_forward){.iteration = iteration, .bytes = bytes};
    self->forwards_next =
        (uint8_t)((self->forwards_next + 1) % CM_SERIES_FORWARDS);
}

struct cm_series_forward
cm_series_forward(const struct cm_series *self, size_t back)
{
    if (back >= self->forwards_run || back >= CM_SERIES_FORWARDS) {
        return (struct cm_series_forward){0};
    }
    size_t at = (self->forwards_next + 2u * CM_SERIES_FORWARDS - 1 - back)
                % CM_SERIES_FORWARDS;
    return self->forwards[at];
}

void
cm_series_skip_forwards(struct cm_series *self, int64_t first, int64_t second)
{
    size_t newest =
        (self->forwards_next + CM_SERIES_FORWARDS - 1u) % CM_SERIES_FORWARDS;
    if (self->forwards_run > 0 && self->forwards[newest].iteration == first
        && second > first) {
        self->forwards[newest].iteration = second - 1;
    }
}

/* ---- reading */

size_t
cm_series_count(const struct cm_series *self)
{
    return (size_t)self->spans_count + self->recent_count;
}

static int64_t
iteration_of(const struct cm_series *self, uint32_t after)
{
    return (int64_t)((uint64_t)self->first_iteration + after);
}

bool
cm_series_get(const struct cm_series *self, size_t number,
              struct cm_series_point *result)
{
    if (number >= cm_series_count(self)) {
        return false;
    }
    if (number < self->spans_count) {
        const struct cm_series_span *span = &self->spans[number];
        *result = (struct cm_series_point){
            .iteration = iteration_of(self, span->after),
            .count = span->count,
            .bytes = span->bytes,
            .low_bytes = span->low_bytes,
        };
        return true;
    }
    const struct cm_series_change *change =
        recent_at(self, number - self->spans_count);
    *result = (struct cm_series_point){
        .iteration = iteration_of(self, change->after),
        .count = change->count,
        .bytes = change->bytes,
        .low_bytes = change->bytes,
    };
    return true;
}

struct cm_series_point
cm_series_newest(const struct cm_series *self)
{
    struct cm_series_point newest = {0};
    if (self->recent_count > 0) {
        (void)cm_series_get(self, cm_series_count(self) - 1, &newest);
    }
    return newest;
}

void
cm_series_note_unasked(struct cm_series *self, uint64_t bytes)
{
    struct cm_series_point point;
    for (size_t i = cm_series_count(self); i > 0; i--) {
        if (!cm_series_get(self, i - 1, &point) || point.low_bytes < bytes) {
            break;
        }
        if (self->forwards_run > 0 && point.iteration <= self->kept_before) {
            self->kept_before = before(point.iteration);
        }
    }
}

/* What grows has new highest values again and again.  Of noise the n-th value
 * is the highest with probability 1/n, so that four of them in the younger
 * half of a life are rare; what stands still has none.  Where saw-teeth
 * hide the highest values, the least ones rise. */
static bool
may_grow(const struct cm_series *self, uint64_t life)
{
    return self->changes > 4
           && newest_change(self)->after + UINT64_C(8) >= life / 4 * 3
           && (self->peaks_after[3] + UINT64_C(8) >= life / 2
               || __builtin_popcount(self->low_rises) >= 7);
}

bool
cm_series_pauses(const struct cm_series *self, int64_t now)
{
    int64_t last = self->first_iteration + self->peaks_after[0];
    int64_t three = (int64_t)self->peaks_after[0] - self->peaks_after[3];
    bool known = self->peaks_after[2] > self->peaks_after[3];
    return known && 3 * (now - last) >= three;
}

/* The longer it has been suspect, the rarer: a thirty-second of that time is
 * no delay, and a cache that grows for ever is not judged for ever. */
bool
cm_series_suspect(struct cm_series *self, int64_t now)
{
    enum { SLOWER = 32 };
    uint64_t life = (uint64_t)now - (uint64_t)self->first_iteration;
    if (self->recent_count == 0 || now < self->first_iteration
        || (self->forwards_run < 3 && !may_grow(self, life))) {
        self->suspected = false;
        return false;
    }
    uint32_t after = clamp(life);
    if (!self->suspected) {
        self->suspected = true;
        self->suspect_after = self->ask_after = after;
    }
    if (after < self->ask_after) {
        return false;
    }
    self->ask_after =
        clamp(UINT64_C(1) + after + (after - self->suspect_after) / SLOWER);
    return true;
}

/* ---- the table */

struct entry {
    uint32_t site, category;
    struct cm_series series;
};

void
cm_series_table_release(struct cm_series_table *self)
{
    cm_table_release(&self->entries);
    cm_index_release(&self->index);
    self->lost = 0;
}

struct wanted {
    const struct cm_table *entries;
    uint32_t site, category;
};

static bool
is_wanted(const void *context, uint32_t number)
{
    const struct wanted *wanted = context;
    const struct entry *entry = cm_table_get(wanted->entries, number);
    return entry->site == wanted->site && entry->category == wanted->category;
}

static enum cm_status
make_entry(struct cm_series_table *self, uint32_t hash, uint32_t site,
           uint32_t category, struct cm_series **result)
{
    struct entry *entry;
    self->entries.item_bytes = sizeof(*entry);
    enum cm_status status =
        cm_series_table_count(self) < self->max_series ? CM_OK : CM_LIMIT;
    if (status == CM_OK) {
        status = cm_index_reserve(&self->index);
    }
    if (status == CM_OK) {
        status = cm_table_reserve(&self->entries, (void **)&entry);
    }
    if (status != CM_OK) {
        self->lost++;
        return status;
    }
    entry->site = site;
    entry->category = category;
    entry->series.number = (uint32_t)cm_series_table_count(self);
    cm_index_put(&self->index, hash, cm_table_commit(&self->entries));
    *result = &entry->series;
    return CM_OK;
}

enum cm_status
cm_series_table_get(struct cm_series_table *self, uint32_t site,
                    uint32_t category, struct cm_series **result)
{
    struct wanted wanted = {&self->entries, site, category};
    const uint32_t key[] = {site, category};
    uint32_t hash = cm_hash(0, key, sizeof(key));
    uint32_t number = cm_index_find(&self->index, hash, is_wanted, &wanted);
    if (number == 0) {
        return make_entry(self, hash, site, category, result);
    }
    struct entry *entry = (struct entry *)cm_table_get(&self->entries, number);
    *result = &entry->series;
    return CM_OK;
}

size_t
cm_series_table_count(const struct cm_series_table *self)
{
    return atomic_load_explicit(&self->entries.count, memory_order_relaxed);
}

struct cm_series *
cm_series_table_at(const struct cm_series_table *self, size_t number,
                   uint32_t *site, uint32_t *category)
{
    if (number >= cm_series_table_count(self)) {
        return NULL;
    }
    struct entry *entry =
        (struct entry *)cm_table_get(&self->entries, (uint32_t)number + 1);
    *site = entry->site;
    *category = entry->category;
    return &entry->series;
}
