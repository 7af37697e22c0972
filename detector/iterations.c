/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "iterations.h"

#include <math.h>

#include "hot.h"

/* An optimizer that steps so often alone has lost the others: they are done
 * with, or stand in a list. */
enum { ALONE = 16 };

/* So many take part from the beginning; later ones may be new each time. */
enum { FEW = 4 };

/* So many that took one step each, and nobody has come again: each step is a
 * new one's.  Where the one before has let go of its address, a new one may have
 * it: who comes again within that many is no sign. */
enum { ROW = 24 };

/* More than so many in a row, and nobody has come again since: who did was a new
 * one too, where one that is gone had been. */
enum { NEWCOMERS = 4 };

/* So many of each length: ten of them are a sixth to a third of the run. */
enum { SLICES = 32 };

/* Of these epochs are told: iterations; slices from the beginning of the run. */
enum { LONG_EPOCH = 1000, HALF_AN_HOUR = 9 * SLICES };

#define FIRST_SLICE_NS UINT64_C(100000000)

/* An evaluation is longer than the training before it, now and then; one of more
 * than two hours may as well be a service between two trainings.  Of the first
 * steps each may take minutes.  Where nothing ran at all, as in a notebook, some
 * time has to go by with tensors. */
#define LEAST_IDLE_NS UINT64_C(60000000000)
#define FIRST_IDLE_NS (10 * LEAST_IDLE_NS)
#define MOST_IDLE_NS (120 * LEAST_IDLE_NS)
#define WAIT_NS (LEAST_IDLE_NS / 6)
enum { FIRST_STEPS = 16 };

static bool
end(struct cm_iterations *self, enum cm_iterations_by by)
{
    self->anew = self->by == CM_BY_TIME && by != CM_BY_TIME && self->done != 0
                 && self->sliced == 0;
    self->sliced = by == CM_BY_TIME ? self->sliced : 0;
    self->parted = self->parts;
    self->parts = false;
    self->done = self->anew ? 1 : self->done + 1;
    self->by = by;
    for (size_t i = 0; i < self->active_count; i++) {
        self->active[i].steps = 0;
    }
    return true;
}

bool
cm_iterations_told(struct cm_iterations *self)
{
    return end(self, CM_BY_STEP);
}

/* The first iteration was over for those that were known: what is new steps
 * last in it, not first in the next one. */
static bool
is_late(const struct cm_iterations *self)
{
    bool late = self->active_count != 0 && self->active_count < FEW;
    for (size_t i = 0; i < self->active_count; i++) {
        late = late && self->active[i].steps == 0;
    }
    return late;
}

/* active_count: not known. */
CM_HOT static size_t
place_of(const struct cm_iterations *self, uintptr_t optimizer)
{
    size_t at = 0;
    while (at < self->active_count
           && self->active[at].optimizer != optimizer) {
        at++;
    }
    return at;
}

/* Whether it was taken for done with, and not as one of the last `newest`. */
static bool
has_passed(const struct cm_iterations *self, uintptr_t optimizer,
           size_t newest)
{
    for (size_t i = 0; i < self->passed_count && i < CM_MOST_PASSED; i++) {
        size_t at = (self->passed_count - 1 - i) % CM_MOST_PASSED;
        if (self->passed[at] == optimizer) {
            return i >= newest;
        }
    }
    return false;
}

static void
pass(struct cm_iterations *self, size_t at)
{
    self->passed[self->passed_count++ % CM_MOST_PASSED] =
        self->active[at].optimizer;
}

/* When one more comes: who has not stepped since the one before came, which
 * itself has gone on, is done with, as the last trial's of a sweep.  Not where
 * they take turns, as agents that learn one after the other. */
static void
drop_passed(struct cm_iterations *self)
{
    size_t kept = 0, count = self->active_count;
    if (self->come_again || count == 0
        || self->active[count - 1].all_steps < 2) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (self->active[i].last >= self->newest_at) {
            self->active[kept++] = self->active[i];
        }
        else {
            pass(self, i);
        }
    }
    self->active_count = kept;
}

/* A sample that is trained on once has its own, and its step is all of it. */
static void
drop_row(struct cm_iterations *self)
{
    bool row = self->active_count >= ROW;
    for (size_t i = 0; i < self->active_count; i++) {
        row = row && self->active[i].all_steps == 1;
    }
    self->fresh |= row && !self->come_again;
    for (size_t i = 0; self->fresh && i < self->active_count; i++) {
        pass(self, i);
    }
    self->active_count = self->fresh ? 0 : self->active_count;
}

/* Where one has once taken over from another for good, as the next trial of a
 * sweep does, the next one does so at once. */
static void
drop_done(struct cm_iterations *self)
{
    if (self->taken_over && self->active_count == 1
        && self->active[0].all_steps >= ALONE) {
        self->active_count = 0;
    }
}

/* An address is no name: a model of a sweep has that of one that was let go. */
static void
note_newcomer(struct cm_iterations *self, uintptr_t optimizer)
{
    if (has_passed(self, optimizer, self->fresh ? ROW : 0)) {
        self->come_again = true;
        self->parts |= self->fresh && !self->parts_told;
        self->parts_told |= self->fresh;
        self->fresh = false;
        self->newcomers = 0;
    }
    else if (++self->newcomers > NEWCOMERS && self->come_again) {
        self->come_again = false;
        self->passed_count = 0;
    }
}

/* Of more that take turns than there is room for, as each parameter's own, those
 * that are known tell where a turn is over; until another one comes again, and
 * none of them between.  Who came is kept by Brent's rule: a cycle of any length
 * is seen. */
static uint32_t
meet_stranger(struct cm_iterations *self, uintptr_t optimizer)
{
    bool again = self->strangers != 0
                 && (optimizer == self->last_stranger
                     || optimizer == self->kept_stranger);
    self->strangers++;
    self->last_stranger = optimizer;
    if ((self->strangers & (self->strangers - 1)) == 0) {
        self->kept_stranger = optimizer;
    }
    return again ? ALONE : 0;
}

/* One that was not known: how its steps begin. */
static uint32_t
add(struct cm_iterations *self, uintptr_t optimizer)
{
    if (self->come_again && self->active_count == CM_MOST_OPTIMIZERS) {
        return meet_stranger(self, optimizer);
    }
    note_newcomer(self, optimizer);
    drop_done(self);
    drop_passed(self);
    drop_row(self);
    if (self->active_count == CM_MOST_OPTIMIZERS) {
        return ALONE;
    }
    self->newest_at = self->all_steps;
    uint32_t steps = is_late(self) ? 0 : 1;
    self->active[self->active_count].optimizer = optimizer;
    self->active[self->active_count].all_steps = 1;
    self->active[self->active_count].last = self->all_steps;
    self->active[self->active_count++].steps = steps;
    return steps;
}

/* Its steps since the iteration began, this one with them. */
static uint32_t
count_step(struct cm_iterations *self, uintptr_t optimizer)
{
    size_t at = place_of(self, optimizer);
    self->all_steps++;
    if (at == self->active_count) {
        return add(self, optimizer);
    }
    self->newcomers = at + 1 == self->active_count ? self->newcomers : 0;
    self->strangers = 0;
    self->active[at].all_steps++;
    self->active[at].last = self->all_steps;
    return ++self->active[at].steps;
}

CM_HOT uint64_t
cm_iterations_steps(const struct cm_iterations *self, uintptr_t optimizer)
{
    size_t at = place_of(self, optimizer);
    return at < self->active_count ? self->active[at].all_steps : 0;
}

bool
cm_iterations_are_several(const struct cm_iterations *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->active_count; i++) {
        count += self->active[i].last >= self->newest_at;
    }
    return count > 1;
}

static bool
all_stepped(const struct cm_iterations *self)
{
    for (size_t i = 0; i < self->active_count; i++) {
        if (self->active[i].steps == 0) {
            return false;
        }
    }
    return true;
}

static void
drop_idle(struct cm_iterations *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->active_count; i++) {
        if (self->active[i].steps != 0) {
            self->active[kept++] = self->active[i];
        }
        else {
            self->taken_over |= self->active[i].all_steps >= ALONE;
        }
    }
    self->active_count = kept;
}

CM_HOT bool
cm_iterations_optimizer(struct cm_iterations *self, uintptr_t optimizer)
{
    if (self->by == CM_BY_TIME && self->sliced != 0) {
        self->active_count = 0; /* whoever steps may be another one */
    }
    uint32_t steps = count_step(self, optimizer);
    if (steps >= ALONE) {
        drop_idle(self);
    }
    return self->by != CM_BY_STEP && all_stepped(self)
           && end(self, CM_BY_OPTIMIZER);
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* So long nothing may step: twice as long as training took, and as any pause
 * that it has had, before its first step too. */
static uint64_t
patience_ns(const struct cm_iterations *self)
{
    uint64_t known =
        larger(self->stepped_ns - self->stepping_ns, self->longest_ns);
    uint64_t twice = known < MOST_IDLE_NS / 2 ? 2 * known : MOST_IDLE_NS;
    uint64_t least =
        self->all_steps < FIRST_STEPS ? FIRST_IDLE_NS : LEAST_IDLE_NS;
    return larger(least, twice);
}

/* Whether something has stepped since that was asked last. */
static bool
goes_on(struct cm_iterations *self, uint64_t now_ns)
{
    if (self->heard == self->all_steps) {
        return false;
    }
    self->heard = self->all_steps;
    uint64_t since = self->stepped_ns != 0 ? self->stepped_ns
                     : self->first_ns != 0 ? self->first_ns
                                           : now_ns;
    uint64_t pause = now_ns > since ? now_ns - since : 0; /* two clocks */
    self->longest_ns = larger(self->longest_ns, pause);
    self->stepping_ns = self->stepping_ns != 0 ? self->stepping_ns : now_ns;
    self->stepped_ns = now_ns;
    self->waiting_ns = 0;
    return true;
}

/* And tensors were made before that, and after. */
static bool
is_too_long(struct cm_iterations *self, uint64_t now_ns)
{
    if (now_ns - self->stepped_ns < patience_ns(self)) {
        return false;
    }
    self->waiting_ns = self->waiting_ns != 0 ? self->waiting_ns : now_ns;
    return now_ns - self->waiting_ns >= WAIT_NS;
}

bool
cm_iterations_idle(struct cm_iterations *self, uint64_t now_ns)
{
    if (self->by != CM_BY_OPTIMIZER || goes_on(self, now_ns)
        || !is_too_long(self, now_ns)) {
        return false;
    }
    self->by = CM_BY_TIME;
    self->sliced = self->done;
    self->slice_began_ns = self->slice_ns = 0;
    return true;
}

uint64_t
cm_iterations_slice_ns(const struct cm_iterations *self)
{
    return self->slice_ns != 0 ? self->slice_ns : FIRST_SLICE_NS;
}

bool
cm_iterations_time_due(const struct cm_iterations *self, uint64_t now_ns)
{
    return self->by == CM_BY_TIME
           && (self->slice_began_ns == 0
               || now_ns - self->slice_began_ns
                      >= cm_iterations_slice_ns(self));
}

bool
cm_iterations_time(struct cm_iterations *self, uint64_t now_ns)
{
    bool first = self->slice_began_ns == 0;
    self->first_ns = self->first_ns != 0 ? self->first_ns : now_ns;
    if (!cm_iterations_time_due(self, now_ns)) {
        return false;
    }
    self->slice_began_ns = now_ns;
    if (first) {
        return false;
    }
    self->slice_ns =
        cm_iterations_slice_ns(self)
        << ((self->done - self->sliced + 1) % SLICES == 0 ? 1 : 0);
    return end(self, CM_BY_TIME);
}

double
cm_iterations_clock(double slices)
{
    double longer = fmin(floor(slices / SLICES), 60); /* of years */
    double whole = SLICES * (exp2(longer) - 1);
    return whole + exp2(longer) * (slices - SLICES * longer);
}

int64_t
cm_iterations_epoch_end(const struct cm_iterations *self, int64_t since)
{
    if (self->by != CM_BY_TIME) {
        return since + LONG_EPOCH;
    }
    int64_t twice = since + SLICES, soonest = self->sliced + HALF_AN_HOUR;
    return twice > soonest ? twice : soonest;
}

const char *
cm_iterations_name(enum cm_iterations_by by)
{
    static const char *const names[] = {"time", "optimizer", "step"};
    return names[by];
}
