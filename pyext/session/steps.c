/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* An iteration ends on the program's own thread, between two kernels: so this
 * takes no lock that an analysis holds.  The rows wait in the session. */

#include "steps.h"

#include <string.h>

#include "../../detector/clock.h"
#include "../../detector/growth_anew.h"
#include "../../detector/hot.h"
#include "../../detector/meter.h"
#include "../../graph/birth.h"
#include "../../reports/growth_use.h"
#include "../allocations/allocations.h"
#include "../objects/deaths.h"
#include "../torch/forward.h"
#include "growth_look.h"
#include "session_private.h"
#include "../frameworks/tags.h"
#include "../tables/interrupts.h"
#include "../allocations/unhooked.h"

enum { OPERATIONS = 2 };

/* Iterations until a look is asked for again that there was no time for; slices
 * of time are long by then. */
enum { ASK_AGAIN = 64 };

/* Between two looks at the clock; none for some tensors after a pause, since
 * where tensors are rare a slice of time would end long after it is over. */
enum { TENSORS_BETWEEN = 3, TENSORS_AFTER_PAUSE = 32 };
#define PAUSE_NS UINT64_C(10000000)

/* Setting up is growth too; so long nobody is told of it unless at the end. */
#define QUIET_SECONDS 60.0

static void
tell_row(struct cm_session *self, const struct cm_step_row *row)
{
    char name[CM_DEVICE_NAME_BYTES];
    cm_allocations_device(row->device, name);
    struct cm_timeline_use point = {
        .device = name,
        .by = cm_iterations_name(row->by),
        .iteration = row->number + 1,
        .seconds = row->seconds,
        .categories = cm_category_names,
        .bytes = row->bytes,
        .category_count = CM_CATEGORIES,
    };
    cm_digest_timeline_add(self->digest, &point);
    if (row->counted) {
        cm_digest_iteration(self->digest, name, row->number, row->start,
                            row->end, row->peak);
    }
}

void
cm_steps_tell(struct cm_session *self)
{
    for (size_t i = 0; i < self->step_count; i++) {
        tell_row(self, &self->steps[i]);
    }
    self->step_count = 0;
    cm_digest_collector_off(self->digest, self->collector_off);
    if (self->iterations.done != 0) {
        cm_digest_number(self->digest, "iteration", self->iteration);
    }
}

/* Torch uses a device, and its allocator tells nobody. */
CM_HOT static bool
torch_is_unheard(const struct cm_session *self)
{
    return self->noticed && !cm_allocations_heard();
}

/* The host has no row of its own in the table of iterations; nor has torch
 * where the peaks between two ends are not known. */
static void
count_row(struct cm_session *self, struct cm_step_row *row)
{
    struct cm_block_use use;
    cm_blocks_use(cm_allocations_blocks(), row->device, &use);
    row->counted = use.allocations != 0 && !torch_is_unheard(self);
    if (row->counted) {
        row->start = self->step_bytes[row->device];
        row->end = (int64_t)use.live_bytes;
        row->peak = (int64_t)use.peak_bytes;
        self->step_bytes[row->device] = row->end;
    }
}

static void
note_device(struct cm_session *self, int device)
{
    if (self->step_count == CM_MOST_STEP_ROWS) {
        cm_steps_tell(self);
    }
    struct cm_step_row *row = &self->steps[self->step_count++];
    *row = (struct cm_step_row){
        .number = self->iteration - 1,
        .device = device,
        .by = self->iterations.by,
        .seconds = self->seconds,
    };
    memcpy(row->bytes, self->growth.bytes[device + 1], sizeof(row->bytes));
    if (device != CM_DEVICE_HOST) {
        count_row(self, row);
    }
}

static void
note_time(struct cm_session *self)
{
    uint64_t now = cm_clock_ns(CLOCK_MONOTONIC);
    self->began_ns = self->began_ns != 0 ? self->began_ns : now;
    self->seconds = (double)(now - self->began_ns) / 1e9;
}

static bool
has_come(const struct cm_session *self, int64_t iteration)
{
    return iteration != 0 && self->iteration >= iteration;
}

/* For who wants warnings, a look is due when a verdict is new, or not as it was
 * any more, and at each doubling of the count. */
static bool
wants_look(const struct cm_session *self)
{
    int64_t done = self->iteration - self->iterations.sliced;
    bool doubled = done >= 16 && (done & (done - 1)) == 0;
    return self->growth.due || doubled || has_come(self, self->look_at)
           || has_come(self, self->check_at);
}

static void
ask_for_look(struct cm_session *self)
{
    bool due = self->growth.due || has_come(self, self->look_at);
    bool check = has_come(self, self->check_at);
    const char *why = self->growth.leak_due ? "leak"
                      : due                 ? "lingering"
                      : check               ? "bounded"
                                            : NULL;
    bool timed = self->iterations.by == CM_BY_TIME;
    int64_t again = self->iteration + (timed ? 1 : ASK_AGAIN);
    cm_growth_heard(&self->growth);
    self->look_at = due ? again : self->look_at; /* a look that is had sets */
    self->check_at = check ? again : self->check_at; /* both anew */
    cm_session_deliver(self, "growth",
                       why != NULL ? PyUnicode_FromString(why)
                                   : Py_NewRef(Py_None));
}

/* Who holds it is found as long as the function that has it runs; again after
 * twice as many slices. */
static void
ask_for_early_look(struct cm_session *self)
{
    int64_t seen = self->looked_early;
    int64_t slices = self->iteration - self->iterations.sliced;
    if (seen == 0 ? self->growth.due : slices >= 2 * seen) {
        self->looked_early = slices;
        cm_session_deliver(self, "early growth", Py_NewRef(Py_None));
    }
}

/* Autograd's number at which the forward pass is well under way: a program that
 * clears its gradients in time has done so by then.  Half of what the iteration
 * before has made, since a few operations may still be about that one, such as
 * a metric of what its model answered. */
static uint64_t
forward_under_way(struct cm_session *self)
{
    uint64_t number = cm_forward_number();
    bool known = self->ended_at != 0 && number > self->ended_at;
    uint64_t half = known ? (number - self->ended_at) / 2 : 0;
    self->ended_at = number;
    return number == 0 ? 0 : number + (half > OPERATIONS ? half : OPERATIONS);
}

/* What nobody has said more of is told from other tensors by its stack. */
static void
find_inputs(struct cm_session *self)
{
    struct cm_site_id site;
    while (cm_growth_next_site(&self->growth, &site)) {
        if (cm_growth_category(&self->growth, site.index) == CM_OTHER
            && cm_birth_of(self->records, site) == CM_BIRTH_INPUT) {
            cm_growth_categorize(&self->growth, site, CM_INPUT);
        }
    }
}

static bool
is_quiet(const struct cm_session *self)
{
    return self->growth.slices
           && self->seconds - self->unit_seconds < QUIET_SECONDS;
}

/* A slice of time ends anywhere in a turn. */
static void
ask_to_look(struct cm_session *self)
{
    bool timed = self->iterations.by == CM_BY_TIME;
    self->between_turns = !timed;
    if (is_quiet(self)) {
        ask_for_early_look(self);
    }
    else if (wants_look(self)) {
        ask_for_look(self);
    }
    self->between_turns = false;
}

/* What was told while training is looked at again once it has stood still. */
static void
begin_slices(struct cm_session *self)
{
    bool told = cm_growth_begin_slices(&self->growth, self->iteration);
    self->looked_early = told ? 4 : 0;
}

/* What was to be looked at in so many iterations may be hours of slices away. */
static void
begin_unit(struct cm_session *self, bool heard)
{
    bool looks = self->look_at != 0 || self->check_at != 0;
    if (self->growth.sliced != 0) {
        cm_growth_end_slices(&self->growth, self->iteration, heard);
    }
    self->growth.slices = self->iterations.by == CM_BY_TIME;
    self->growth.sliced = self->iterations.sliced;
    self->growth.unit_began = self->iteration - 1;
    self->unit_seconds = self->seconds;
    self->unit_iteration = self->iteration;
    self->look_at = looks ? self->iteration + 1 : 0;
    self->check_at = self->looked_early = 0;
    if (self->growth.sliced != 0) {
        begin_slices(self);
    }
}

/* At the end of the first one that is counted by another thing. */
static bool
has_new_unit(const struct cm_session *self)
{
    const struct cm_iterations *iterations = &self->iterations;
    return self->growth.slices != (iterations->by == CM_BY_TIME)
           || self->growth.sliced != iterations->sliced;
}

static void
note_growth(struct cm_session *self, struct cm_blocks *blocks)
{
    int first = cm_allocations_host_heard() ? CM_DEVICE_HOST : 0;
    bool known = cm_allocations_heard() || torch_is_unheard(self)
                 || cm_tags_have_unhooked();
    int last = known ? cm_blocks_devices(blocks) : 0;
    bool heard = !is_quiet(self); /* until this one */
    self->began_ns = self->iterations.anew ? 0 : self->began_ns;
    note_time(self);
    for (int i = first; i < last; i++) {
        cm_growth_boundary(&self->growth, blocks, i, self->iteration);
    }
    if (has_new_unit(self)) {
        begin_unit(self, heard);
    }
    if (self->iterations.anew) {
        self->step_count = 0;
    }
    if (self->iterations.anew || self->iterations.parted) {
        cm_growth_begin_anew(&self->growth, self->iteration,
                             heard && self->iterations.anew);
    }
    cm_session_ask_memory(self);
    find_inputs(self);
    cm_growth_judge(&self->growth, self->iteration);
    if (!torch_is_unheard(self)) { /* else what is live then is not known */
        cm_tags_on_forward(forward_under_way(self), cm_growth_on_backward);
    }
    for (int i = first; i < last; i++) {
        note_device(self, i);
    }
    if (self->warned) {
        ask_to_look(self);
    }
}

/* Apart: most ends of iterations are passed over. */
static __attribute__((noinline)) void
take_in(struct cm_session *self, struct cm_blocks *blocks)
{
    cm_deaths_rest();
    cm_session_know_blocks(self);
    note_growth(self, blocks);
    cm_blocks_mark(blocks);
}

CM_HOT void
cm_session_see_objects(struct cm_session *self)
{
    if (!self->brief) {
        cm_unhooked_update(self->devices, torch_is_unheard(self));
    }
}

/* All memory is that of allocators that tell their totals, and nothing is
 * told or suspected that would have to be known of each iteration. */
CM_HOT static bool
may_pass(struct cm_session *self, struct cm_blocks *blocks)
{
    bool steady = cm_steady_ends(&self->steady, blocks, self->iteration);
    return steady && self->growth.calm && !self->growth.due
           && !has_new_unit(self) && !self->iterations.parted
           && cm_allocations_heard() && !cm_allocations_host_heard()
           && !cm_tags_have_unhooked() && self->iterations.by != CM_BY_TIME;
}

/* The main thread has not come by since the report was written. */
static __attribute__((noinline)) void
say_late(struct cm_session *self)
{
    if (cm_digest_warns(self->digest)) {
        self->unsaid = false;
        cm_session_drain_warnings(self);
    }
}

CM_HOT static void
end_iteration(struct cm_session *self)
{
    self->iteration = self->iterations.done;
    if (CM_SELDOM(self->unsaid)) {
        say_late(self);
    }
    cm_session_see_collector(self);
    cm_session_check_collector(self);
    if (!cm_session_is_main(self)) {
        return;
    }
    cm_session_see_objects(self);
    struct cm_blocks *blocks = cm_allocations_blocks();
    if (blocks == NULL) {
        return;
    }
    cm_looks_stepped(self, self->iteration);
    if (may_pass(self, blocks)) {
        cm_session_ask_memory(self);
    }
    else {
        take_in(self, blocks);
    }
}

PyObject *
cm_session_step(struct cm_session *self)
{
    if (cm_iterations_told(&self->iterations)) {
        end_iteration(self);
    }
    Py_RETURN_NONE;
}

/* Borrowed; NULL: it is not there, or not of the exact type. */
CM_HOT static PyObject *
item_of(PyObject *dict, PyObject *key)
{
    PyObject *item = dict != NULL && PyDict_CheckExact(dict)
                         ? PyDict_GetItemWithError(dict, key)
                         : NULL;
    return item != NULL && PyList_CheckExact(item)
                   && PyList_GET_SIZE(item) != 0
               ? PyList_GET_ITEM(item, 0)
               : NULL;
}

/* What an optimizer trains, by its first parameter: one that was made anew for
 * the same model is the same one. */
CM_HOT static uintptr_t
trained_by(const struct cm_session *self, PyObject *optimizer)
{
    PyObject *attributes = PyObject_GenericGetDict(optimizer, NULL);
    PyObject *parameter =
        item_of(item_of(attributes, self->groups_key), self->params_key);
    uintptr_t trained = (uintptr_t)(parameter != NULL ? parameter : optimizer);
    Py_XDECREF(attributes);
    PyErr_Clear();
    return trained;
}

CM_HOT PyObject *
cm_session_stepped(struct cm_session *self, PyObject *const *args,
                   Py_ssize_t count)
{
    CM_METERED(CM_METER_STEP);
    if (CM_PASSES(CM_METER_STEP) || count == 0 || self->silent) {
        Py_RETURN_NONE;
    }
    uintptr_t trained = trained_by(self, args[0]);
    bool ended = cm_iterations_optimizer(&self->iterations, trained);
    uint64_t steps = cm_iterations_steps(&self->iterations, trained);
    if (steps != 0 && (steps & (steps - 1)) == 0) {
        cm_session_deliver(self, "optimizer", Py_NewRef(args[0]));
    }
    if (ended) {
        end_iteration(self);
    }
    Py_RETURN_NONE;
}

PyObject *
cm_session_attached(struct cm_session *self)
{
    self->stepping = true;
    Py_RETURN_NONE;
}

void
cm_steps_time(struct cm_session *self, uint64_t now_ns)
{
    if (cm_iterations_time(&self->iterations, now_ns)) {
        end_iteration(self);
    }
}

/* `context` is perhaps gone by now. */
static int
slice_pending(void *context)
{
    struct cm_session *self = context;
    if (self == cm_session_main() && !self->silent) {
        self->slice_pending = false;
        if (cm_session_is_here(self)) {
            cm_steps_time(self, cm_clock_ns(CLOCK_MONOTONIC));
            if (self->memory_due) {
                cm_session_ask_memory(self);
            }
        }
        self->memory_due = false;
    }
    return 0;
}

static void
end_soon(struct cm_session *self)
{
    if (!self->slice_pending) {
        self->slice_pending = Py_AddPendingCall(slice_pending, self) == 0;
    }
}

/* The main thread may never come by while others work; who observes is shown
 * the page within the collection. */
bool
cm_steps_may_wait(const struct cm_session *self)
{
    return self == cm_session_main() && !self->observed
           && cm_interrupts_on_main_thread()
           && PyInterpreterState_Get() == PyInterpreterState_Main();
}

void
cm_steps_soon(struct cm_session *self)
{
    self->memory_due = true;
    end_soon(self);
}

uint32_t
cm_steps_consider(struct cm_session *self)
{
    if (self->iterations.by == CM_BY_STEP) {
        return CM_TENSORS_UNAWAITED;
    }
    uint64_t now_ns = cm_clock_ns(CLOCK_MONOTONIC_COARSE);
    if (self->iterations.by != CM_BY_TIME
        && !cm_iterations_idle(&self->iterations, now_ns)) {
        return CM_TENSORS_UNAWAITED;
    }
    if (now_ns - self->considered_ns > PAUSE_NS) {
        self->each_tensor = TENSORS_AFTER_PAUSE;
    }
    self->considered_ns = now_ns;
    if ((cm_allocations_blocks() != NULL || cm_tags_have_unhooked())
        && cm_iterations_time_due(&self->iterations, now_ns)) {
        end_soon(self);
    }
    if (self->each_tensor > 0) {
        self->each_tensor--;
        return 0;
    }
    return TENSORS_BETWEEN;
}
